package work

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// operation is a git operation that may be unfinished.
type operation struct {
	name string
	// marks are files in the git directory, one of which exists while the operation is unfinished.
	marks []string
	// abort restores the state before the operation; quit discards its state and leaves files and HEAD unchanged.
	abort, quit []string
}

// operations lists the operations in order: a rebase may contain an unfinished cherry-pick.
var operations = [...]operation{
	{"rebase", []string{"rebase-merge", "rebase-apply"}, []string{"rebase", "--abort"}, []string{"rebase", "--quit"}},
	{"merge", []string{"MERGE_HEAD"}, []string{"merge", "--abort"}, []string{"merge", "--quit"}},
	{"cherry-pick", []string{"CHERRY_PICK_HEAD"}, []string{"cherry-pick", "--abort"}, []string{"cherry-pick", "--quit"}},
	{"revert", []string{"REVERT_HEAD"}, []string{"revert", "--abort"}, []string{"revert", "--quit"}},
}

// commitPending ends unfinished git operations and commits uncommitted changes.
func (c *collector) commitPending(ctx context.Context) error {
	gitDir, err := c.repo.gitDir(ctx)
	if err != nil {
		return err
	}
	for _, op := range operations {
		if !op.inProgress(gitDir) {
			continue
		}
		if err := c.finishOperation(ctx, op); err != nil {
			return err
		}
	}
	return c.commitRest(ctx)
}

// gitDir returns the git directory: .git if that is a repository, else the one that git finds, or its error.
func (r *repo) gitDir(ctx context.Context) (string, error) {
	dotGit := filepath.Join(r.dir, ".git")
	if info, err := os.Lstat(dotGit); err == nil && info.IsDir() && isComplete(r.dir) {
		return dotGit, nil
	}
	dir, err := r.text(ctx, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return "", fmt.Errorf("find git directory: %w", err)
	}
	return dir, nil
}

// removeStaleLocks removes the locks of a killed git. No git of the agent runs while the runner works.
func removeStaleLocks(gitDir string) error {
	stale, err := filepath.Glob(filepath.Join(gitDir, "*.lock"))
	if err != nil {
		return fmt.Errorf("find stale locks: %w", err)
	}
	err = filepath.WalkDir(filepath.Join(gitDir, "refs"), func(path string, entry os.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // not created yet, or deleted meanwhile
		}
		if err == nil && !entry.IsDir() && strings.HasSuffix(path, ".lock") {
			stale = append(stale, path)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("find stale locks: %w", err)
	}
	for _, path := range stale {
		if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("remove stale lock: %w", err)
		}
	}
	return nil
}

func (op operation) inProgress(gitDir string) bool {
	for _, mark := range op.marks {
		if _, err := os.Lstat(filepath.Join(gitDir, mark)); err == nil {
			return true
		}
	}
	return false
}

// finishOperation ends an operation: it commits a merge without conflicts, aborts operations with conflicts and
// rebases, and discards the state of the others.
func (c *collector) finishOperation(ctx context.Context, op operation) error {
	unmerged, err := c.repo.text(ctx, "ls-files", "--unmerged")
	if err != nil {
		return fmt.Errorf("look for conflicts: %w", err)
	}
	if unmerged == "" && op.name == "merge" {
		c.note("A merge that had not been committed was committed.")
		return c.commitMerge(ctx)
	}
	// A stopped rebase has HEAD in the middle; the branch still contains all of the work.
	if unmerged != "" || op.name == "rebase" {
		if _, err := c.repo.run(ctx, op.abort...); err == nil {
			c.note("An unfinished %s was aborted.", op.name)
			return nil
		}
	}
	if _, err := c.repo.run(ctx, op.quit...); err != nil {
		return fmt.Errorf("end the unfinished %s: %w", op.name, err)
	}
	c.note("An unfinished %s was ended without further changes.", op.name)
	return nil
}

func (c *collector) commitMerge(ctx context.Context) error {
	if err := c.addAll(ctx); err != nil {
		return err
	}
	return c.commit(ctx, "Merge the base branch\n")
}

// commitRest commits tracked changes and untracked files, never ignored ones.
func (c *collector) commitRest(ctx context.Context) error {
	if err := c.addAll(ctx); err != nil {
		return err
	}
	clean, err := c.repo.check(ctx, "diff-index", "--cached", "--quiet", "--ignore-submodules=none", "HEAD", "--")
	if err != nil {
		return fmt.Errorf("look for uncommitted changes: %w", err)
	}
	if clean {
		return nil
	}
	return c.commit(ctx, orText(c.spec.Message, "Save uncommitted changes\n"))
}

// addAll stages everything except other repositories that were cloned into the workspace, which git would treat as
// submodules.
func (c *collector) addAll(ctx context.Context) error {
	out, err := c.repo.run(ctx, "ls-files", "-z", "--others", "--exclude-standard", "--directory", "--no-empty-directory")
	if err != nil {
		return fmt.Errorf("list untracked files: %w", err)
	}
	if err := c.checkSizes(ctx); err != nil {
		return err
	}
	args := []string{"add", "--all", "--", "."}
	for path := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		dir, isDir := strings.CutSuffix(path, "/")
		if !isDir {
			continue
		}
		if _, err := os.Lstat(filepath.Join(c.repo.dir, dir, ".git")); err == nil {
			c.note("%s is a separate repository and was left out.", dir)
			args = append(args, ":(exclude,literal)"+dir)
		}
	}
	if _, err := c.repo.run(ctx, args...); err != nil {
		return fmt.Errorf("stage changes: %w", err)
	}
	return c.repo.unstage(ctx, c.spec.Leave)
}

// checkSizes refuses uncommitted files that are too large for a changeset before git reads them, so that the refusal
// leaves no commit behind.
func (c *collector) checkSizes(ctx context.Context) error {
	out, err := c.repo.run(ctx, "ls-files", "-z", "--others", "--modified", "--exclude-standard")
	if err != nil {
		return fmt.Errorf("list uncommitted files: %w", err)
	}
	var list []blobRef
	for path := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if info, err := os.Lstat(filepath.Join(c.repo.dir, path)); err == nil && info.Mode().IsRegular() {
			list = append(list, blobRef{path: path, size: info.Size()})
		}
	}
	return withinLimit(list)
}

func (c *collector) commit(ctx context.Context, message string) error {
	as := openRepo(c.repo.dir, committerEnv(ctx, c.repo, "")...)
	_, err := as.pipe(ctx, strings.NewReader(message), "commit", "--quiet", "--no-verify",
		"--cleanup=verbatim", "--allow-empty-message", "-F", "-")
	if err != nil {
		return fmt.Errorf("commit uncommitted changes: %w", err)
	}
	return nil
}

// committerEnv returns the variables of the committer: as the workspace is configured, or errand's name. date, if set, is
// "@seconds zone".
func committerEnv(ctx context.Context, r *repo, date string) []string {
	name, email := "errand", "errand@localhost"
	if text, err := r.text(ctx, "config", "--get", "user.name"); err == nil && text != "" {
		name = text
	}
	if text, err := r.text(ctx, "config", "--get", "user.email"); err == nil && text != "" {
		email = text
	}
	var env []string
	for _, who := range []string{"AUTHOR", "COMMITTER"} {
		env = append(env, "GIT_"+who+"_NAME="+name, "GIT_"+who+"_EMAIL="+email)
		if date != "" {
			env = append(env, "GIT_"+who+"_DATE="+date)
		}
	}
	return env
}

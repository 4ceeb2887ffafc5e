package work

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/errand-bot/errand/internal/changeset"
)

// Source is the remote from which commits are fetched: the tether's git endpoint.
type Source struct {
	URL string `json:"url"`
	// Token is sent as a bearer token. It never appears in an argument or a file.
	Token string `json:"token,omitempty"`
	// Ref is the remote ref that contains the commit, such as refs/heads/main. Without it, the commit id itself is
	// fetched, which not every server allows.
	Ref string `json:"ref,omitempty"`
	// Depth and Filter select a shallow or partial clone; zero values a full one.
	Depth  int    `json:"depth,omitempty"`
	Filter string `json:"filter,omitempty"`
}

// PrepareSpec is the input of `workspace prepare`.
type PrepareSpec struct {
	Dir string `json:"dir"`
	Source
	// Branch is the agent's branch, and Base the commit at which it starts.
	Branch string `json:"branch"`
	Base   string `json:"base"`
	// UserName and UserEmail identify the author of the agent's commits.
	UserName  string `json:"user_name,omitempty"`
	UserEmail string `json:"user_email,omitempty"`
	// Config is additional configuration of the workspace.
	Config map[string]string `json:"config,omitempty"`
}

// Place is the current state of a workspace.
type Place struct {
	Head string `json:"head"`
	Tree string `json:"tree"`
	// Created is true if this call created the branch.
	Created bool `json:"created,omitempty"`
	// LargeFiles is true if files of the checkout use Git LFS. Only Prepare sets it.
	LargeFiles bool `json:"large_files,omitempty"`
}

// Prepare creates a workspace with the branch checked out at base. It may be called again after any crash: a workspace
// that already has the branch keeps it, with the agent's work.
func Prepare(ctx context.Context, spec PrepareSpec) (Place, error) {
	place, err := prepare(ctx, spec)
	if err != nil {
		return Place{}, fmt.Errorf("prepare workspace %s: %w", spec.Dir, err)
	}
	return place, nil
}

func prepare(ctx context.Context, spec PrepareSpec) (Place, error) {
	if err := checkNames(spec.Dir, spec.Base, spec.Branch); err != nil {
		return Place{}, err
	}
	if err := os.MkdirAll(spec.Dir, 0o755); err != nil {
		return Place{}, fmt.Errorf("create directory: %w", err)
	}
	r, leave, err := enter(ctx, spec.Dir)
	if err != nil {
		return Place{}, err
	}
	defer leave()
	if !isComplete(spec.Dir) {
		if _, err := r.run(ctx, "init", "--quiet", "--template=", "--initial-branch="+spec.Branch, "."); err != nil {
			return Place{}, err
		}
		if err := r.extendConfig(spec.settings()); err != nil {
			return Place{}, fmt.Errorf("configure: %w", err)
		}
	}
	if err := r.configure(ctx, spec.settings()); err != nil {
		return Place{}, err
	}
	if _, err := r.commit(ctx, "refs/heads/"+spec.Branch); err == nil {
		return preparedPlace(ctx, r)
	}
	seeded := r.seed(ctx, spec.URL)
	if err := r.fetch(ctx, spec.Source, spec.Base); err != nil {
		return Place{}, err
	}
	seeded(ctx)
	// Files first, branch last: the branch marks the preparation as complete.
	if _, err := r.run(ctx, "checkout", "--quiet", "--force", "--detach", spec.Base); err != nil {
		return Place{}, fmt.Errorf("check out: %w", err)
	}
	if _, err := r.run(ctx, "checkout", "--quiet", "-B", spec.Branch, spec.Base); err != nil {
		return Place{}, fmt.Errorf("create branch: %w", err)
	}
	p, err := preparedPlace(ctx, r)
	p.Created = true
	return p, err
}

// preparedPlace returns the state of a workspace, including whether it has large files.
func preparedPlace(ctx context.Context, r *repo) (Place, error) {
	p, err := readPlace(ctx, r)
	if err != nil {
		return Place{}, err
	}
	files, err := r.text(ctx, "ls-files", "--", ":(top,attr:filter=lfs)")
	if err != nil {
		return Place{}, fmt.Errorf("find large files: %w", err)
	}
	p.LargeFiles = files != ""
	return p, nil
}

// isComplete reports whether a repository was created completely. After a killed init, init is run again, which preserves
// existing data.
func isComplete(dir string) bool {
	for _, part := range []string{"HEAD", "config", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dir, ".git", part)); err != nil {
			return false
		}
	}
	return true
}

// checkNames refuses names that git could interpret as an option or as a path elsewhere.
func checkNames(dir, commit, branch string) error {
	switch {
	case !filepath.IsAbs(dir):
		return fmt.Errorf("directory %q is not absolute", dir)
	case !changeset.IsID(commit):
		return fmt.Errorf("%q is not a commit id", commit)
	case branch == "" || strings.HasPrefix(branch, "-") || strings.HasPrefix(branch, "refs/"):
		return fmt.Errorf("%q is not a branch name", branch)
	}
	return nil
}

// fetch ensures that a commit exists in the repository. It always fetches a named ref, so that the agent sees its
// remote-tracking branch.
func (r *repo) fetch(ctx context.Context, from Source, commit string) error {
	if !changeset.IsID(commit) {
		return fmt.Errorf("fetch: %q is not a commit id", commit)
	}
	if from.URL != "" && from.Ref != "" {
		if err := r.fetchSpec(ctx, from, trackingSpec(from.Ref)); err != nil {
			return fmt.Errorf("fetch %s: %w", from.Ref, err)
		}
	}
	if _, err := r.commit(ctx, commit); err == nil {
		return nil
	}
	if from.URL == "" {
		return fmt.Errorf("fetch %s: it is missing, and no URL is given", commit)
	}
	// The ref has moved since the commit was chosen.
	if err := r.fetchSpec(ctx, from, commit); err != nil {
		return fmt.Errorf("fetch commit %s: %w", commit, err)
	}
	_, err := r.commit(ctx, commit)
	return err
}

// trackingSpec returns the refspec that stores a remote branch in its usual remote-tracking ref.
func trackingSpec(ref string) string {
	if branch, ok := strings.CutPrefix(ref, "refs/heads/"); ok {
		return "+" + ref + ":refs/remotes/origin/" + branch
	}
	return "+" + ref
}

func (r *repo) fetchSpec(ctx context.Context, from Source, refspec string) error {
	authorised := openRepo(r.dir, bearer(from.URL, from.Token)...)
	args := []string{"fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"}
	if from.Depth > 0 {
		args = append(args, "--depth="+strconv.Itoa(from.Depth))
	}
	if from.Filter != "" {
		args = append(args, "--filter="+from.Filter)
	}
	_, err := authorised.run(ctx, append(args, "--end-of-options", from.URL, refspec)...)
	return err
}

// readPlace returns the checkout's commit and its tree.
func readPlace(ctx context.Context, r *repo) (Place, error) {
	ids, err := r.resolve(ctx, "HEAD^{commit}", "HEAD^{tree}")
	if err != nil {
		return Place{}, fmt.Errorf("read head: %w", err)
	}
	return Place{Head: ids[0], Tree: ids[1]}, nil
}

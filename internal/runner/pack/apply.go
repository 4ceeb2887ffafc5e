package pack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/runner/work"
)

// checkConnected checks that no object reachable from the manifest's refs is missing.
func (u *unpacker) checkConnected(ctx context.Context) error {
	if head, err := u.git.Commit(ctx, u.m.Head); err != nil || head != u.m.Head {
		return fmt.Errorf("%w: it does not contain its head %s", ErrMalformed, u.m.Head)
	}
	var ids bytes.Buffer
	fmt.Fprintf(&ids, "%s\n^%s\n", u.m.Head, u.m.Base)
	for _, r := range slices.Concat(u.m.Refs, u.m.Stash) {
		ids.WriteString(r.ID + "\n")
	}
	if err := u.git.Stream(ctx, packTimeout, &ids, io.Discard, "rev-list", "--objects", "--quiet", "--stdin"); err != nil {
		return fmt.Errorf("%w: its commits are incomplete: %w", ErrMalformed, err)
	}
	return nil
}

// refs restores HEAD, branches, tags and all tracked files. An unfinished git operation in the checkout is discarded.
func (u *unpacker) refs(ctx context.Context) error {
	if err := u.clearInProgress(); err != nil {
		return err
	}
	var in bytes.Buffer
	for _, r := range u.m.Refs {
		if r.Name != u.m.Branch {
			fmt.Fprintf(&in, "update %s\x00%s\x00\x00", r.Name, r.ID)
		}
	}
	// HEAD is detached first, so that no branch is moved under it.
	if _, err := u.git.Run(ctx, nil, "update-ref", "--no-deref", "HEAD", u.m.Head); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if u.m.Branch != "" {
		fmt.Fprintf(&in, "update %s\x00%s\x00\x00", u.m.Branch, u.m.Head)
	}
	if _, err := u.git.Run(ctx, &in, "update-ref", "--stdin", "-z"); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	if u.m.Branch != "" {
		if _, err := u.git.Run(ctx, nil, "symbolic-ref", "HEAD", u.m.Branch); err != nil {
			return err
		}
	}
	if _, err := u.git.Run(ctx, nil, "reset", "--quiet", "--hard", u.m.Head); err != nil {
		return err
	}
	_, err := u.git.Run(ctx, nil, "clean", "--quiet", "--force", "--force", "-d")
	return err
}

func (u *unpacker) clearInProgress() error {
	for _, name := range work.InProgressFiles() {
		if err := u.dir.remove(path.Join(".git", name)); err != nil {
			return err
		}
	}
	return nil
}

// index restores the differences between the index and HEAD.
func (u *unpacker) index(ctx context.Context) error {
	f, err := u.dir.open(path.Join(partGit, gitIndex))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if _, err := u.git.Run(ctx, f, "update-index", "-z", "--replace", "--index-info"); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

func (u *unpacker) deleted(context.Context) error {
	f, err := u.dir.open(path.Join(partGit, gitDeleted))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	const most = 256 << 20
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return err
	}
	names := strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
	if len(data) > most || len(names) > maxEntries {
		return fmt.Errorf("%w: it deletes too much", ErrMalformed)
	}
	for _, name := range names {
		if !localName(name) || hasDotGit(name) {
			return fmt.Errorf("%w: it deletes %q", ErrMalformed, truncate(name, 300))
		}
		if err := u.dir.delete(name); err != nil {
			return err
		}
	}
	return nil
}

func (u *unpacker) files(context.Context) error { return u.dir.merge(partWork, ".", true) }

func (u *unpacker) state(context.Context) error {
	return u.dir.merge(path.Join(partGit, gitState), ".git", true)
}

// stashes replaces the list of stashes.
func (u *unpacker) stashes(ctx context.Context) error {
	if there, err := u.git.Holds(ctx, "show-ref", "--verify", "--quiet", "refs/stash"); err != nil {
		return err
	} else if there {
		if _, err := u.git.Run(ctx, nil, "update-ref", "-d", "refs/stash"); err != nil {
			return err
		}
	}
	for _, s := range u.m.Stash {
		if _, err := u.git.Run(ctx, nil, "update-ref", "--create-reflog", "-m", orText(s.Name, "stash"), "refs/stash", s.ID); err != nil {
			return err
		}
	}
	return nil
}

func orText(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

var notAlphanumeric = regexp.MustCompile(`[^A-Za-z0-9]`)

// sessions restores the agent's sessions. Claude stores them in a folder named after the checkout's path; if the path
// has changed, the folder gets the name for the new path.
func (u *unpacker) sessions(context.Context) error {
	const projects = partHome + "/.claude/projects"
	before, after := notAlphanumeric.ReplaceAllString(u.m.Dir, "-"), notAlphanumeric.ReplaceAllString(u.spec.Dir, "-")
	if before != "" && before != after {
		// While still staged, the folder is merged with one that already has the new name.
		to := path.Join(u.home.staged, projects, after)
		if info, err := u.home.root.Lstat(path.Join(u.home.staged, projects, before)); err == nil && info.IsDir() {
			if err := u.home.root.MkdirAll(to, 0o755); err != nil {
				return err
			}
			if err := u.home.merge(path.Join(projects, before), to, true); err != nil {
				return err
			}
			if err := u.home.remove(path.Join(u.home.staged, projects, before)); err != nil {
				return err
			}
		}
	}
	return u.home.merge(partHome, ".", false)
}

// restoreCaches restores the caches that spec.Keep allows and leaves out the others.
func (u *unpacker) restoreCaches(context.Context) error {
	for i, name := range u.m.Keep {
		a, to := u.dir, name
		if rest, ok := strings.CutPrefix(name, "~/"); ok {
			a, to = u.home, rest
		}
		if !slices.Contains(u.spec.Keep, name) {
			u.m.recordOmitted(name, "the repository does not keep it any more", 0)
			continue
		}
		staged := path.Join(partKeep, keepPrefix(i, name))
		err := a.place(staged, to, a == u.dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was empty
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, d := range slices.Backward(a.modes) {
			rest, ok := strings.CutPrefix(d.path+"/", staged+"/")
			if !ok {
				continue
			}
			if err := a.root.Chmod(path.Join(to, rest), d.entry.mode); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

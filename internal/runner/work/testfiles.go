package work

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/changeset"
)

// TestFile is a file that the operator lends to a checkout. It is no part of the repository.
type TestFile struct {
	// Path is relative to the checkout, with slashes.
	Path    string `json:"path"`
	Content []byte `json:"content"`
}

// LendSpec is what `workspace lend` reads.
type LendSpec struct {
	Dir string `json:"dir"`
	// Base is the commit that the agent's work builds on: what it has is not overwritten.
	Base string `json:"base,omitempty"`
	// Files are put into the checkout, in the place of what is there.
	Files []TestFile `json:"files,omitempty"`
	// Back are the paths of files that are taken out of it, and out of the index.
	Back []string `json:"back,omitempty"`
}

// Lent is the answer of lend.
type Lent struct {
	// Taken are paths of Files that the repository has a file, folder or link at: nothing was put there.
	Taken []string `json:"taken,omitempty"`
}

// Lend puts files of the operator's into a checkout, for its owner alone, and has git there ignore them; or takes
// them out of it. It may be called again after any crash. Nothing is written outside of the checkout or through
// a link, whatever an agent has made of it.
func Lend(ctx context.Context, spec LendSpec) (Lent, error) {
	out, err := lend(ctx, spec)
	if err != nil {
		return Lent{}, fmt.Errorf("lend files to %s: %w", spec.Dir, err)
	}
	return out, nil
}

func lend(ctx context.Context, spec LendSpec) (Lent, error) {
	if !filepath.IsAbs(spec.Dir) {
		return Lent{}, fmt.Errorf("directory %q is not absolute", spec.Dir)
	}
	r, leave, err := enter(ctx, spec.Dir)
	if err != nil {
		return Lent{}, err
	}
	defer leave()
	if !complete(spec.Dir) {
		return Lent{}, ErrNoRepository
	}
	root, err := os.OpenRoot(spec.Dir)
	if err != nil {
		return Lent{}, err
	}
	defer func() { _ = root.Close() }()
	for _, p := range spec.Back {
		if err := takeBack(ctx, r, root, p); err != nil {
			return Lent{}, err
		}
	}
	var out Lent
	for _, f := range spec.Files {
		if spec.Base != "" {
			taken, err := r.has(ctx, spec.Base, f.Path)
			if err != nil {
				return Lent{}, err
			}
			if taken {
				out.Taken = append(out.Taken, f.Path)
				continue
			}
		}
		if err := putFile(root, f); err != nil {
			return Lent{}, err
		}
	}
	return out, ignore(root, spec.Files)
}

// has reports whether a commit has something at a path, or at a folder above it that is none there.
func (r *repo) has(ctx context.Context, commit, name string) (bool, error) {
	if !changeset.IsID(commit) {
		return false, fmt.Errorf("%q is no commit id", commit)
	}
	for p := name; p != "."; p = path.Dir(p) {
		out, err := r.text(ctx, "ls-tree", commit, "--", ":(top,literal)"+p)
		if err != nil {
			return false, fmt.Errorf("look for %s: %w", p, err)
		}
		if kind := strings.Fields(out); len(kind) > 1 {
			return p == name || kind[1] != "tree", nil
		}
	}
	return false, nil
}

// putFile writes one file, in the place of whatever is there. Links and files among the folders above it go.
func putFile(root *os.Root, f TestFile) error {
	if err := checkLent(f.Path); err != nil {
		return err
	}
	for i, c := range f.Path {
		if c != '/' {
			continue
		}
		dir := f.Path[:i]
		if info, err := root.Lstat(dir); err == nil && !info.IsDir() {
			if err := root.Remove(dir); err != nil {
				return err
			}
		}
		if err := root.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	if err := root.RemoveAll(f.Path); err != nil {
		return err
	}
	file, err := root.OpenFile(f.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(f.Content)
	return errors.Join(err, file.Close())
}

// checkLent refuses paths outside of the checkout and in git's own folder.
func checkLent(p string) error {
	if !filepath.IsLocal(p) || path.Clean(p) != p || p == "." || strings.ContainsAny(p, "\x00\n\r") {
		return fmt.Errorf("%q is no plain path within the checkout", p)
	}
	if slices.ContainsFunc(strings.Split(p, "/"), func(part string) bool { return strings.EqualFold(part, ".git") }) {
		return fmt.Errorf("%q lies in git's own folder", p)
	}
	return nil
}

// takeBack removes one file, and what the index has of it.
func takeBack(ctx context.Context, r *repo, root *os.Root, p string) error {
	if err := checkLent(p); err != nil {
		return err
	}
	if err := r.unstage(ctx, []string{p}); err != nil {
		return err
	}
	for i, c := range p {
		if c != '/' {
			continue
		}
		if info, err := root.Lstat(p[:i]); err != nil || !info.IsDir() {
			return nil // it is not there any more, or leads elsewhere
		}
	}
	return root.RemoveAll(p)
}

// unstage has the index hold what HEAD has at some paths.
func (r *repo) unstage(ctx context.Context, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	args := []string{"reset", "--quiet", "HEAD", "--"}
	for _, p := range paths {
		args = append(args, ":(top,literal)"+p)
	}
	if _, err := r.run(ctx, args...); err != nil {
		return fmt.Errorf("take lent files out of the index: %w", err)
	}
	return nil
}

// excludes is git's own list of what is not to be seen as untracked, which is no part of the repository.
const excludes = ".git/info/exclude"

// ignore has git's `status` and `add` in the checkout pass the files over. What collects changes does not
// rely on it.
func ignore(root *os.Root, files []TestFile) error {
	if len(files) == 0 {
		return nil
	}
	var lines []string
	if info, err := root.Lstat(excludes); err == nil && info.Mode().IsRegular() {
		data, err := root.ReadFile(excludes)
		if err != nil {
			return err
		}
		lines = strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	} else if err == nil {
		if err := root.RemoveAll(excludes); err != nil {
			return err
		}
	}
	if info, err := root.Lstat(path.Dir(excludes)); err == nil && !info.IsDir() {
		if err := root.Remove(path.Dir(excludes)); err != nil {
			return err
		}
	}
	for _, f := range files {
		if line := "/" + escapeGlob(f.Path); !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	if err := root.MkdirAll(path.Dir(excludes), 0o755); err != nil {
		return err
	}
	return root.WriteFile(excludes, []byte(strings.TrimLeft(strings.Join(lines, "\n"), "\n")+"\n"), 0o644)
}

// escapeGlob has git read a path as it is, where it expects a pattern.
func escapeGlob(p string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, ` `, `\ `).Replace(p)
}

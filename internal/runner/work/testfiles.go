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

// TestFile is a file that the operator lends to a checkout. It is not part of the repository.
type TestFile struct {
	// Path is relative to the checkout, with slashes.
	Path    string `json:"path"`
	Content []byte `json:"content"`
}

// LendSpec is the input of `workspace lend`.
type LendSpec struct {
	Dir string `json:"dir"`
	// Base is the commit on which the agent's work is based. Files at its paths are not overwritten.
	Base string `json:"base,omitempty"`
	// Files are written into the checkout and replace existing files.
	Files []TestFile `json:"files,omitempty"`
	// Back lists the paths of files that are removed from the checkout and from the index.
	Back []string `json:"back,omitempty"`
}

// Lent is the answer of lend.
type Lent struct {
	// Taken lists the paths of Files at which the repository has a file, folder or link. They were not written.
	Taken []string `json:"taken,omitempty"`
}

// Lend writes the operator's test files into a checkout, readable by its owner only, and makes git ignore them, or
// removes them again. It may be called again after any crash. It never writes outside of the checkout or through a
// link, whatever an agent has created there.
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
	if !isComplete(spec.Dir) {
		return Lent{}, ErrNoRepository
	}
	root, err := os.OpenRoot(spec.Dir)
	if err != nil {
		return Lent{}, err
	}
	defer func() { _ = root.Close() }()
	for _, p := range spec.Back {
		if err := removeLent(ctx, r, root, p); err != nil {
			return Lent{}, err
		}
	}
	var out Lent
	for _, f := range spec.Files {
		if spec.Base != "" {
			taken, err := r.hasPath(ctx, spec.Base, f.Path)
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
	return out, excludeFromGit(root, spec.Files)
}

// hasPath reports whether a commit has an entry at a path, or at a parent that is not a folder.
func (r *repo) hasPath(ctx context.Context, commit, name string) (bool, error) {
	if !changeset.IsID(commit) {
		return false, fmt.Errorf("%q is not a commit id", commit)
	}
	for p := name; p != "."; p = path.Dir(p) {
		out, err := r.text(ctx, "ls-tree", commit, "--", ":(top,literal)"+p)
		if err != nil {
			return false, fmt.Errorf("find %s: %w", p, err)
		}
		if kind := strings.Fields(out); len(kind) > 1 {
			return p == name || kind[1] != "tree", nil
		}
	}
	return false, nil
}

// putFile writes one file and replaces any existing entry. It removes links and files among its parent folders.
func putFile(root *os.Root, f TestFile) error {
	if err := checkLentPath(f.Path); err != nil {
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

// checkLentPath refuses paths outside of the checkout and in git's own folder.
func checkLentPath(p string) error {
	if !filepath.IsLocal(p) || path.Clean(p) != p || p == "." || strings.ContainsAny(p, "\x00\n\r") {
		return fmt.Errorf("%q is not a plain path within the checkout", p)
	}
	if slices.ContainsFunc(strings.Split(p, "/"), func(part string) bool { return strings.EqualFold(part, ".git") }) {
		return fmt.Errorf("%q lies in git's own folder", p)
	}
	return nil
}

// removeLent removes one file and its entry in the index.
func removeLent(ctx context.Context, r *repo, root *os.Root, p string) error {
	if err := checkLentPath(p); err != nil {
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
			return nil // it no longer exists, or leads elsewhere
		}
	}
	return root.RemoveAll(p)
}

// unstage resets the index to HEAD at some paths.
func (r *repo) unstage(ctx context.Context, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	args := []string{"reset", "--quiet", "HEAD", "--"}
	for _, p := range paths {
		args = append(args, ":(top,literal)"+p)
	}
	if _, err := r.run(ctx, args...); err != nil {
		return fmt.Errorf("remove lent files from the index: %w", err)
	}
	return nil
}

// excludes is git's local ignore file, which is not part of the repository.
const excludes = ".git/info/exclude"

// excludeFromGit makes git's `status` and `add` ignore the files. Collect does not rely on it.
func excludeFromGit(root *os.Root, files []TestFile) error {
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

// escapeGlob escapes a path so that git does not interpret it as a pattern.
func escapeGlob(p string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, ` `, `\ `).Replace(p)
}

package pack

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// area is a directory that is written to, with a staging folder from which entries are moved into place. No path leads
// out of it, and nothing is written through a link.
type area struct {
	root   *os.Root
	staged string          // the staging folder, relative to root
	made   map[string]bool // folders created in the staging folder
	modes  []item          // modes of folders in it that differ from the default
	// folder is the last written folder, kept open because most entries follow one in the same folder.
	folder     *os.Root
	folderName string
}

// openArea opens a directory and empties its staging folder.
func openArea(dir, staged string) (*area, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	a := &area{root: root, staged: staged, made: map[string]bool{}}
	if err = a.remove(staged); err == nil {
		err = root.MkdirAll(staged, 0o700)
	}
	if err != nil {
		_ = root.Close()
		return nil, err
	}
	return a, nil
}

// close removes the remaining staged entries.
func (a *area) close() {
	_ = a.closeFolder()
	_ = a.remove(a.staged) // best effort: openArea does it, too
	_ = a.root.Close()
}

// openStaged opens a staged folder and creates it if necessary.
func (a *area) openStaged(name string) (*os.Root, error) {
	if a.folder != nil && a.folderName == name {
		return a.folder, nil
	}
	if err := errors.Join(a.closeFolder(), a.mkdirs(name)); err != nil {
		return nil, err
	}
	var err error
	a.folder, err = a.root.OpenRoot(path.Join(a.staged, name))
	a.folderName = name
	return a.folder, err
}

// closeFolder closes the last written folder.
func (a *area) closeFolder() error {
	folder := a.folder
	if a.folder = nil; folder == nil {
		return nil
	}
	return folder.Close()
}

// put stages one entry under a new name.
func (a *area) put(name string, e entry, content io.Reader) error {
	if e.kind == tar.TypeDir {
		if e.mode != 0o755 {
			a.modes = append(a.modes, item{path: name, entry: e})
		}
		return a.mkdirs(name)
	}
	folder, err := a.openStaged(path.Dir(name))
	if err != nil {
		return err
	}
	if e.kind == tar.TypeSymlink {
		err = folder.Symlink(e.link, path.Base(name))
	} else {
		err = write(folder, path.Base(name), os.O_EXCL, e, content)
	}
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %q is in it twice", ErrMalformed, truncate(name, 300))
	}
	return err
}

// mkdirs creates staged folders. It fails if the name exists with another type.
func (a *area) mkdirs(name string) error {
	if name == "." || a.made[name] {
		return nil
	}
	if err := a.mkdirs(path.Dir(name)); err != nil {
		return err
	}
	err := a.root.Mkdir(path.Join(a.staged, name), 0o755)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %q is in it as a folder and as something else", ErrMalformed, truncate(name, 300))
	}
	if err == nil {
		a.made[name] = true
	}
	return err
}

func write(folder *os.Root, name string, how int, e entry, content io.Reader) (err error) {
	f, err := folder.OpenFile(name, os.O_CREATE|os.O_WRONLY|how, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := io.Copy(f, content); err != nil {
		return err
	}
	if err := f.Chmod(e.mode); err != nil {
		return err
	}
	if !e.time.IsZero() {
		return folder.Chtimes(name, e.time, e.time)
	}
	return nil
}

// append appends to a staged file.
func (a *area) append(name string, content io.Reader) error {
	return write(a.root, path.Join(a.staged, name), os.O_APPEND, entry{mode: 0o600}, content)
}

// open opens a staged file.
func (a *area) open(name string) (*os.File, error) { return a.root.Open(path.Join(a.staged, name)) }

// merge moves the content of a staged folder into another folder, which must be real, as must its parents. Existing
// folders stay. Other entries in the way of a file are removed; those in the way of a folder only if clear is set.
func (a *area) merge(staged, to string, clear bool) error {
	from := path.Join(a.staged, staged)
	dir, err := a.root.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	entries, err := dir.ReadDir(-1)
	if err = errors.Join(err, dir.Close()); err != nil {
		return err
	}
	for _, d := range entries {
		target := path.Join(to, d.Name())
		there, err := a.root.Lstat(target)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case there.IsDir() && d.IsDir():
			if err := a.merge(path.Join(staged, d.Name()), target, clear); err != nil {
				return err
			}
			continue
		case d.IsDir() && !clear:
			return fmt.Errorf("%s is in the way: %w", target, fs.ErrExist)
		case there.IsDir() || d.IsDir():
			if err := a.remove(target); err != nil {
				return err
			}
		}
		if err := a.root.Rename(path.Join(from, d.Name()), target); err != nil {
			return err
		}
	}
	return nil
}

// place moves a staged entry to its place. Entries in the way are removed; links and files among the parent folders
// only if clear is set.
func (a *area) place(staged, to string, clear bool) error {
	if err := a.parents(path.Dir(to), clear); err != nil {
		return err
	}
	from := path.Join(a.staged, staged)
	info, err := a.root.Lstat(from)
	if err != nil {
		return err
	}
	if there, err := a.root.Lstat(to); err == nil && (there.IsDir() || info.IsDir()) {
		if err := a.remove(to); err != nil {
			return err
		}
	}
	return a.root.Rename(from, to)
}

// parents ensures that every part of a path is a real folder.
func (a *area) parents(name string, clear bool) error {
	if name == "." {
		return nil
	}
	if info, err := a.root.Lstat(name); err == nil && info.IsDir() {
		return a.replaceLinks(name, clear)
	}
	if err := a.parents(path.Dir(name), clear); err != nil {
		return err
	}
	err := a.root.Mkdir(name, 0o755)
	if errors.Is(err, fs.ErrExist) && clear {
		if err := a.root.Remove(name); err != nil {
			return err
		}
		err = a.root.Mkdir(name, 0o755)
	}
	return err
}

// replaceLinks replaces links among the parts of a path by real folders if clear is set.
func (a *area) replaceLinks(name string, clear bool) error {
	for i := range len(name) + 1 {
		if i < len(name) && name[i] != '/' {
			continue
		}
		info, err := a.root.Lstat(name[:i])
		if err != nil {
			return err
		}
		if info.IsDir() {
			continue
		}
		if !clear {
			return fmt.Errorf("%s is in the way: %w", name[:i], fs.ErrExist)
		}
		if err := a.root.Remove(name[:i]); err != nil {
			return err
		}
		return a.parents(name, clear)
	}
	return nil
}

// remove removes a file or a folder with its content, even if it is read-only.
func (a *area) remove(name string) error {
	err := a.root.RemoveAll(name)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	err = fs.WalkDir(a.root.FS(), name, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			_ = a.root.Chmod(p, 0o700) // RemoveAll reports remaining errors
		}
		return nil
	})
	return errors.Join(err, a.root.RemoveAll(name))
}

// delete removes a file and the folders that become empty, unless a parent is a link.
func (a *area) delete(name string) error {
	for i, c := range name {
		if c != '/' {
			continue
		}
		if info, err := a.root.Lstat(name[:i]); err != nil || !info.IsDir() {
			return nil
		}
	}
	info, err := a.root.Lstat(name)
	if err != nil || info.IsDir() {
		return nil
	}
	if err := a.root.Remove(name); err != nil {
		return err
	}
	for dir := path.Dir(name); dir != "." && !strings.HasPrefix(dir, ".git"); dir = path.Dir(dir) {
		if a.root.Remove(dir) != nil {
			return nil
		}
	}
	return nil
}

//go:build linux && (amd64 || arm64)

package disktest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// pageSize is the unit in which data is written and lost.
const pageSize = 4096

// inode identifies a file or directory independently of its name; numbers are reused, times are not.
type inode struct {
	number  uint64
	made    int64
	isDir   bool
	symlink string
}

// shadow is the durable state of a directory tree.
type shadow struct {
	root    string
	files   map[inode]*content
	folders map[inode]map[string]inode
	// dirty has the pages of each file that were written after their last sync, whether it succeeded or failed: after a
	// failed sync the kernel treats the pages as clean, and no later sync writes them. A file that is not in it is
	// completely dirty.
	dirty map[inode]map[int64]bool
	// exact is set if writes are intercepted; otherwise a sync makes the complete content of a file durable.
	exact   bool
	ignore  []string
	version int // increases with each change
}

// ignored reports whether a path below the root is ignored.
func (s *shadow) ignored(path string) bool {
	return slices.ContainsFunc(s.ignore, func(folder string) bool { return path == folder || strings.HasPrefix(path, folder+"/") })
}

func newShadow(root string, exact bool, ignore []string) *shadow {
	return &shadow{
		root:    root,
		ignore:  ignore,
		exact:   exact,
		files:   map[inode]*content{},
		folders: map[inode]map[string]inode{},
		dirty:   map[inode]map[int64]bool{},
	}
}

func identify(path string) (inode, error) {
	var st unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st); err != nil {
		return inode{}, err
	}
	id := inode{number: st.Ino, made: st.Btime.Sec*1e9 + int64(st.Btime.Nsec), isDir: st.Mode&unix.S_IFMT == unix.S_IFDIR}
	if st.Mode&unix.S_IFMT == unix.S_IFLNK {
		id.symlink, _ = os.Readlink(path)
	}
	return id, nil
}

// open identifies an open file, which may no longer have a name.
func (s *shadow) open(fd string) (inode, error) {
	f, err := os.Open(fd)
	if err != nil {
		return inode{}, err
	}
	defer func() { _ = f.Close() }()
	var st unix.Statx_t
	if err := unix.Statx(int(f.Fd()), "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &st); err != nil {
		return inode{}, err
	}
	return inode{number: st.Ino, made: st.Btime.Sec*1e9 + int64(st.Btime.Nsec), isDir: st.Mode&unix.S_IFMT == unix.S_IFDIR}, nil
}

// wrote records that part of an open file is about to be written.
func (s *shadow) wrote(a asked) error {
	id, err := s.open(a.fd)
	if err != nil {
		return err
	}
	pages, known := s.dirty[id]
	switch {
	case !known: // completely dirty
	case a.offset < 0:
		delete(s.dirty, id)
	default:
		for p := a.offset / pageSize; p*pageSize < a.offset+a.length; p++ {
			pages[p] = true
		}
	}
	return nil
}

// sync records that an open file or directory is synced, or that the sync fails.
func (s *shadow) sync(fd string, fails bool) error {
	id, err := s.open(fd)
	if err != nil {
		return err
	}
	pages, known := s.dirty[id]
	if s.exact {
		s.dirty[id] = map[int64]bool{}
	}
	if fails {
		return nil
	}
	s.version++
	if id.isDir {
		s.folders[id], err = entries(fd)
		return err
	}
	f, err := os.Open(fd)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if !known {
		s.files[id], err = readContent(f)
		return err
	}
	if s.files[id] == nil {
		s.files[id] = &content{pages: map[int64][]byte{}}
	}
	return s.files[id].reread(f, pages)
}

func entries(dir string) (map[string]inode, error) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	all := map[string]inode{}
	for _, e := range list {
		id, err := identify(filepath.Join(dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		all[e.Name()] = id
	}
	return all, nil
}

// lay writes the state after a power cut to a directory. Either only synced names survive, or all names, because most
// file systems write them eventually; the content of a file survives only if it was synced.
func (s *shadow) lay(to string, allNames bool) error {
	root, err := identify(s.root)
	if err != nil {
		return err
	}
	if allNames {
		return s.layAll(s.root, to)
	}
	return s.layFolder(root, to)
}

func (s *shadow) layFolder(id inode, to string) error {
	for name, child := range s.folders[id] {
		if err := s.layOne(child, filepath.Join(to, name)); err != nil {
			return err
		}
		if child.isDir {
			if err := s.layFolder(child, filepath.Join(to, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *shadow) layAll(from, to string) error {
	names, err := entries(from)
	if err != nil {
		return err
	}
	for name, child := range names {
		if s.ignored(strings.TrimPrefix(filepath.Join(from, name), s.root+"/")) {
			continue
		}
		if err := s.layOne(child, filepath.Join(to, name)); err != nil {
			return err
		}
		if child.isDir {
			if err := s.layAll(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *shadow) layOne(id inode, path string) error {
	switch {
	case id.isDir:
		return os.Mkdir(path, 0o700)
	case id.symlink != "":
		return os.Symlink(id.symlink, path)
	}
	return s.files[id].write(path)
}

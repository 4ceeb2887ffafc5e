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

// pageSize is what is written and lost as a whole.
const pageSize = 4096

// inode is a file or folder, whatever its name; numbers are used again, times are not.
type inode struct {
	number  uint64
	made    int64
	isDir   bool
	symlink string
}

// shadow is what of a folder is durable.
type shadow struct {
	root    string
	files   map[inode]*content
	folders map[inode]map[string]inode
	// dirty are the pages of a file that were written since they were synced, or since a sync of them failed: then the kernel
	// takes them for clean, and no later sync writes them. A file that is not in it is dirty as a whole.
	dirty map[inode]map[int64]bool
	// exact is set where writes are seen; otherwise a sync makes all that a file holds durable.
	exact   bool
	ignore  []string
	version int // grows with each change
}

// ignored reports whether a path, below the root, does not matter.
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

// open identifies an open file, which may have no name any more.
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

// wrote notes that part of an open file is about to be written.
func (s *shadow) wrote(a asked) error {
	id, err := s.open(a.fd)
	if err != nil {
		return err
	}
	pages, known := s.dirty[id]
	switch {
	case !known: // dirty as a whole
	case a.offset < 0:
		delete(s.dirty, id)
	default:
		for p := a.offset / pageSize; p*pageSize < a.offset+a.length; p++ {
			pages[p] = true
		}
	}
	return nil
}

// sync notes that an open file or folder is synced, or that this fails.
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
			continue // gone since
		}
		if err != nil {
			return nil, err
		}
		all[e.Name()] = id
	}
	return all, nil
}

// lay writes into a folder what a power cut leaves. Names survive either if their folder was synced, or, as most file systems have
// it sooner or later, all of them; what a file holds survives only if it was synced.
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

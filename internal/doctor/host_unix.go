//go:build unix

package doctor

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func freeSpace(path string) (Space, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return Space{}, err
	}
	return Space{Bytes: st.Bavail * uint64(st.Bsize), Inodes: st.Ffree, NoInodes: st.Files == 0}, nil //nolint:gosec,unconvert // differs by system
}

// writable reports why no file can be created in a folder. It creates none, since that would change the folder.
func writable(dir string) error {
	if err := unix.Faccessat(unix.AT_FDCWD, dir, unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return &os.PathError{Op: "write to", Path: dir, Err: err}
	}
	return nil
}

// accessible reports whether this user can read and write a file, or everything about a folder.
func accessible(path string, dir bool) bool {
	mode := uint32(unix.R_OK | unix.W_OK)
	if dir {
		mode |= unix.X_OK
	}
	return unix.Faccessat(unix.AT_FDCWD, path, mode, unix.AT_EACCESS) == nil
}

// owner returns the user to whom a file belongs, and the number of its names.
func owner(info fs.FileInfo) (uid int, links uint64) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1, 0
	}
	return int(st.Uid), uint64(st.Nlink) //nolint:unconvert // differs by system
}

package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// A diskError is an error of a disk or a folder, with what to do about it.
type diskError struct {
	error
	remedy string
}

func (e diskError) Error() string { return e.error.Error() + "\n" + e.remedy }

func (e diskError) Unwrap() error { return e.error }

// withRemedy adds what to do to the error of a full disk, of one that is mounted read-only, or of a folder of the setup that this user cannot write
// into. Files are replaced as a whole, so those that were written before stay complete.
func (r *run) withRemedy(err error) error {
	var at *fs.PathError
	if !errors.As(err, &at) || errors.As(err, new(diskError)) {
		return err
	}
	dir := filepath.Dir(at.Path)
	switch {
	case errors.Is(at, unix.ENOSPC), errors.Is(at, unix.EDQUOT):
		return diskError{err, fmt.Sprintf("The disk is full: free some space in the file system of %s, and %s. Nothing that was stored before is lost.", dir, r.front.again())}
	case errors.Is(at, unix.EROFS):
		return diskError{err, fmt.Sprintf("%s is mounted read-only: mount it writable, and %s, or choose another folder with --dir.", dir, r.front.again())}
	case errors.Is(at, fs.ErrPermission) && strings.HasPrefix(dir+"/", r.dir+"/") && unix.Access(r.dir, unix.W_OK) != nil:
		return diskError{err, fmt.Sprintf("This user cannot write into %s: run the command as the owner of that folder, or choose another one with --dir.", r.dir)}
	}
	return err
}

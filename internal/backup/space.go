package backup

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// reserve is the space that a backup leaves on the disk of the data folder, since errand works meanwhile.
const reserve = 256 << 20

// checkEvery is after how many bytes of an archive the space is checked again.
const checkEvery = 8 << 20

// ErrNoSpace means that a backup would fill the disk of the data folder, which would stop errand.
var ErrNoSpace = errors.New("a backup would fill the disk of the data folder, and errand could store nothing")

// FreeSpace returns the bytes that errand's user can still write to the file system of a path.
func FreeSpace(path string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return 0, fmt.Errorf("read the free space of %s: %w", path, err)
	}
	return st.Bavail * uint64(st.Bsize), nil //nolint:gosec,unconvert // differs by system
}

// hasSpace returns an error that is ErrNoSpace if less than the reserve is free on the disk of the data folder after more bytes are written.
func (s Source) hasSpace(more int64) error {
	if s.Free == nil {
		return nil
	}
	free, err := s.Free(s.Data)
	if err != nil {
		return err
	}
	if needed := uint64(more) + reserve; free < needed { //nolint:gosec // the size of a file
		return fmt.Errorf("%w: %d MB are free, %d MB are needed; free space, or move data to a larger disk", ErrNoSpace, free>>20, needed>>20)
	}
	return nil
}

// hasRoom checks the space for the copy of the store.
func (s Source) hasRoom() error {
	info, err := os.Stat(filepath.Join(s.Data, storeName))
	if err != nil {
		return err
	}
	return s.hasSpace(info.Size())
}

// sparing stops a backup before it fills the disk of the data folder, on which its archive may be, too.
type sparing struct {
	to    io.Writer
	check func(more int64) error
	left  int64 // bytes until the next check
}

func (w *sparing) Write(p []byte) (int, error) {
	if w.left -= int64(len(p)); w.left < 0 {
		if err := w.check(checkEvery); err != nil {
			return 0, err
		}
		w.left = checkEvery
	}
	return w.to.Write(p)
}

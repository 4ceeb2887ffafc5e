//go:build linux && (amd64 || arm64)

package disktest

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// content is the content of a file without its holes, of which databases have many.
type content struct {
	size  int64
	pages map[int64][]byte
}

// readContent reads a whole file.
func readContent(f *os.File) (*content, error) {
	c := &content{pages: map[int64][]byte{}}
	pages := map[int64]bool{}
	for at := int64(0); ; {
		data, err := unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			return c, c.reread(f, pages)
		}
		if err != nil {
			return nil, err
		}
		if at, err = unix.Seek(int(f.Fd()), data, unix.SEEK_HOLE); err != nil {
			return nil, err
		}
		for p := data / pageSize; p*pageSize < at; p++ {
			pages[p] = true
		}
	}
}

// reread reads some pages of a file again, and its size unless the file has shrunk.
func (c *content) reread(f *os.File, pages map[int64]bool) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	c.size = max(c.size, info.Size())
	for p := range pages {
		page := make([]byte, pageSize)
		n, err := f.ReadAt(page, p*pageSize)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		c.pages[p] = page[:n]
	}
	return nil
}

// write writes a file; nil is the empty content.
func (c *content) write(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil || c == nil {
		return errors.Join(err, f.Close())
	}
	err = f.Truncate(c.size)
	for p, page := range c.pages {
		_, werr := f.WriteAt(page, p*pageSize)
		err = errors.Join(err, werr)
	}
	return errors.Join(err, f.Close())
}

package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/errand-bot/errand/internal/durable"
)

// WriteTo writes the archive. It does not hold up errand, however slow w is. It ends with ErrNoSpace before the disk of the data folder,
// on which the archive may be, is full.
func (c *Copy) WriteTo(ctx context.Context, w io.Writer) error {
	z, err := zstd.NewWriter(&sparing{to: w, check: c.space}, zstd.WithEncoderConcurrency(1)) // errand works beside it
	if err != nil {
		return fmt.Errorf("compress the backup: %w", err)
	}
	if err := c.writeTar(ctx, z); err != nil {
		return fmt.Errorf("write the backup: %w", err) // without the end of z: nobody takes the rest for a whole archive
	}
	if err := z.Close(); err != nil {
		return fmt.Errorf("write the backup: %w", err)
	}
	return nil
}

func (c *Copy) writeTar(ctx context.Context, w io.Writer) error {
	info, err := json.MarshalIndent(c.Info, "", "  ")
	if err != nil {
		return err
	}
	t := &writer{tar: tar.NewWriter(w)}
	if err := t.add(file{infoName, int64(len(info)), c.Info.At}, bytes.NewReader(info)); err != nil {
		return err
	}
	for _, f := range c.files {
		if err := c.addFile(ctx, t, f); err != nil {
			return err
		}
	}
	sums := t.sums.Bytes()
	if err := t.add(file{sumsName, int64(len(sums)), c.Info.At}, bytes.NewReader(sums)); err != nil {
		return err
	}
	return t.tar.Close()
}

func (c *Copy) addFile(ctx context.Context, t *writer, f file) (err error) {
	from, err := os.Open(filepath.Join(c.dir, f.name))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	name := f.name
	f.name = dataPart + name
	err = t.add(f, io.LimitReader(untilDone{ctx, from}, f.size))
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s became shorter while it was read; try again", name)
	}
	return err
}

// writer writes a tar file and records the digests of its entries.
type writer struct {
	tar  *tar.Writer
	sums bytes.Buffer
}

// add writes an entry. The error is io.ErrUnexpectedEOF if the content is shorter than the file's size.
func (t *writer) add(f file, content io.Reader) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: f.name, Size: f.size, Mode: 0o600, ModTime: f.at.Truncate(time.Second)}
	if err := t.tar.WriteHeader(h); err != nil {
		return err
	}
	sum := sha256.New()
	switch n, err := io.Copy(io.MultiWriter(t.tar, sum), content); {
	case err != nil:
		return err
	case n < f.size:
		return io.ErrUnexpectedEOF
	}
	sumLine(&t.sums, hex.EncodeToString(sum.Sum(nil)), f.name)
	return nil
}

// sumLine adds a line to the digests, in the form that sha256sum reads.
func sumLine(b *bytes.Buffer, digest, name string) { fmt.Fprintf(b, "%s  %s\n", digest, name) }

// untilDone reads until ctx ends.
type untilDone struct {
	ctx  context.Context
	from io.Reader
}

func (r untilDone) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}

// ErrExists means that a file with the backup's name exists. It is not overwritten.
var ErrExists = errors.New("the file exists already; choose another name")

// Save stores an archive as a file that only its owner can read, and returns what it contains. The file gets its name when it is
// complete, on the disk, and has been read back. After an error no file remains.
func Save(ctx context.Context, path string, fill func(context.Context, io.Writer) error) (_ Contents, err error) {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return Contents{}, fmt.Errorf("%s: %w", path, errors.Join(ErrExists, err))
	}
	f, err := os.CreateTemp(filepath.Dir(path), durable.TempPrefix+"*") // 0600
	if err != nil {
		return Contents{}, fmt.Errorf("save the backup: %w", err)
	}
	defer func() {
		if rerr := os.Remove(f.Name()); rerr != nil && !errors.Is(rerr, fs.ErrNotExist) {
			err = errors.Join(err, rerr)
		}
	}()
	c, err := fillFile(ctx, f, fill)
	if err = errors.Join(err, f.Close()); err != nil {
		return Contents{}, err
	}
	switch err := os.Link(f.Name(), path); {
	case errors.Is(err, fs.ErrExist):
		return Contents{}, fmt.Errorf("%s: %w", path, ErrExists)
	case err != nil: // the file system has no second names
		if err := os.Rename(f.Name(), path); err != nil {
			return Contents{}, fmt.Errorf("save the backup: %w", err)
		}
	}
	if err := durable.SyncDir(filepath.Dir(path)); err != nil {
		return Contents{}, fmt.Errorf("save the backup: %w", err)
	}
	return c, nil
}

func fillFile(ctx context.Context, f *os.File, fill func(context.Context, io.Writer) error) (Contents, error) {
	if err := fill(ctx, f); err != nil {
		return Contents{}, err
	}
	if err := f.Sync(); err != nil {
		return Contents{}, fmt.Errorf("save the backup: %w", err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return Contents{}, fmt.Errorf("read the backup back: %w", err)
	}
	c, err := Read(ctx, f, nil)
	if err != nil {
		return Contents{}, fmt.Errorf("read the backup back: %w", err)
	}
	return c, nil
}

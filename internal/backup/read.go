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
	"hash"
	"io"
	"strings"
	"time"

	"github.com/klauspost/compress/zstd"
)

// maxWindow bounds the memory that a compressed file can demand.
const maxWindow = 32 << 20

// Contents is what a backup contains.
type Contents struct {
	Info  Info
	Files int   // with the store
	Bytes int64 // of all files together, uncompressed
}

// Sink receives a file of a backup: its name, relative to the data folder and with slashes, and the time of its last change. It reads
// the content to its end.
type Sink func(name string, at time.Time, content io.Reader) error

// Read reads an archive to its end and verifies it. The error is ErrDamaged if it is incomplete, changed, or contains anything that
// errand does not write: a link, a device, a file outside of the data folder, a name twice. It passes each file to sink, which may be
// nil. What sink got counts only if Read returns no error: the digests are at the end.
func Read(ctx context.Context, r io.Reader, sink Sink) (Contents, error) {
	z, err := zstd.NewReader(untilDone{ctx, r}, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return Contents{}, damaged("%w", err)
	}
	defer z.Close()
	t := &reader{tar: tar.NewReader(z), sink: sink, names: map[string]bool{}}
	if t.sink == nil {
		t.sink = func(_ string, _ time.Time, content io.Reader) error {
			_, err := io.Copy(io.Discard, content)
			return err
		}
	}
	if err = t.read(); err == nil {
		err = atEnd(z)
	}
	if ctx.Err() != nil {
		return Contents{}, ctx.Err()
	}
	return t.found, err
}

// atEnd returns an error unless the stream ends here, with the right checksum.
func atEnd(z io.Reader) error {
	n, err := io.Copy(io.Discard, io.LimitReader(z, 1))
	switch {
	case err != nil:
		return damaged("%w", err)
	case n > 0:
		return damaged("there is more after its end")
	}
	return nil
}

// reader reads a tar file.
type reader struct {
	tar   *tar.Reader
	sink  Sink
	found Contents
	sums  bytes.Buffer    // as they have to be in the archive
	names map[string]bool // of files, and of folders with a slash at their end
}

func (t *reader) read() error {
	for n := 0; ; n++ {
		h, err := t.tar.Next()
		switch {
		case errors.Is(err, io.EOF):
			return damaged("it is truncated")
		case err != nil:
			return damaged("%w", err)
		case h.Typeflag != tar.TypeReg:
			return damaged("%.200q is no regular file", h.Name)
		}
		switch name, isFile := strings.CutPrefix(h.Name, dataPart); {
		case n == 0 && h.Name == infoName:
			err = t.info(h)
		case n == 0:
			err = damaged("it begins with %.200q", h.Name)
		case n == 1 && name != storeName:
			err = damaged("the store is missing")
		case h.Name == sumsName:
			return t.end(h)
		case !isFile:
			err = damaged("%.200q does not belong into it", h.Name)
		default:
			err = t.file(h, name)
		}
		if err != nil {
			return err
		}
	}
}

func (t *reader) info(h *tar.Header) error {
	if h.Size > maxInfo {
		return damaged("%s is too large", infoName)
	}
	data, err := io.ReadAll(t.tar)
	if err != nil {
		return damaged("%w", err)
	}
	if err := json.Unmarshal(data, &t.found.Info); err != nil {
		return damaged("%s: %w", infoName, err)
	}
	if f := t.found.Info.Format; f != Format {
		return fmt.Errorf("the backup has the format %d, and this errand reads only the format %d; use the errand that made it, %.100q", f, Format, t.found.Info.Errand)
	}
	sum := sha256.Sum256(data)
	sumLine(&t.sums, hex.EncodeToString(sum[:]), infoName)
	return nil
}

func (t *reader) file(h *tar.Header, name string) error {
	if err := t.claim(name); err != nil {
		return damaged("%w", err)
	}
	from := &summing{from: t.tar, hash: sha256.New()}
	if err := t.sink(name, h.ModTime, from); err != nil {
		if from.err != nil {
			return damaged("%s: %w", name, from.err)
		}
		return err
	}
	if from.n != h.Size {
		return fmt.Errorf("read %d of %d bytes of %s", from.n, h.Size, name)
	}
	sumLine(&t.sums, hex.EncodeToString(from.hash.Sum(nil)), h.Name)
	t.found.Files++
	t.found.Bytes += from.n
	return nil
}

// claim records a name. It is an error if a file or a folder has it already.
func (t *reader) claim(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	if t.found.Files >= maxFiles || t.sums.Len() > maxSums {
		return fmt.Errorf("it has more than %d files", maxFiles)
	}
	if t.names[name] || t.names[name+"/"] {
		return fmt.Errorf("it has %.200q twice", name)
	}
	t.names[name] = true
	for i, c := range name {
		if c != '/' {
			continue
		}
		if t.names[name[:i]] {
			return fmt.Errorf("%.200q is a file and a folder", name[:i])
		}
		t.names[name[:i+1]] = true
	}
	return nil
}

// end compares the digests, which are the last entry.
func (t *reader) end(h *tar.Header) error {
	if t.found.Files == 0 {
		return damaged("the store is missing")
	}
	if h.Size != int64(t.sums.Len()) {
		return damaged("its digests do not match")
	}
	data, err := io.ReadAll(t.tar)
	if err != nil {
		return damaged("%w", err)
	}
	if !bytes.Equal(data, t.sums.Bytes()) {
		return damaged("its digests do not match")
	}
	if _, err := t.tar.Next(); !errors.Is(err, io.EOF) {
		return damaged("there is more after its digests")
	}
	return nil
}

// summing hashes and counts what is read, and keeps the error.
type summing struct {
	from io.Reader
	hash hash.Hash
	n    int64
	err  error
}

func (s *summing) Read(p []byte) (int, error) {
	n, err := s.from.Read(p)
	_, _ = s.hash.Write(p[:n])
	s.n += int64(n)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

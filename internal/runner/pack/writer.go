package pack

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"time"

	"github.com/klauspost/compress/zstd"
)

// The names in a stream: its first and last entries, and its parts in order.
const (
	openingName  = "errand-pack"
	manifestName = "manifest.json"

	partGit     = "git"     // "index", "deleted", and "state/…" of an unfinished git operation
	partObjects = "objects" // one thin pack, split into numbered pieces
	partLarge   = "lfs"     // large files of Git LFS, named by their SHA-256
	partWork    = "work"    // files of the checkout
	partHome    = "home"    // sessions
	partKeep    = "keep"    // see keepPrefix
)

// order is the order of the parts.
var order = [...]string{partGit, partObjects, partLarge, partWork, partHome, partKeep}

// entry is one file, link or folder of a part.
type entry struct {
	part, name string // name is within the part
	kind       byte   // as in a tar header
	mode       fs.FileMode
	time       time.Time // zero if irrelevant
	size       int64
	link       string
}

// sum accumulates the sums of a part.
type sum struct {
	part Part
	hash hash.Hash
}

func newSum(name string) *sum { return &sum{part: Part{Name: name}, hash: sha256.New()} }

// begin adds an entry. The caller then writes its content to the hash.
func (s *sum) begin(e entry) {
	var stamp int64
	if !e.time.IsZero() {
		stamp = e.time.UnixNano()
	}
	fmt.Fprintf(s.hash, "%c %o %d %d %d %d\n%s%s", e.kind, e.mode, e.size, stamp, len(e.name), len(e.link), e.name, e.link)
	s.part.Entries++
	s.part.Bytes += e.size
}

func (s *sum) end() Part {
	s.part.SHA256 = hex.EncodeToString(s.hash.Sum(nil))
	return s.part
}

// writer writes a stream.
type writer struct {
	ctx      context.Context
	zip      *zstd.Encoder
	tar      *tar.Writer
	manifest *Manifest
	sum      *sum
	left     int64 // bytes that may still be written
}

func newWriter(ctx context.Context, to io.Writer, m *Manifest, limit int64) (*writer, error) {
	z, err := zstd.NewWriter(to, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(2))
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	w := &writer{ctx: ctx, zip: z, tar: tar.NewWriter(z), manifest: m, left: limit}
	opening := fmt.Appendf(nil, "{\"form\":%d}\n", Form)
	return w, w.writePlain(openingName, opening)
}

// writePlain writes an entry that belongs to no part.
func (w *writer) writePlain(name string, data []byte) error {
	head := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600, Size: int64(len(data)), Format: tar.FormatPAX}
	if err := w.tar.WriteHeader(head); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if _, err := w.tar.Write(data); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

// begin ends the previous part and begins the next one. A part without entries is not listed.
func (w *writer) begin(part string) {
	w.end()
	w.sum = newSum(part)
}

func (w *writer) end() {
	if w.sum != nil && w.sum.part.Entries > 0 {
		w.manifest.Parts = append(w.manifest.Parts, w.sum.end())
	}
	w.sum = nil
}

// add writes an entry of the current part. It fails unless content has exactly e.size bytes.
func (w *writer) add(e entry, content io.Reader) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	e.part = w.sum.part.Name
	if w.left -= e.size; w.left < 0 {
		return fmt.Errorf("%w: %s", ErrTooLarge, truncate(e.name, 300))
	}
	if w.manifest.Entries()+w.sum.part.Entries >= maxEntries {
		return fmt.Errorf("%w: more than %d files", ErrTooLarge, maxEntries)
	}
	head := &tar.Header{
		Typeflag: e.kind,
		Name:     e.part + "/" + e.name,
		Linkname: e.link,
		Mode:     int64(e.mode),
		Size:     e.size,
		ModTime:  e.time,
		Format:   tar.FormatPAX,
	}
	if err := w.tar.WriteHeader(head); err != nil {
		return fmt.Errorf("write %q: %w", truncate(head.Name, 300), err)
	}
	w.sum.begin(e)
	if e.size == 0 {
		return nil
	}
	n, err := io.Copy(io.MultiWriter(w.tar, w.sum.hash), &ctxReader{ctx: w.ctx, from: io.LimitReader(content, e.size)})
	if err == nil && n != e.size {
		err = errors.New("it was truncated while being read")
	}
	if err != nil {
		return fmt.Errorf("pack %s: %w", truncate(head.Name, 300), err)
	}
	return nil
}

// finish writes the manifest and the stream's end.
func (w *writer) finish() error {
	w.end()
	data, err := json.Marshal(w.manifest)
	if err != nil {
		return fmt.Errorf("encode manifest: %w", err)
	}
	if err := w.writePlain(manifestName, data); err != nil {
		return err
	}
	if err := errors.Join(w.tar.Close(), w.zip.Close()); err != nil {
		return fmt.Errorf("end the archive: %w", err)
	}
	return nil
}

// abandon releases the writer without completing the stream.
func (w *writer) abandon() {
	w.zip.Reset(io.Discard) // otherwise Close would write a valid end
	_ = w.zip.Close()
}

// ctxReader reads until its context ends.
type ctxReader struct {
	ctx  context.Context
	from io.Reader
}

func (p *ctxReader) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	return p.from.Read(b)
}

package pack

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/errand-bot/errand/internal/runner/work"
)

// overhead bounds the size that names and other headers add to a stream's content, in bytes.
const overhead = 1 << 30

// source is the origin of a stream. It records its own error, which is not an error of the stream.
type source struct {
	from io.Reader
	err  error
}

func (s *source) Read(b []byte) (int, error) {
	n, err := s.from.Read(b)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// read processes an untrusted stream and calls each for every entry of its parts, which need not read the content. Each
// entry is validated before; the sums are compared with the manifest at the end.
func read(r io.Reader, limit int64, each func(entry, io.Reader) error) (Manifest, error) {
	from := &source{from: r}
	z, err := zstd.NewReader(from, zstd.WithDecoderMaxWindow(64<<20), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
	if err != nil {
		return Manifest{}, fmt.Errorf("decompress: %w", err)
	}
	defer z.Close()
	rd := &reader{raw: io.LimitReader(z, limit+overhead), left: limit, each: each}
	rd.tar = tar.NewReader(rd.raw)
	m, err := rd.readAll()
	if from.err != nil {
		return Manifest{}, fmt.Errorf("read the archive: %w", from.err)
	}
	return m, err
}

type reader struct {
	raw   io.Reader
	tar   *tar.Reader
	left  int64
	each  func(entry, io.Reader) error
	parts []Part
	sum   *sum
	keeps int // number of caches that the entries refer to
	count int
}

func (r *reader) readAll() (Manifest, error) {
	head, err := r.next()
	if err != nil {
		return Manifest{}, err
	}
	if head.Name != openingName {
		return Manifest{}, fmt.Errorf("%w: it has no header of errand", ErrMalformed)
	}
	opening, err := r.readSmall(head)
	if err != nil {
		return Manifest{}, err
	}
	if string(opening) != fmt.Sprintf("{\"form\":%d}\n", Form) {
		return Manifest{}, fmt.Errorf("%w: it is of another version: %q", ErrMalformed, truncate(string(opening), 100))
	}
	for {
		if head, err = r.next(); err != nil {
			return Manifest{}, err
		}
		if head.Name == manifestName {
			break
		}
		if err := r.readEntry(head); err != nil {
			return Manifest{}, err
		}
	}
	data, err := r.readSmall(head)
	if err != nil {
		return Manifest{}, err
	}
	return r.close(data)
}

// close reads the manifest, and checks that the stream ends after it.
func (r *reader) close(data []byte) (Manifest, error) {
	if r.sum != nil {
		r.parts = append(r.parts, r.sum.end())
	}
	m, err := decodeManifest(data)
	if err != nil {
		return Manifest{}, err
	}
	if !slices.Equal(m.Parts, r.parts) {
		return Manifest{}, fmt.Errorf("%w: its parts do not match its manifest", ErrMalformed)
	}
	if r.keeps > len(m.Keep) {
		return Manifest{}, fmt.Errorf("%w: it has a cache that is not in its manifest", ErrMalformed)
	}
	if _, err := r.tar.Next(); !errors.Is(err, io.EOF) {
		if err == nil {
			err = fmt.Errorf("%w: it continues after its manifest", ErrMalformed)
		}
		return Manifest{}, classifyError(err)
	}
	if n, err := io.Copy(io.Discard, io.LimitReader(r.raw, 1<<20)); err != nil || n == 1<<20 {
		return Manifest{}, classifyError(errors.Join(err, errors.New("read the end of the archive")))
	}
	return m, nil
}

// classifyError distinguishes truncated and malformed streams.
func classifyError(err error) error {
	switch {
	case errors.Is(err, ErrMalformed) || errors.Is(err, ErrCut):
		return err
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return ErrCut
	default:
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
}

func (r *reader) next() (*tar.Header, error) {
	head, err := r.tar.Next()
	if err != nil {
		return nil, classifyError(err)
	}
	for key := range head.PAXRecords {
		if strings.HasPrefix(key, "GNU.sparse") {
			return nil, fmt.Errorf("%w: %q is sparse", ErrMalformed, truncate(head.Name, 100))
		}
	}
	return head, nil
}

// readSmall reads the content of an entry that belongs to no part.
func (r *reader) readSmall(head *tar.Header) ([]byte, error) {
	if head.Typeflag != tar.TypeReg || head.Size > maxManifest {
		return nil, fmt.Errorf("%w: %s", ErrMalformed, head.Name)
	}
	data, err := io.ReadAll(r.tar)
	if err != nil {
		return nil, classifyError(err)
	}
	return data, nil
}

// readEntry validates an entry of a part and passes it on.
func (r *reader) readEntry(head *tar.Header) error {
	e, err := parse(head)
	if err != nil {
		return fmt.Errorf("%w: %q: %w", ErrMalformed, truncate(head.Name, 300), err)
	}
	if err := r.enter(e); err != nil {
		return err
	}
	if r.left -= e.size; r.left < 0 {
		return fmt.Errorf("%w: it holds more than is allowed", ErrMalformed)
	}
	if r.count++; r.count > maxEntries {
		return fmt.Errorf("%w: it has more than %d entries", ErrMalformed, maxEntries)
	}
	if e.part == partKeep {
		first, _, _ := strings.Cut(e.name, "/")
		n, _ := keepIndex(first) // parse has validated it
		r.keeps = max(r.keeps, n+1)
	}
	r.sum.begin(e)
	in, large := &content{from: r.tar, to: r.sum.hash}, sha256.New()
	if e.part == partLarge {
		in.to = io.MultiWriter(in.to, large)
	}
	if err := r.each(e, in); err != nil {
		if in.err != nil {
			return classifyError(in.err)
		}
		return err
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return classifyError(err)
	}
	if e.part == partLarge && hex.EncodeToString(large.Sum(nil)) != e.name {
		return fmt.Errorf("%w: large file %s does not match its name", ErrMalformed, e.name)
	}
	return nil
}

// content is the content of an entry while it is read. It records its own error.
type content struct {
	from io.Reader
	to   io.Writer
	err  error
}

func (c *content) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	_, _ = c.to.Write(b[:n]) // writing to a hash never fails
	if err != nil && !errors.Is(err, io.EOF) {
		c.err = err
	}
	return n, err
}

// enter begins the entry's part if it differs from the current one.
func (r *reader) enter(e entry) error {
	if r.sum != nil && r.sum.part.Name == e.part {
		return nil
	}
	if r.sum != nil {
		if slices.Index(order[:], r.sum.part.Name) > slices.Index(order[:], e.part) {
			return fmt.Errorf("%w: %s after %s", ErrMalformed, e.part, r.sum.part.Name)
		}
		r.parts = append(r.parts, r.sum.end())
	}
	r.sum = newSum(e.part)
	return nil
}

// parse converts a header into an entry and refuses entries that Pack never writes.
func parse(head *tar.Header) (entry, error) {
	part, name, _ := strings.Cut(head.Name, "/")
	e := entry{part: part, name: name, kind: head.Typeflag, mode: fs.FileMode(head.Mode), size: head.Size, link: head.Linkname}
	if head.ModTime.UnixNano() != 0 {
		e.time = head.ModTime
	}
	switch {
	case !slices.Contains(order[:], part):
		return e, errors.New("no such part")
	case head.Mode&^0o777 != 0:
		return e, errors.New("its mode is out of bounds")
	case !localName(name):
		return e, errors.New("its name is out of bounds")
	}
	switch {
	case e.kind == tar.TypeReg && e.link == "" && e.size >= 0:
	case e.kind == tar.TypeDir && part == partKeep && e.size == 0 && e.link == "":
	case e.kind == tar.TypeSymlink && (part == partKeep || part == partWork) && e.size == 0 && validLink(e.link):
	default:
		return e, errors.New("its kind is not allowed here")
	}
	return e, checkPart(e)
}

// localName reports whether a name is clean and stays below its directory.
func localName(name string) bool {
	if name == "" || len(name) > 4096 || strings.ContainsRune(name, 0) {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." || len(part) > 255 {
			return false
		}
	}
	return true
}

func validLink(target string) bool {
	return target != "" && len(target) < 4096 && !strings.ContainsRune(target, 0)
}

// checkPart refuses names that are invalid in their part.
func checkPart(e entry) error {
	ok := true
	switch first, rest, _ := strings.Cut(e.name, "/"); e.part {
	case partGit:
		name, _, _ := strings.Cut(rest, "/")
		ok = e.name == gitIndex || e.name == gitDeleted || first == gitState && slices.Contains(work.InProgressFiles(), name)
	case partObjects:
		_, err := strconv.ParseUint(e.name, 10, 31)
		ok = len(e.name) == 8 && err == nil
	case partLarge:
		ok = isLarge(e.name)
	case partWork:
		ok = !hasDotGit(e.name)
	case partHome:
		ok = isSession(e.name)
	case partKeep:
		_, ok = keepIndex(first)
	}
	if !ok {
		return errors.New("it is not allowed in its part")
	}
	return nil
}

// hasDotGit reports whether a path leads into a repository's git folder.
func hasDotGit(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if strings.EqualFold(part, ".git") {
			return true
		}
	}
	return false
}

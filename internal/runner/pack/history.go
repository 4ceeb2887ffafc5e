package pack

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/runner/work"
)

// history lists the objects to transfer.
type history struct {
	want []string
}

// pieceSize is the size of one entry of the pack of objects, in bytes.
const pieceSize = 4 << 20

// history reads HEAD, branches, tags and stashes, and lists the objects to transfer.
func (p *packer) history(ctx context.Context, blobs []string, state []item) (history, error) {
	var h history
	if _, err := p.git.Commit(ctx, p.spec.Base); err != nil {
		return h, fmt.Errorf("base %s: %w", p.spec.Base, ErrNoBase)
	}
	head, err := p.git.Commit(ctx, "HEAD")
	if err != nil {
		return h, fmt.Errorf("read HEAD: %w", err)
	}
	p.m.Head = head
	branch, err := p.git.Run(ctx, nil, "rev-parse", "--symbolic-full-name", "HEAD")
	if err != nil {
		return h, fmt.Errorf("read HEAD's branch: %w", err)
	}
	if name := strings.TrimSpace(string(branch)); strings.HasPrefix(name, "refs/heads/") {
		p.m.Branch = name
	}
	if err := p.refs(ctx); err != nil {
		return h, err
	}
	if err := p.stashes(); err != nil {
		return h, err
	}
	h.want = append(h.want, head)
	for _, r := range append(p.m.Refs, p.m.Stash...) {
		h.want = append(h.want, r.ID)
	}
	mentioned, err := p.referencedObjects(ctx, state)
	if err != nil {
		return h, err
	}
	h.want = append(append(h.want, mentioned...), blobs...)
	return h, nil
}

// refs reads local branches and tags.
func (p *packer) refs(ctx context.Context) error {
	out, err := p.git.Run(ctx, nil, "for-each-ref", fmt.Sprintf("--count=%d", maxRefs+1), "--format=%(objectname) %(refname)", "refs/heads", "refs/tags")
	if err != nil {
		return fmt.Errorf("list branches: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		id, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch {
		case !ok || !changeset.IsID(id):
			return fmt.Errorf("list branches: unexpected %q", truncate(line, 200))
		case !utf8.ValidString(name):
			p.m.recordOmitted(name, "its name is not UTF-8", 0)
		case len(p.m.Refs) == maxRefs:
			p.m.recordOmitted(name, "there are too many branches and tags", 0)
		default:
			p.m.Refs = append(p.m.Refs, Ref{Name: name, ID: id})
		}
	}
	return nil
}

// stashes reads the reflog of refs/stash, which is the list of stashes.
func (p *packer) stashes() error {
	data, err := p.readSmall(".git/logs/refs/stash", 1<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read stashes: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		head, message, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		fields := strings.Fields(head)
		if len(fields) < 2 || !changeset.IsID(fields[1]) {
			continue
		}
		if len(p.m.Stash) == maxRefs {
			p.m.recordOmitted("stash", "there are too many stashes", 0)
			break
		}
		p.m.Stash = append(p.m.Stash, Ref{ID: fields[1], Name: strings.ReplaceAll(truncate(message, 500), "\x00", "")})
	}
	return nil
}

// readSmall reads a file of at most most bytes below the checkout.
func (p *packer) readSmall(name string, most int64) ([]byte, error) {
	f, err := openRegular(p.dir, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", name, most)
	}
	return data, err
}

// Limits on the state of an unfinished git operation.
const (
	maxState     = 1000
	maxStateFile = 1 << 20
)

// inProgressFiles lists the files with the state of an unfinished git operation.
func (p *packer) inProgressFiles() ([]item, error) {
	var items []item
	for _, top := range work.InProgressFiles() {
		err := fs.WalkDir(p.dir.FS(), path.Join(".git", top), func(name string, d fs.DirEntry, err error) error {
			if err != nil {
				if errors.Is(err, fs.ErrNotExist) {
					return nil
				}
				return err
			}
			if d.IsDir() {
				return nil
			}
			it, reason := statItem(p.dir, name, path.Join(gitState, strings.TrimPrefix(name, ".git/")), false)
			if reason != "" || it.entry.kind != tar.TypeReg || it.entry.size > maxStateFile || len(items) >= maxState {
				p.m.recordOmitted(name, "it is too large for the state of a git operation", it.entry.size)
				return nil
			}
			items = append(items, it)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read the state of an unfinished git operation: %w", err)
		}
	}
	return items, nil
}

var objectID = regexp.MustCompile(`\b[0-9a-f]{40}\b`)

// referencedObjects lists the existing objects whose ids occur in those files.
func (p *packer) referencedObjects(ctx context.Context, state []item) ([]string, error) {
	var ids bytes.Buffer
	for _, it := range state {
		data, err := p.readSmall(it.path, maxStateFile)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", it.path, err)
		}
		for _, id := range objectID.FindAll(data, maxState) {
			ids.Write(append(id[:40:40], '\n'))
		}
	}
	if ids.Len() == 0 {
		return nil, nil
	}
	out, err := p.git.Run(ctx, &ids, "cat-file", "--batch-check=%(objectname) %(objecttype)")
	if err != nil {
		return nil, fmt.Errorf("find objects: %w", err)
	}
	var found []string
	for line := range strings.Lines(string(out)) {
		if id, kind, _ := strings.Cut(strings.TrimSpace(line), " "); kind != "missing" {
			found = append(found, id)
		}
	}
	return found, nil
}

// objects writes the pack of objects that are not reachable from base, in pieces.
func (p *packer) objects(ctx context.Context, h history) error {
	if !p.anyNew(h) {
		return nil
	}
	var in bytes.Buffer
	for _, id := range h.want {
		in.WriteString(id + "\n")
	}
	in.WriteString("^" + p.spec.Base + "\n")
	to := &pieces{out: p.out, buf: make([]byte, 0, pieceSize)}
	err := p.git.Stream(ctx, packTimeout, &in, to, "pack-objects", "--revs", "--thin", "--stdout", "-q", "--delta-base-offset")
	if to.err == nil && err == nil {
		err = to.flush()
	}
	switch {
	case errors.Is(to.err, ErrTooLarge), errors.Is(err, ErrTooLarge):
		return fmt.Errorf("%w: it is in commits, of which the largest files are %s", ErrTooLarge, p.largest(ctx, h))
	case to.err != nil:
		return fmt.Errorf("pack objects: %w", to.err)
	case err != nil:
		return fmt.Errorf("pack objects: %w", err)
	}
	return nil
}

// largest formats the five largest files in the commits to transfer, as far as git reports them.
func (p *packer) largest(ctx context.Context, h history) string {
	in := strings.NewReader(strings.Join(h.want, "\n") + "\n^" + p.spec.Base + "\n")
	objects, err := p.git.Run(ctx, in, "rev-list", "--objects", "--stdin")
	if err != nil {
		return "unknown"
	}
	sizes, err := p.git.Run(ctx, bytes.NewReader(objects), "cat-file", "--batch-check=%(objectsize) %(objecttype) %(rest)")
	if err != nil {
		return "unknown"
	}
	var blobs []item
	for line := range strings.Lines(string(sizes)) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
		size, err := strconv.ParseInt(fields[0], 10, 64)
		if err == nil && len(fields) == 3 && fields[1] == "blob" {
			blobs = append(blobs, item{path: fields[2], entry: entry{size: size}})
		}
	}
	return largest(blobs)
}

func (p *packer) anyNew(h history) bool {
	for _, id := range h.want {
		if id != p.spec.Base {
			return true
		}
	}
	return false
}

// pieces splits the data written to it into numbered entries.
type pieces struct {
	out *writer
	buf []byte
	n   int
	err error
}

func (p *pieces) Write(b []byte) (int, error) {
	written := 0
	for len(b) > 0 {
		n := min(len(b), cap(p.buf)-len(p.buf))
		p.buf = append(p.buf, b[:n]...)
		b, written = b[n:], written+n
		if len(p.buf) == cap(p.buf) {
			if err := p.flush(); err != nil {
				p.err = err
				return written, err
			}
		}
	}
	return written, nil
}

func (p *pieces) flush() error {
	if len(p.buf) == 0 {
		return nil
	}
	e := entry{name: fmt.Sprintf("%08d", p.n), kind: tar.TypeReg, mode: 0o600, size: int64(len(p.buf))}
	err := p.out.add(e, bytes.NewReader(p.buf))
	p.n, p.buf = p.n+1, p.buf[:0]
	return err
}

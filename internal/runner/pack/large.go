package pack

import (
	"archive/tar"
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/errand-bot/errand/internal/changeset"
)

// maxLarge bounds the total size of transferred large files in bytes. It is above the limit for publishing, so that
// work which has to be corrected is not lost.
const maxLarge = 256 << 20

// largeStore is the directory of Git LFS objects, below a checkout.
const largeStore = ".git/lfs/objects"

// largePath returns the path of a large file below a checkout.
func largePath(oid string) string { return path.Join(largeStore, oid[:2], oid[2:4], oid) }

// isLarge reports whether a name is that of a large file.
func isLarge(name string) bool {
	sum, err := hex.DecodeString(name)
	return err == nil && len(sum) == sha256.Size && strings.ToLower(name) == name
}

// large lists the large files to which the transferred commits, stashes, index and changed files refer. Those of the
// base can be fetched again.
func (p *packer) large(ctx context.Context, h history, files []item) ([]item, error) {
	if info, err := p.dir.Lstat(largeStore); err != nil || !info.IsDir() || p.throughLink(p.dir, largeStore) {
		return nil, nil // large files were never used here
	}
	named, err := p.pointers(ctx, h)
	if err != nil {
		return nil, fmt.Errorf("find large files: %w", err)
	}
	for _, it := range files {
		if it.entry.kind != tar.TypeReg || it.entry.size >= changeset.MaxPointer {
			continue
		}
		if data, err := p.readSmall(it.path, changeset.MaxPointer); err == nil { // packing the file reports the error
			if ptr, _ := changeset.ParsePointer(data); ptr.OID != "" {
				named[ptr] = it.path
			}
		}
	}
	var items []item
	left := int64(maxLarge)
	for _, ptr := range bySize(named) { // as many as fit
		it, reason := p.largeFile(ptr)
		if reason == "" && it.entry.size > left {
			reason = fmt.Sprintf("its large file does not fit into %d MiB", maxLarge>>20)
		}
		if reason != "" {
			p.m.recordOmitted(named[ptr], reason, ptr.Size)
			continue
		}
		left -= it.entry.size
		items = append(items, it)
	}
	return items, nil
}

// bySize returns the pointers without duplicates, smallest first.
func bySize(named map[changeset.Pointer]string) []changeset.Pointer {
	var list []changeset.Pointer
	for ptr := range named {
		list = append(list, ptr)
	}
	slices.SortFunc(list, func(a, b changeset.Pointer) int {
		return cmp.Or(cmp.Compare(a.Size, b.Size), cmp.Compare(a.OID, b.OID))
	})
	return slices.CompactFunc(list, func(a, b changeset.Pointer) bool { return a.OID == b.OID })
}

// largeFile returns the item of a large file if it exists and matches the pointer.
func (p *packer) largeFile(ptr changeset.Pointer) (it item, reason string) {
	const other = "its large file is not on the VM"
	name := largePath(ptr.OID)
	it, reason = statItem(p.dir, name, ptr.OID, false)
	if reason != "" || it.entry.kind != tar.TypeReg || it.entry.size != ptr.Size || p.throughLink(p.dir, path.Dir(name)) {
		return it, other
	}
	it.entry.mode = 0o644
	if it.entry.size > maxLarge {
		return it, "" // it is left out, so it need not be read
	}
	f, err := openRegular(p.dir, name)
	if err != nil {
		return it, other
	}
	defer func() { _ = f.Close() }()
	h := sha256.New()
	if _, err := io.Copy(h, io.LimitReader(f, ptr.Size+1)); err != nil || hex.EncodeToString(h.Sum(nil)) != ptr.OID {
		return it, other
	}
	return it, ""
}

// pointsTo reports whether a git object is the pointer to a stored large file.
func (p *packer) pointsTo(ctx context.Context, id, oid string) bool {
	if _, err := p.dir.Lstat(largePath(oid)); err != nil {
		return false
	}
	found, err := readPointers(ctx, p.git, map[string]bool{id: true})
	return err == nil && found[id].OID == oid
}

// pointers returns the pointers among the objects to transfer, each with a path.
func (p *packer) pointers(ctx context.Context, h history) (map[changeset.Pointer]string, error) {
	in := strings.NewReader(strings.Join(h.want, "\n") + "\n^" + p.spec.Base + "\n")
	listed, err := p.git.Run(ctx, in, "rev-list", "--objects", "--stdin")
	if err != nil {
		return nil, err
	}
	paths := map[string]string{} // by object
	for line := range strings.Lines(string(listed)) {
		id, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		paths[id] = cmp.Or(name, "a file in the index")
	}
	found, err := readPointers(ctx, p.git, paths)
	named := map[changeset.Pointer]string{}
	for id, ptr := range found {
		named[ptr] = paths[id]
	}
	return named, err
}

// runner runs git in one workspace.
type runner interface {
	Run(ctx context.Context, in io.Reader, args ...string) ([]byte, error)
}

// readPointers returns the pointers among the objects, by object id.
func readPointers[V any](ctx context.Context, git runner, objects map[string]V) (map[string]changeset.Pointer, error) {
	var all, small bytes.Buffer
	for id := range objects {
		all.WriteString(id + "\n")
	}
	sizes, err := git.Run(ctx, &all, "cat-file", "--batch-check=%(objectname) %(objecttype) %(objectsize)")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(sizes)) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[1] != "blob" {
			continue
		}
		if n, err := strconv.Atoi(fields[2]); err == nil && n > 0 && n < changeset.MaxPointer {
			small.WriteString(fields[0] + "\n")
		}
	}
	contents, err := git.Run(ctx, &small, "cat-file", "--batch")
	if err != nil {
		return nil, err
	}
	return parseBatch(contents)
}

// parseBatch parses the output of `cat-file --batch` for small objects: "ID blob SIZE", the content, a newline.
func parseBatch(data []byte) (map[string]changeset.Pointer, error) {
	found := map[string]changeset.Pointer{}
	in := bufio.NewReader(bytes.NewReader(data))
	for {
		head, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) && head == "" {
			return found, nil
		}
		fields := strings.Fields(head)
		if err != nil || len(fields) != 3 {
			return nil, fmt.Errorf("unexpected %q", truncate(head, 200))
		}
		size, err := strconv.Atoi(fields[2])
		if err != nil || size < 0 || size >= changeset.MaxPointer {
			return nil, fmt.Errorf("unexpected %q", truncate(head, 200))
		}
		content := make([]byte, size+1)
		if _, err := io.ReadFull(in, content); err != nil {
			return nil, fmt.Errorf("read object %s: %w", fields[0], err)
		}
		if ptr, _ := changeset.ParsePointer(content[:size]); ptr.OID != "" {
			found[fields[0]] = ptr
		}
	}
}

package pack

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// item is a file, link or folder on disk to be written as an entry.
type item struct {
	root  *os.Root
	path  string // below root
	entry entry
}

// Reasons for leaving out a path.
const (
	reasonSpecial = "neither a file nor a link"
	reasonRepo    = "another repository"
	reasonName    = "its name is too long"
	reasonGone    = "it cannot be read"
)

// statItem returns the item for a path, or the reason why it cannot be packed. timed keeps its modification time.
func statItem(root *os.Root, path, name string, timed bool) (it item, reason string) {
	info, err := root.Lstat(path)
	if err != nil {
		return item{}, reasonGone
	}
	return itemOf(root, path, name, info, timed)
}

func itemOf(root *os.Root, path, name string, info fs.FileInfo, timed bool) (it item, reason string) {
	it = item{root: root, path: path, entry: entry{name: name, mode: info.Mode().Perm()}}
	if timed {
		it.entry.time = stamp(info.ModTime())
	}
	switch mode := info.Mode(); {
	case !localName(name):
		return it, reasonName
	case mode.IsRegular():
		it.entry.kind, it.entry.size = tar.TypeReg, info.Size()
	case mode.IsDir():
		it.entry.kind = tar.TypeDir
	case mode&fs.ModeSymlink != 0:
		target, err := root.Readlink(path)
		if err != nil || !validLink(target) {
			return it, reasonGone
		}
		it.entry.kind, it.entry.link, it.entry.mode = tar.TypeSymlink, target, 0o777
	default:
		return it, reasonSpecial
	}
	return it, ""
}

// stamp returns a time that the stream can represent, or zero.
func stamp(t time.Time) time.Time {
	if y := t.Year(); y < 1980 || y > 2200 {
		return time.Time{}
	}
	return t
}

// addItems writes items as entries of the current part.
func (p *packer) addItems(items []item) error {
	for _, it := range items {
		if err := p.addItem(it); err != nil {
			return err
		}
	}
	return nil
}

func (p *packer) addItem(it item) error {
	if it.entry.kind != tar.TypeReg {
		return p.out.add(it.entry, nil)
	}
	f, err := openRegular(it.root, it.path)
	if err != nil {
		return fmt.Errorf("pack %s: %w", truncate(it.path, 300), err)
	}
	defer func() { _ = f.Close() }()
	return p.out.add(it.entry, f)
}

// addData writes an entry from memory, unless it is empty.
func (p *packer) addData(name string, data []byte) error {
	if len(data) == 0 {
		return nil
	}
	return p.out.add(entry{name: name, kind: tar.TypeReg, mode: 0o600, size: int64(len(data))}, bytes.NewReader(data))
}

// openRegular opens a regular file without blocking and without following a link in its last component. It refuses
// other kinds of files.
func openRegular(root *os.Root, path string) (*os.File, error) {
	f, err := root.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, errors.Join(err, errors.New("it is no longer a regular file"))
	}
	return f, nil
}

// walk lists the files at and below a path, which may not exist, and, with all, also links and folders. The names of
// items begin with prefix.
func (p *packer) walk(ctx context.Context, root *os.Root, top, prefix string, all bool) (items []item, err error) {
	err = fs.WalkDir(root.FS(), top, func(name string, d fs.DirEntry, err error) error {
		if cerr := ctx.Err(); cerr != nil {
			return cerr
		}
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				p.m.recordOmitted(name, reasonGone, 0)
			}
			return nil
		}
		if !all && !d.IsDir() && !d.Type().IsRegular() {
			p.m.recordOmitted(name, reasonSpecial, 0)
			return nil
		}
		if d.IsDir() && !all {
			return nil
		}
		it, reason := statItem(root, name, path.Join(prefix, strings.TrimPrefix(strings.TrimPrefix(name, top), "/")), true)
		if reason != "" {
			p.m.recordOmitted(name, reason, 0)
			return nil
		}
		if len(items) >= maxEntries {
			return fmt.Errorf("%w: more than %d files in %s", ErrTooLarge, maxEntries, top)
		}
		items = append(items, it)
		return nil
	})
	return items, err
}

// sessions lists the files of the agent's sessions. No parent folder may be a link.
func (p *packer) sessions(ctx context.Context) ([]item, error) {
	var items []item
	seen := map[string]bool{}
	for _, top := range p.spec.Sessions {
		if p.throughLink(p.home, top) {
			p.m.recordOmitted("~/"+top, "a link leads there", 0)
			continue
		}
		found, err := p.walk(ctx, p.home, top, top, false)
		if err != nil {
			return nil, err
		}
		for _, it := range found {
			if !seen[it.path] {
				seen[it.path] = true
				items = append(items, it)
			}
		}
	}
	return items, nil
}

// throughLink reports whether a part of a path is a symbolic link.
func (p *packer) throughLink(root *os.Root, name string) bool {
	for i, c := range name + "/" {
		if c != '/' {
			continue
		}
		if info, err := root.Lstat(name[:i]); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return true
		}
	}
	return false
}

// listCaches lists the caches that fit into the limit, in the given order.
func (p *packer) listCaches(ctx context.Context) ([]item, error) {
	var items []item
	left := p.spec.KeepLimit
	for _, name := range p.spec.Keep {
		root, top := p.dir, name
		if rest, ok := strings.CutPrefix(name, "~/"); ok {
			root, top = p.home, rest
		}
		if _, err := root.Lstat(top); errors.Is(err, fs.ErrNotExist) || slices.Contains(p.m.Keep, name) {
			continue
		}
		if p.throughLink(root, top) {
			p.m.recordOmitted(name, "a link leads there", 0)
			continue
		}
		found, err := p.walk(ctx, root, top, keepPrefix(len(p.m.Keep), name), true)
		if err != nil && !errors.Is(err, ErrTooLarge) {
			return nil, err
		}
		size := sizeOf(found)
		if err != nil || size > left || len(items)+len(found) > maxEntries/2 {
			p.m.recordOmitted(name, fmt.Sprintf("keep: it does not fit into %d MiB", p.spec.KeepLimit>>20), size)
			continue
		}
		left -= size
		p.m.Keep = append(p.m.Keep, name)
		items = append(items, found...)
	}
	return items, nil
}

func sizeOf(items []item) (n int64) {
	for _, it := range items {
		n += it.entry.size
	}
	return n
}

// withinLimit refuses too much content before it is read; the error names the largest files.
func (p *packer) withinLimit(all *plan) error {
	items := slices.Concat(all.state, all.large, all.files, all.sessions, all.keep)
	if len(items) > maxEntries-1000 {
		return fmt.Errorf("%w: %d files, at most %d", ErrTooLarge, len(items), maxEntries-1000)
	}
	total := sizeOf(items)
	if total <= p.spec.Limit {
		return nil
	}
	return fmt.Errorf("%w: %d MiB, at most %d MiB; the largest are %s", ErrTooLarge, total>>20, p.spec.Limit>>20, largest(items))
}

// largest formats the five largest items.
func largest(items []item) string {
	slices.SortFunc(items, func(a, b item) int { return cmp.Compare(b.entry.size, a.entry.size) })
	var names []string
	for _, it := range items[:min(5, len(items))] {
		names = append(names, fmt.Sprintf("%s (%.1f MiB)", truncate(it.path, 200), float64(it.entry.size)/(1<<20)))
	}
	return strings.Join(names, ", ")
}

func joinNul(names []string) []byte {
	var b bytes.Buffer
	for _, n := range names {
		b.WriteString(n)
		b.WriteByte(0)
	}
	return b.Bytes()
}

// keepPrefix returns the name of a cache in its part: "h" for the home directory or "w" for the checkout, and its
// index.
func keepPrefix(n int, name string) string {
	if strings.HasPrefix(name, "~/") {
		return fmt.Sprintf("h%d", n)
	}
	return fmt.Sprintf("w%d", n)
}

// keepIndex parses the result of keepPrefix.
func keepIndex(prefix string) (n int, ok bool) {
	if len(prefix) < 2 || prefix[0] != 'h' && prefix[0] != 'w' {
		return 0, false
	}
	n, err := strconv.Atoi(prefix[1:])
	return n, err == nil && n >= 0 && n < maxRefs && prefix[1:] == strconv.Itoa(n)
}

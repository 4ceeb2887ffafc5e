package work

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/errand-bot/errand/internal/changeset"
)

// collectLarge adds the content of large files that new pointers refer to, as far as it is in the workspace and fits.
// The push gate judges missing content, because GitHub may have it.
func (c *collector) collectLarge(ctx context.Context, set *changeset.Changeset) error {
	pointers := set.Pointers()
	if len(pointers) == 0 {
		return nil
	}
	known, err := c.pointersAt(ctx, set)
	if err != nil {
		return err
	}
	dir, err := c.repo.lfsDir(ctx)
	if err != nil {
		return err
	}
	limits := changeset.DefaultLimits()
	budget := limits.Blobs
	for _, content := range set.Blobs {
		budget -= int64(len(content))
	}
	budget = min(budget, limits.LFS)
	var list []changeset.Pointer
	for p := range pointers {
		if !known[p] {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b changeset.Pointer) int {
		return cmp.Or(cmp.Compare(a.Size, b.Size), cmp.Compare(a.OID, b.OID))
	})
	for _, p := range list { // the smallest first, to fit as many as possible
		if p.Size > budget {
			break
		}
		content, ok := lfsObject(dir, p)
		if !ok {
			continue
		}
		if set.LFS == nil {
			set.LFS = map[string][]byte{}
		}
		set.LFS[p.OID] = content
		budget -= p.Size
	}
	return nil
}

// pointersAt returns the pointers of a changeset that its base contains, under any path. Their objects were published
// with them.
func (c *collector) pointersAt(ctx context.Context, set *changeset.Changeset) (map[changeset.Pointer]bool, error) {
	out, err := c.repo.text(ctx, "ls-tree", "-r", "--full-tree", set.Base)
	if err != nil {
		return nil, fmt.Errorf("list the base's files: %w", err)
	}
	known := map[changeset.Pointer]bool{}
	for line := range strings.SplitSeq(out, "\n") {
		meta, _, _ := strings.Cut(line, "\t")
		if fields := strings.Fields(meta); len(fields) == 3 {
			if p, _ := changeset.ParsePointer(set.Blobs[fields[2]]); p.OID != "" {
				known[p] = true
			}
		}
	}
	return known, nil
}

// lfsDir returns the directory in which Git LFS stores objects.
func (r *repo) lfsDir(ctx context.Context) (string, error) {
	dir, err := r.text(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return "", fmt.Errorf("find git directory: %w", err)
	}
	return filepath.Join(dir, "lfs"), nil
}

// lfsFile returns the path of an object below dir, which is the same as that of git-lfs.
func lfsFile(dir, oid string) string { return filepath.Join(dir, "objects", oid[:2], oid[2:4], oid) }

// openLarge opens an object if it exists with the size that the pointer states.
func openLarge(dir string, p changeset.Pointer) (*os.File, error) {
	f, err := os.OpenFile(lfsFile(dir, p.OID), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() != p.Size) {
		err = errWrongObject
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// lfsObject reads an object; ok is false if it is missing or does not match the pointer.
func lfsObject(dir string, p changeset.Pointer) (content []byte, ok bool) {
	f, err := openLarge(dir, p)
	if err != nil {
		return nil, false
	}
	defer func() { _ = f.Close() }()
	content, err = io.ReadAll(io.LimitReader(f, p.Size+1))
	if err != nil {
		return nil, false
	}
	got, _ := changeset.PointerTo(content)
	return content, got == p
}

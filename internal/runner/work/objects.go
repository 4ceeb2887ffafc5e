package work

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/errand-bot/errand/internal/changeset"
)

// noMode is the mode that git prints for a side on which a path does not exist.
const noMode = "000000"

// changes fills in the paths by which a commit differs from its first parent.
func (c *collector) changes(ctx context.Context, commit *changeset.Commit) error {
	out, err := c.repo.run(ctx, "diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev",
		"--no-ext-diff", "--no-textconv", "--ignore-submodules=none", commit.Parents[0], commit.ID)
	if err != nil {
		return fmt.Errorf("compare commit %s: %w", commit.ID, err)
	}
	commit.Changes, err = parseRaw(out)
	if err != nil {
		return fmt.Errorf("compare commit %s: %w", commit.ID, err)
	}
	return nil
}

// parseRaw parses `diff-tree -z --raw`: ":oldmode newmode oldid newid status NUL path NUL" for each path.
func parseRaw(out []byte) ([]changeset.Change, error) {
	var changes []changeset.Change
	for len(out) > 0 {
		meta, rest, ok := bytes.Cut(out, []byte{0})
		path, next, ok2 := bytes.Cut(rest, []byte{0})
		fields := strings.Fields(string(bytes.TrimPrefix(meta, []byte(":"))))
		if !ok || !ok2 || len(fields) != 5 {
			return nil, fmt.Errorf("unexpected output %q", meta)
		}
		out = next
		if !utf8.Valid(path) {
			return nil, fmt.Errorf("path %q: %w", path, errNotUTF8)
		}
		change := changeset.Change{Path: string(path)}
		if fields[0] != noMode {
			change.OldMode = changeset.Mode(fields[0])
		}
		if fields[1] != noMode {
			change.Mode, change.Blob = changeset.Mode(fields[1]), fields[3]
		}
		changes = append(changes, change)
	}
	slices.SortFunc(changes, func(a, b changeset.Change) int { return cmp.Compare(a.Path, b.Path) })
	return changes, nil
}

// blobRef is one blob to read, with a path for messages.
type blobRef struct {
	id, path string
	size     int64
}

// blobs reads the content of every path that was added or modified.
func (c *collector) blobs(ctx context.Context, set *changeset.Changeset) error {
	var list []blobRef
	seen := make(map[string]bool)
	for _, commit := range set.Commits {
		for _, change := range commit.Changes {
			if !change.Deleted() && change.Mode != changeset.ModeSubmodule && !seen[change.Blob] {
				seen[change.Blob] = true
				list = append(list, blobRef{id: change.Blob, path: change.Path})
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	if err := c.sizes(ctx, list); err != nil {
		return err
	}
	out, err := c.repo.pipe(ctx, ids(list), "cat-file", "--batch")
	if err != nil {
		return fmt.Errorf("read blobs: %w", err)
	}
	reader := bufio.NewReader(bytes.NewReader(out))
	for _, want := range list {
		if set.Blobs[want.id], err = readBlob(reader, want); err != nil {
			return fmt.Errorf("read content of %s: %w", want.path, err)
		}
	}
	return nil
}

func ids(list []blobRef) io.Reader {
	var b strings.Builder
	for _, want := range list {
		b.WriteString(want.id + "\n")
	}
	return strings.NewReader(b.String())
}

// sizes fills in the sizes before any content is read, and refuses too much content.
func (c *collector) sizes(ctx context.Context, list []blobRef) error {
	out, err := c.repo.pipe(ctx, ids(list), "cat-file", "--batch-check")
	if err != nil {
		return fmt.Errorf("read sizes: %w", err)
	}
	lines := strings.Split(strings.TrimRight(string(out), "\n"), "\n")
	if len(lines) != len(list) {
		return errors.New("read sizes: unexpected number of answers")
	}
	for i, line := range lines {
		if list[i].size, err = parseObject(line, list[i].id); err != nil {
			return fmt.Errorf("read size of %s: %w", list[i].path, err)
		}
	}
	return withinLimit(list)
}

// withinLimit refuses more content than a changeset may have; the error names the largest files.
func withinLimit(list []blobRef) error {
	var total int64
	for _, want := range list {
		total += want.size
	}
	if limit := changeset.DefaultLimits().Blobs; total > limit {
		return fmt.Errorf("%w: %d MiB of content, at most %d MiB; the largest are %s",
			changeset.ErrTooLarge, total>>20, limit>>20, largest(list))
	}
	return nil
}

// largest formats the five largest paths.
func largest(list []blobRef) string {
	sorted := slices.SortedFunc(slices.Values(list), func(a, b blobRef) int { return cmp.Compare(b.size, a.size) })
	var names []string
	for _, want := range sorted[:min(5, len(sorted))] {
		names = append(names, fmt.Sprintf("%s (%.1f MiB)", want.path, float64(want.size)/(1<<20)))
	}
	return strings.Join(names, ", ")
}

// parseObject parses "id type size" as cat-file prints it and returns the size.
func parseObject(line, id string) (int64, error) {
	fields := strings.Fields(line)
	if len(fields) != 3 || fields[0] != id || fields[1] != "blob" {
		return 0, fmt.Errorf("object %s: %q", id, line)
	}
	return strconv.ParseInt(fields[2], 10, 64)
}

func readBlob(reader *bufio.Reader, want blobRef) ([]byte, error) {
	line, err := reader.ReadString('\n')
	if err != nil {
		return nil, err
	}
	size, err := parseObject(strings.TrimSuffix(line, "\n"), want.id)
	if err != nil {
		return nil, err
	}
	content := make([]byte, size)
	if _, err := io.ReadFull(reader, content); err != nil {
		return nil, err
	}
	_, err = reader.Discard(1) // the newline after each object
	return content, err
}

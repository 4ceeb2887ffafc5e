package publish

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"path"
	"unicode/utf8"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/changeset"
)

// Limits of one request for a tree. GitHub fails on large requests, so several are chained.
const (
	maxTreeEntries = 100
	maxTreeText    = 1 << 20 // bytes of inline content
	maxInline      = 1 << 20 // a larger file is uploaded as a blob
)

// tree applies changes to the tree base and returns the ID of the new tree. Deletions of files that are replaced by
// directories, or the reverse, are sent in separate requests first: GitHub does not document in which order it applies
// the entries of one request, and could reject a path that is both a file and a directory.
func (b *builder) tree(base string, changes []changeset.Change) (string, error) {
	first, rest := splitDeletions(changes)
	for _, group := range [][]changeset.Change{first, rest} {
		var err error
		if base, err = b.applyInBatches(base, group); err != nil {
			return "", err
		}
	}
	return base, nil
}

// splitDeletions returns first the deletions of files that become directories, or whose directory becomes a file, then
// the other changes.
func splitDeletions(changes []changeset.Change) (first, rest []changeset.Change) {
	added, above := map[string]bool{}, map[string]bool{}
	for _, c := range changes {
		if !c.Deleted() {
			added[c.Path] = true
			for dir := path.Dir(c.Path); dir != "." && !above[dir]; dir = path.Dir(dir) {
				above[dir] = true
			}
		}
	}
	for _, c := range changes {
		room := c.Deleted() && above[c.Path]
		for dir := path.Dir(c.Path); c.Deleted() && !room && dir != "."; dir = path.Dir(dir) {
			room = added[dir]
		}
		if room {
			first = append(first, c)
		} else {
			rest = append(rest, c)
		}
	}
	return first, rest
}

// applyInBatches applies changes to the tree base in as many requests as necessary, each on top of the previous one.
func (b *builder) applyInBatches(base string, changes []changeset.Change) (string, error) {
	var entries []*github.TreeEntry
	var sizes []int
	for _, c := range changes {
		entry, size, err := b.entry(c)
		if err != nil {
			return "", fmt.Errorf("%s: %w", c.Path, err)
		}
		entries, sizes = append(entries, entry), append(sizes, size)
	}
	for len(entries) > 0 {
		n := entriesThatFit(sizes)
		got, _, err := b.op.GitHub.Git.CreateTree(b.op.Ctx, b.repo.Owner, b.repo.Name, base, entries[:n])
		if err != nil {
			return "", fmt.Errorf("create tree: %w", err)
		}
		base = got.GetSHA()
		entries, sizes = entries[n:], sizes[n:]
	}
	return base, nil
}

// entriesThatFit returns how many entries fit into the next request, at least one.
func entriesThatFit(sizes []int) int {
	sum := 0
	for n, size := range sizes {
		sum += size
		if n > 0 && (n == maxTreeEntries || sum > maxTreeText) {
			return n
		}
	}
	return len(sizes)
}

// entry returns the tree entry of a change. It uploads content that cannot be inlined as a blob. size is the length of
// the inlined content.
func (b *builder) entry(c changeset.Change) (entry *github.TreeEntry, size int, err error) {
	e := &github.TreeEntry{Path: &c.Path, Mode: github.String(string(c.Mode)), Type: github.String("blob")}
	switch c.Mode {
	case "": // deleted: neither content nor ID
		e.Mode = github.String(string(cmp.Or(c.OldMode, changeset.ModeFile)))
		if c.OldMode == changeset.ModeSubmodule {
			e.Type = github.String("commit")
		}
		return e, 0, nil
	case changeset.ModeSubmodule:
		e.Type, e.SHA = github.String("commit"), &c.Blob
		return e, 0, nil
	case changeset.ModeFile, changeset.ModeExecutable, changeset.ModeSymlink:
	default:
		return nil, 0, fmt.Errorf("%w: mode %q", ErrIncomplete, c.Mode)
	}
	content, ok := b.cs.Blobs[c.Blob]
	if !ok { // the push gate has only checked content of the changeset, so an ID alone is not enough
		return nil, 0, fmt.Errorf("%w: content %s is missing", ErrIncomplete, c.Blob)
	}
	if canInline(content) {
		e.Content = github.String(string(content))
		return e, len(content), nil
	}
	e.SHA = &c.Blob
	return e, 0, b.blob(c.Blob, content)
}

// canInline reports whether content can be sent as a JSON string. Empty content cannot: GitHub would take it as
// missing.
func canInline(content []byte) bool {
	return len(content) > 0 && len(content) <= maxInline && utf8.Valid(content) && !bytes.Contains(content, []byte{0})
}

// blob uploads content and checks that its ID is the one in the changeset.
func (b *builder) blob(id string, content []byte) error {
	if b.uploaded[id] {
		return nil
	}
	got, _, err := b.op.GitHub.Git.CreateBlob(b.op.Ctx, b.repo.Owner, b.repo.Name, &github.Blob{
		Content: github.String(base64.StdEncoding.EncodeToString(content)), Encoding: github.String("base64"),
	})
	if err != nil {
		return fmt.Errorf("create blob: %w", err)
	}
	if got.GetSHA() != id {
		return fmt.Errorf("%w: content is %s, not %s", ErrTreeMismatch, got.GetSHA(), id)
	}
	b.uploaded[id] = true
	return nil
}

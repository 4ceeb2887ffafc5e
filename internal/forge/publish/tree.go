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

// What goes into one request for a tree. GitHub gives up on large ones, so they are chained.
const (
	maxTreeEntries = 100
	maxTreeText    = 1 << 20 // bytes of inline content
	maxInline      = 1 << 20 // a larger file is a blob of its own
)

// tree applies changes to the tree base and returns the new tree's id. Deletions that make room for a path of
// another kind have requests of their own before the rest: GitHub does not say in which order it takes the entries of
// one request, and might refuse a path as a file and as a directory at once.
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

// splitDeletions splits changes into the deletions that make room (of files in whose directory's place something is put,
// and of what becomes a directory) and the rest.
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

// applyInBatches applies changes to the tree base by as many requests as they need, each on top of the one before.
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

// entriesThatFit says how many entries go into the next request: at least one.
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

// entry makes a tree entry of a change, and a blob on GitHub where the content cannot stand in the
// entry itself. size is that of the content which does.
func (b *builder) entry(c changeset.Change) (entry *github.TreeEntry, size int, err error) {
	e := &github.TreeEntry{Path: &c.Path, Mode: github.String(string(c.Mode)), Type: github.String("blob")}
	switch c.Mode {
	case "": // deleted: neither content nor id
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
	if !ok { // never by id alone: what nobody has judged is not published
		return nil, 0, fmt.Errorf("%w: content %s is missing", ErrIncomplete, c.Blob)
	}
	if inline(content) {
		e.Content = github.String(string(content))
		return e, len(content), nil
	}
	e.SHA = &c.Blob
	return e, 0, b.blob(c.Blob, content)
}

// inline reports whether content survives a JSON string and GitHub's ideas about text. Empty content
// does not: it would read as none.
func inline(content []byte) bool {
	return len(content) > 0 && len(content) <= maxInline && utf8.Valid(content) && !bytes.Contains(content, []byte{0})
}

// blob makes sure that GitHub has the content, under the id that the changeset claims.
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

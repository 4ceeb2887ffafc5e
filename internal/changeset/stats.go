package changeset

import (
	"crypto/sha256"
	"encoding/hex"
)

// Stats summarizes a changeset. A path that several commits touch counts once, by its net effect as far as the
// changeset shows it.
type Stats struct {
	Commits  int
	Added    int
	Modified int
	Deleted  int
	// Bytes is the size of all blobs.
	Bytes int64
}

// Paths returns the number of paths with a net change.
func (s Stats) Paths() int { return s.Added + s.Modified + s.Deleted }

// Stats counts commits, paths and bytes.
func (c *Changeset) Stats() Stats {
	stats := Stats{Commits: len(c.Commits)}
	for _, content := range c.Blobs {
		stats.Bytes += int64(len(content))
	}
	type net struct{ before, after bool }
	paths := make(map[string]net)
	for _, commit := range c.Commits {
		for _, change := range commit.Changes {
			n, seen := paths[change.Path]
			if !seen {
				n.before = change.OldMode != ""
			}
			n.after = !change.Deleted()
			paths[change.Path] = n
		}
	}
	for _, n := range paths {
		switch {
		case n.before && n.after:
			stats.Modified++
		case n.after:
			stats.Added++
		case n.before:
			stats.Deleted++
		}
	}
	return stats
}

// Digest returns the SHA-256, in hexadecimal, of the encoded changeset including its notes. An approval of a digest
// therefore covers this changeset only.
func (c *Changeset) Digest() (string, error) {
	h := sha256.New()
	if err := Encode(h, c); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Empty reports whether the changeset changes no tree: it has no commits, or only empty ones.
func (c *Changeset) Empty() bool {
	for _, commit := range c.Commits {
		if len(commit.Changes) > 0 {
			return false
		}
	}
	return true
}

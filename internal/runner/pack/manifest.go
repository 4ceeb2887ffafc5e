package pack

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/changeset"
)

// Form is the version of the stream format. Other versions are refused.
const Form = 1

// Errors for callers to distinguish. All of them are returned wrapped.
var (
	// ErrTooLarge: the content exceeds the limit. The message names the largest paths.
	ErrTooLarge = errors.New("there is too much to pack")
	// ErrMalformed: the stream is damaged, forged or of another version. A retry does not help.
	ErrMalformed = errors.New("the archive is damaged")
	// ErrCut: the stream ended too early. A retry may help.
	ErrCut = errors.New("the archive was cut off")
	// ErrNoBase: the checkout does not contain the commit on which the archive is based.
	ErrNoBase = errors.New("the checkout lacks the commit that the archive builds on")
)

// Limits of a stream, in addition to Spec.Limit.
const (
	// DefaultLimit bounds the total content in bytes, before compression.
	DefaultLimit = 4 << 30
	// DefaultKeepLimit bounds the part of it for caches.
	DefaultKeepLimit = 2 << 30
	maxEntries       = 500_000
	maxManifest      = 4 << 20
	maxRefs          = 500
	maxLeft          = 50
)

// Manifest describes the content of a stream. It is the stream's last entry; a stream without it is truncated.
type Manifest struct {
	Form int `json:"form"`
	// Head is the commit of HEAD, Branch its branch, empty for a detached HEAD.
	Head   string `json:"head"`
	Branch string `json:"branch,omitempty"`
	// Base is the commit that a checkout must contain before the stream can be unpacked into it.
	Base string `json:"base"`
	// Refs are local branches and tags; Stash lists the stashes, oldest first.
	Refs  []Ref `json:"refs,omitempty"`
	Stash []Ref `json:"stash,omitempty"`
	// Dir and Home are the original paths of the checkout and the home directory.
	Dir  string `json:"dir"`
	Home string `json:"home"`
	// Paths is the number of changed, deleted or untracked files in the checkout.
	Paths int `json:"paths"`
	// Keep lists the transferred caches: below "keep" in the stream, "hN" and "wN" are Keep[N].
	Keep []string `json:"keep,omitempty"`
	// Parts are the stream's parts in order, with their expected sums.
	Parts []Part `json:"parts"`
	// Left lists the first 50 omitted paths with reasons; MoreLeft counts the others.
	Left     []Left `json:"left,omitempty"`
	MoreLeft int    `json:"more_left,omitempty"`
}

// Ref is a name and the id of its object. The name of a stash is its message.
type Ref struct {
	Name string `json:"name"`
	ID   string `json:"id"`
}

// Part is one part of a stream: "git", "objects", "lfs", "work", "home" or "keep".
type Part struct {
	Name    string `json:"name"`
	Entries int    `json:"entries"`
	// Bytes is the size of the content before compression; SHA256 covers all entries with their names and modes.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Left is an omitted path.
type Left struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
	Bytes  int64  `json:"bytes,omitempty"`
}

// Bytes returns the size of the content of all parts before compression.
func (m *Manifest) Bytes() int64 {
	var n int64
	for _, p := range m.Parts {
		n += p.Bytes
	}
	return n
}

// Entries returns the number of entries in all parts.
func (m *Manifest) Entries() int {
	n := 0
	for _, p := range m.Parts {
		n += p.Entries
	}
	return n
}

// Sessions returns the number of transferred files of the agent's sessions.
func (m *Manifest) Sessions() int {
	for _, p := range m.Parts {
		if p.Name == partHome {
			return p.Entries
		}
	}
	return 0
}

func (m *Manifest) recordOmitted(path, reason string, bytes int64) {
	if len(m.Left) >= maxLeft {
		m.MoreLeft++
		return
	}
	m.Left = append(m.Left, Left{Path: truncate(path, 300), Reason: reason, Bytes: bytes})
}

func truncate(text string, most int) string {
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// validate refuses a manifest that Unpack could not process safely.
func (m *Manifest) validate() error {
	switch {
	case m.Form != Form:
		return fmt.Errorf("%w: its form is %d, not %d", ErrMalformed, m.Form, Form)
	case !changeset.IsID(m.Head) || !changeset.IsID(m.Base):
		return fmt.Errorf("%w: it names no commit to begin at", ErrMalformed)
	case m.Branch != "" && !strings.HasPrefix(m.Branch, "refs/heads/"):
		return fmt.Errorf("%w: %q is not a branch", ErrMalformed, truncate(m.Branch, 100))
	case len(m.Refs) > maxRefs || len(m.Stash) > maxRefs || len(m.Keep) > maxRefs:
		return fmt.Errorf("%w: it names too much", ErrMalformed)
	}
	for _, r := range m.Refs {
		if !changeset.IsID(r.ID) || !strings.HasPrefix(r.Name, "refs/heads/") && !strings.HasPrefix(r.Name, "refs/tags/") || strings.ContainsAny(r.Name, "\x00\n ") {
			return fmt.Errorf("%w: ref %q", ErrMalformed, truncate(r.Name, 100))
		}
	}
	for _, r := range m.Stash {
		if !changeset.IsID(r.ID) || strings.ContainsAny(r.Name, "\x00\n") {
			return fmt.Errorf("%w: stash %q", ErrMalformed, truncate(r.Name, 100))
		}
	}
	return nil
}

func decodeManifest(data []byte) (Manifest, error) {
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return Manifest{}, fmt.Errorf("%w: its manifest: %w", ErrMalformed, err)
	}
	return m, m.validate()
}

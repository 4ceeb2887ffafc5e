package pack

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/changeset"
)

// Form is the version of the stream's form. A stream of another form is refused.
const Form = 1

// Errors on which a caller decides. All of them arrive wrapped.
var (
	// ErrTooLarge: there is more to carry than the limit allows. The message names the largest paths.
	ErrTooLarge = errors.New("there is too much to pack")
	// ErrMalformed: the stream is damaged, forged or of another form. Trying again does not help.
	ErrMalformed = errors.New("the archive is damaged")
	// ErrCut: the stream ended before its end. Trying again may help.
	ErrCut = errors.New("the archive was cut off")
	// ErrNoBase: the checkout lacks the commit that the archive builds on.
	ErrNoBase = errors.New("the checkout lacks the commit that the archive builds on")
)

// Bounds of a stream, besides Spec.Limit.
const (
	// DefaultLimit is how many bytes there may be in all, before compression.
	DefaultLimit = 4 << 30
	// DefaultKeepLimit is how many of them may be caches.
	DefaultKeepLimit = 2 << 30
	maxEntries       = 500_000
	maxManifest      = 4 << 20
	maxRefs          = 500
	maxLeft          = 50
)

// Manifest tells what a stream holds. It is the stream's last entry; a stream without it is cut.
type Manifest struct {
	Form int `json:"form"`
	// Head is the commit that HEAD stands on, Branch its branch, empty for a detached HEAD.
	Head   string `json:"head"`
	Branch string `json:"branch,omitempty"`
	// Base is the commit that a checkout must have before it can be unpacked into.
	Base string `json:"base"`
	// Refs are local branches and tags; Stash the stashes, the oldest first.
	Refs  []Ref `json:"refs,omitempty"`
	Stash []Ref `json:"stash,omitempty"`
	// Dir and Home are where the checkout and the home directory were.
	Dir  string `json:"dir"`
	Home string `json:"home"`
	// Paths is how many files of the checkout are changed, deleted or untracked.
	Paths int `json:"paths"`
	// Keep are the caches that are carried: below "keep" in the stream, "hN" and "wN" are Keep[N].
	Keep []string `json:"keep,omitempty"`
	// Parts are the stream's parts in their order, with what they must sum up to.
	Parts []Part `json:"parts"`
	// Left is what was left out and why: the first 50, and MoreLeft others.
	Left     []Left `json:"left,omitempty"`
	MoreLeft int    `json:"more_left,omitempty"`
}

// Ref is a name and the object that it stands for. The name of a stash is its message.
type Ref struct {
	Name string `json:"name"`
	ID   string `json:"id"`
}

// Part is one part of a stream: "git", "objects", "lfs", "work", "home" or "keep".
type Part struct {
	Name    string `json:"name"`
	Entries int    `json:"entries"`
	// Bytes is the content before compression; SHA256 is of all entries with their names and modes.
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Left is something that was left out.
type Left struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
	Bytes  int64  `json:"bytes,omitempty"`
}

// Bytes is the content of all parts before compression.
func (m *Manifest) Bytes() int64 {
	var n int64
	for _, p := range m.Parts {
		n += p.Bytes
	}
	return n
}

// Entries is the number of all parts' entries.
func (m *Manifest) Entries() int {
	n := 0
	for _, p := range m.Parts {
		n += p.Entries
	}
	return n
}

// Sessions is how many files of the agent's sessions are carried.
func (m *Manifest) Sessions() int {
	for _, p := range m.Parts {
		if p.Name == partHome {
			return p.Entries
		}
	}
	return 0
}

func (m *Manifest) leave(path, reason string, bytes int64) {
	if len(m.Left) >= maxLeft {
		m.MoreLeft++
		return
	}
	m.Left = append(m.Left, Left{Path: clip(path, 300), Reason: reason, Bytes: bytes})
}

func clip(text string, most int) string {
	if len(text) > most {
		text = text[:most] + "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// validate refuses what Unpack could not work with safely.
func (m *Manifest) validate() error {
	switch {
	case m.Form != Form:
		return fmt.Errorf("%w: its form is %d, not %d", ErrMalformed, m.Form, Form)
	case !changeset.IsID(m.Head) || !changeset.IsID(m.Base):
		return fmt.Errorf("%w: it names no commit to begin at", ErrMalformed)
	case m.Branch != "" && !strings.HasPrefix(m.Branch, "refs/heads/"):
		return fmt.Errorf("%w: %q is no branch", ErrMalformed, clip(m.Branch, 100))
	case len(m.Refs) > maxRefs || len(m.Stash) > maxRefs || len(m.Keep) > maxRefs:
		return fmt.Errorf("%w: it names too much", ErrMalformed)
	}
	for _, r := range m.Refs {
		if !changeset.IsID(r.ID) || !strings.HasPrefix(r.Name, "refs/heads/") && !strings.HasPrefix(r.Name, "refs/tags/") || strings.ContainsAny(r.Name, "\x00\n ") {
			return fmt.Errorf("%w: ref %q", ErrMalformed, clip(r.Name, 100))
		}
	}
	for _, r := range m.Stash {
		if !changeset.IsID(r.ID) || strings.ContainsAny(r.Name, "\x00\n") {
			return fmt.Errorf("%w: stash %q", ErrMalformed, clip(r.Name, 100))
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

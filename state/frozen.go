package state

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// Frozen is the text at the time of the trigger, or of a later `replan`.
type Frozen struct {
	Title string    `json:"title"`
	Body  string    `json:"body"`
	Hash  string    `json:"hash"` // of title, body and files, see FreezeHash
	At    time.Time `json:"at"`
	By    Person    `json:"by"`
	// ShownAt is when, by GitHub's clock, the event happened that showed this text. Older edits do not replace it.
	ShownAt time.Time `json:"shown_at,omitzero"`
	// Files are the sorted SHA-256 digests of the files attached to the text that were read.
	Files []string `json:"files,omitempty"`
	// Changed is the newer text by a person without write access; it is shown until a person with write access comments
	// `replan`.
	Changed *Frozen `json:"changed,omitempty"`
}

// Matches reports whether an issue has the frozen title and body. The files behind an address cannot change.
func (f *Frozen) Matches(title, body string) bool {
	return FreezeHash(title, body, f.Files...) == f.Hash
}

// FreezeHash returns the SHA-256, in hexadecimal digits, of an issue's title and body with normalized line ends, and of
// the digests of the files attached to the body, if any.
func FreezeHash(title, body string, files ...string) string {
	norm := func(s string) string { return strings.TrimRight(strings.ReplaceAll(s, "\r\n", "\n"), "\n ") }
	text := norm(title) + "\x00" + norm(body)
	for _, digest := range files {
		text += "\x00" + digest
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Attachment is a file attached to a text that the agent may see.
type Attachment struct {
	ID     string `json:"id"`               // in the addresses of the file
	Name   string `json:"name,omitempty"`   // of its copy next to the checkout
	Type   string `json:"type,omitempty"`   // the media type of its content
	Bytes  int64  `json:"bytes,omitempty"`  // its size
	SHA256 string `json:"sha256,omitempty"` // of its content, in hexadecimal digits; empty if it is unread
	Unread string `json:"unread,omitempty"` // why the agent does not get it, for people
}

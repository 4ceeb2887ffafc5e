package changeset

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// MaxPointer is the size in bytes that a pointer of Git LFS stays under by its specification.
const MaxPointer = 1024

// Pointer is what Git LFS commits in place of a large file.
type Pointer struct {
	// OID is the SHA-256 of the object, in lower-case hexadecimal digits.
	OID string
	// Size is the object's in bytes.
	Size int64
}

// The two lines of a pointer that matter.
var (
	pointerOID  = regexp.MustCompile(`(?m)^oid sha256:([0-9a-f]{64})$`)
	pointerSize = regexp.MustCompile(`(?m)^size ([0-9]{1,15})$`)
)

// ParsePointer reports whether content is, or pretends to be, a pointer of Git LFS, and what it points to
// if it is a valid one; else the pointer is zero.
func ParsePointer(content []byte) (p Pointer, is bool) {
	if len(content) >= MaxPointer {
		return Pointer{}, false
	}
	text := string(content)
	// The second is that of old releases.
	if !strings.HasPrefix(text, "version https://git-lfs.github.com/spec/") && !strings.HasPrefix(text, "version https://hawser.github.com/spec/") {
		return Pointer{}, false
	}
	oid, size := pointerOID.FindStringSubmatch(text), pointerSize.FindStringSubmatch(text)
	if oid == nil || size == nil {
		return Pointer{}, true
	}
	n, err := strconv.ParseInt(size[1], 10, 64)
	if err != nil {
		return Pointer{}, true
	}
	return Pointer{OID: oid[1], Size: n}, true
}

// PointerTo returns the pointer to an object of this content, and how it is written.
func PointerTo(content []byte) (p Pointer, text string) {
	sum := sha256.Sum256(content)
	p = Pointer{OID: hex.EncodeToString(sum[:]), Size: int64(len(content))}
	return p, p.String()
}

// String writes the pointer as it is committed.
func (p Pointer) String() string {
	return fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", p.OID, p.Size)
}

// Pointers returns the valid pointers among the files of all commits, each with the first path that has it.
func (c *Changeset) Pointers() map[Pointer]string {
	found := map[Pointer]string{}
	for _, commit := range c.Commits {
		for _, change := range commit.Changes {
			if change.Mode != ModeFile && change.Mode != ModeExecutable {
				continue
			}
			if p, _ := ParsePointer(c.Blobs[change.Blob]); p.OID != "" && found[p] == "" {
				found[p] = change.Path
			}
		}
	}
	return found
}

// validateLFS holds each object to its id and to a pointer of the changeset. Content is that of all blobs.
func (c *Changeset) validateLFS(limits Limits, content int64) error {
	if len(c.LFS) == 0 {
		return nil
	}
	named := c.Pointers()
	var total int64
	for oid, object := range c.LFS {
		if total += int64(len(object)); total > limits.LFS || content+total > limits.Blobs {
			return fmt.Errorf("%w: more than %d bytes of large files, or %d with all other content", ErrTooLarge, limits.LFS, limits.Blobs)
		}
		got, _ := PointerTo(object)
		if got.OID != oid {
			return fmt.Errorf("large file %s is another one", clip(oid))
		}
		if _, is := named[got]; !is {
			return fmt.Errorf("large file %s: no pointer names it", oid)
		}
	}
	return nil
}

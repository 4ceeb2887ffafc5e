package changeset

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// MaxPointer is the size in bytes that an LFS pointer must stay below, by its specification.
const MaxPointer = 1024

// Pointer refers to a large file. Git LFS commits it in place of the file.
type Pointer struct {
	// OID is the SHA-256 of the object, in lower-case hexadecimal digits.
	OID string
	// Size is the size of the object in bytes.
	Size int64
}

// ParsePointer parses an LFS pointer. isPointer reports whether content is, or claims to be, a pointer; p is zero
// unless the pointer is valid.
func ParsePointer(content []byte) (p Pointer, isPointer bool) {
	if len(content) >= MaxPointer {
		return Pointer{}, false
	}
	text := string(content)
	// The second prefix is that of old releases.
	if !strings.HasPrefix(text, "version https://git-lfs.github.com/spec/") && !strings.HasPrefix(text, "version https://hawser.github.com/spec/") {
		return Pointer{}, false
	}
	oid := pointerField(text, "oid sha256:", func(v string) bool { return len(v) == 64 && isHex(v) })
	size := pointerField(text, "size ", func(v string) bool { return len(v) <= maxSizeDigits && isNumber(v) })
	n, err := strconv.ParseInt(size, 10, 64)
	if oid == "" || err != nil {
		return Pointer{}, true
	}
	return Pointer{OID: oid, Size: n}, true
}

// maxSizeDigits bounds the size in a pointer.
const maxSizeDigits = 15

// pointerField returns the rest of the first line that starts with key and has a valid rest, or "".
func pointerField(text, key string, valid func(string) bool) string {
	for line := range strings.SplitSeq(text, "\n") {
		if value, ok := strings.CutPrefix(line, key); ok && valid(value) {
			return value
		}
	}
	return ""
}

func isNumber(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// PointerTo returns the pointer to an object with this content, and its text.
func PointerTo(content []byte) (p Pointer, text string) {
	sum := sha256.Sum256(content)
	p = Pointer{OID: hex.EncodeToString(sum[:]), Size: int64(len(content))}
	return p, p.String()
}

// String returns the pointer as it is committed.
func (p Pointer) String() string {
	return fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n", p.OID, p.Size)
}

// Pointers returns the valid pointers in all commits, each with the first path that contains it.
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

// validateLFS checks that each object matches its id and that a pointer of the changeset refers to it. content is the
// total size of all blobs in bytes.
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
			return fmt.Errorf("large file %s does not match its id", quoteLimited(oid))
		}
		if _, isNamed := named[got]; !isNamed {
			return fmt.Errorf("large file %s: no pointer names it", oid)
		}
	}
	return nil
}

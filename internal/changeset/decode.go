package changeset

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's object ids are SHA-1
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Limits bound the changesets that [Decode] and [Changeset.Validate] accept, so that a hostile VM cannot exhaust
// memory. They are far above the limits of publishing, which internal/pushgate enforces.
type Limits struct {
	// Encoded is the size of the JSON in bytes.
	Encoded int64
	// Blobs is the total size of all blobs and large files in bytes.
	Blobs int64
	// LFS is the total size of large files in bytes.
	LFS int64
	// Commits is the number of commits.
	Commits int
	// Changes is the number of changes in all commits together.
	Changes int
	// Message and Path are the maximum sizes of a message and a path in bytes; Notes is the maximum number of notes.
	Message, Path, Notes int
}

// DefaultLimits returns the limits that the runner keeps to.
func DefaultLimits() Limits {
	return Limits{
		Encoded: 128 << 20,
		Blobs:   64 << 20,
		LFS:     40 << 20,
		Commits: 1000,
		Changes: 20000,
		Message: 64 << 10,
		Path:    4096,
		Notes:   100,
	}
}

// ErrTooLarge is wrapped by errors about a limit that was exceeded.
var ErrTooLarge = errors.New("changeset too large")

// ErrMalformed is matched by every error about the content of a changeset, as opposed to reading it. Retrying with the
// same bytes fails again.
var ErrMalformed = errors.New("changeset malformed")

// formError is an error that matches [ErrMalformed] and keeps its own text.
type formError struct{ error }

func malformed(err error) error { return formError{err} }

func (e formError) Is(target error) bool { return target == ErrMalformed }

func (e formError) Unwrap() error { return e.error }

// Encode writes the changeset as one JSON object and a newline. It does not validate.
func Encode(w io.Writer, c *Changeset) error {
	if err := json.NewEncoder(w).Encode(c); err != nil {
		return fmt.Errorf("encode changeset: %w", err)
	}
	return nil
}

// Decode reads and validates one untrusted changeset. It reads at most limits.Encoded bytes and refuses unknown fields
// and data after the object. Errors about the content match [ErrMalformed], and [ErrTooLarge] if a limit is exceeded;
// read errors match neither.
func Decode(r io.Reader, limits Limits) (*Changeset, error) {
	data, err := io.ReadAll(io.LimitReader(r, limits.Encoded+1))
	if err != nil {
		return nil, fmt.Errorf("read changeset: %w", err)
	}
	if int64(len(data)) > limits.Encoded {
		return nil, malformed(fmt.Errorf("%w: more than %d bytes encoded", ErrTooLarge, limits.Encoded))
	}
	var c Changeset
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return nil, malformed(fmt.Errorf("decode changeset: %w", err))
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, malformed(errors.New("decode changeset: unexpected data after the object"))
	}
	if err := c.Validate(limits); err != nil {
		return nil, err
	}
	return &c, nil
}

// BlobID returns the id that git gives to a blob with this content.
func BlobID(content []byte) string {
	h := sha1.New() //nolint:gosec // git's object ids are SHA-1
	h.Write([]byte("blob " + strconv.Itoa(len(content)) + "\x00"))
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}

// IsID reports whether the text is a full object id: 40 lower-case hexadecimal digits.
func IsID(text string) bool {
	return len(text) == 40 && isHex(text)
}

func isHex(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

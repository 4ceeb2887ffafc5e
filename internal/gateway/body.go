package gateway

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"golang.org/x/sync/semaphore"
)

// maxBody bounds the body of a call of a model, in bytes: as much as providers take.
const maxBody = 32 << 20

// What one VM may take of our memory and time: bytes of calls' bodies that are kept until they are answered, and the time
// in which a body has to come.
const (
	maxBodies   = 96 << 20
	bodyTimeout = 2 * time.Minute
)

// initialBuffer is how much is made room for before anything has come, whatever is announced.
const initialBuffer = 1 << 20

// errBodyMemory says that a VM's bodies take all the memory that they may.
var errBodyMemory = errors.New("no memory is left for this VM's calls")

// BodyMemory limits the memory that the bodies of one VM's calls take.
type BodyMemory struct{ bytes *semaphore.Weighted }

// NewBodyMemory returns the limit for one VM.
func NewBodyMemory() *BodyMemory { return &BodyMemory{bytes: semaphore.NewWeighted(maxBodies)} }

// requestBody is the body of a call, in memory until done is called.
type requestBody struct {
	bytes    []byte
	memory   *BodyMemory
	reserved int64
}

func (b *requestBody) release() {
	b.memory.bytes.Release(b.reserved)
	b.bytes, b.reserved = nil, 0
}

// readAll reads a call's body. No more memory is taken than has come, or twice that.
func (b *requestBody) readAll(w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength > maxBody {
		return &http.MaxBytesError{Limit: maxBody}
	}
	most := int64(maxBody) + 1 // one byte is for the end to be seen
	if r.ContentLength >= 0 {
		most = r.ContentLength + 1
	}
	deadline := http.NewResponseController(w)
	if err := deadline.SetReadDeadline(time.Now().Add(bodyTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("bound the time for a body: %w", err)
	}
	body := http.MaxBytesReader(w, r.Body, maxBody)
	for {
		if len(b.bytes) == cap(b.bytes) {
			if err := b.grow(min(max(2*int64(cap(b.bytes)), initialBuffer), most)); err != nil {
				return err
			}
		}
		n, err := body.Read(b.bytes[len(b.bytes):cap(b.bytes)])
		b.bytes = b.bytes[:len(b.bytes)+n]
		switch {
		case err == io.EOF:
			if err := deadline.SetReadDeadline(time.Time{}); err != nil && !errors.Is(err, http.ErrNotSupported) {
				return fmt.Errorf("lift the bound of the time for a body: %w", err)
			}
			return nil
		case err != nil:
			return err
		}
	}
}

// grow makes room for so many bytes.
func (b *requestBody) grow(to int64) error {
	if to <= int64(cap(b.bytes)) {
		return io.ErrShortBuffer // a body that is longer than its request says: net/http lets none pass
	}
	if !b.memory.bytes.TryAcquire(to - b.reserved) {
		return errBodyMemory
	}
	b.reserved = to
	next := make([]byte, len(b.bytes), to)
	copy(next, b.bytes)
	b.bytes = next
	return nil
}

// read reads a call's body, or returns why it is denied. The caller has to release it in both cases.
func (b *requestBody) read(w http.ResponseWriter, r *http.Request) *denial {
	err := b.readAll(w, r)
	var large *http.MaxBytesError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &large):
		d := forbidden(fmt.Sprintf("a call has at most %d bytes", maxBody))
		d.rule, d.kind = "size", "request_too_large"
		return d
	case errors.Is(err, errBodyMemory):
		w.Header().Set("Connection", "close") // the rest of the body is not read
		d := notNow(fmt.Sprintf("the calls of a VM have at most %d MB under way at once", maxBodies>>20))
		d.rule = "memory"
		return d
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &denial{status: http.StatusRequestTimeout, message: fmt.Sprintf("the request did not come within %s", formatDuration(bodyTimeout))}
	}
	return &denial{status: http.StatusBadRequest, message: "the request could not be read"}
}

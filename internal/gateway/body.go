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

func (a *requestBody) release() {
	a.memory.bytes.Release(a.reserved)
	a.bytes, a.reserved = nil, 0
}

// read reads a call's body, whole. No more memory is taken than has come, or twice that.
func (a *requestBody) read(w http.ResponseWriter, r *http.Request) error {
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
		if len(a.bytes) == cap(a.bytes) {
			if err := a.grow(min(max(2*int64(cap(a.bytes)), initialBuffer), most)); err != nil {
				return err
			}
		}
		n, err := body.Read(a.bytes[len(a.bytes):cap(a.bytes)])
		a.bytes = a.bytes[:len(a.bytes)+n]
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
func (a *requestBody) grow(to int64) error {
	if to <= int64(cap(a.bytes)) {
		return io.ErrShortBuffer // a body that is longer than its request says: net/http lets none pass
	}
	if !a.memory.bytes.TryAcquire(to - a.reserved) {
		return errBodyMemory
	}
	a.reserved = to
	next := make([]byte, len(a.bytes), to)
	copy(next, a.bytes)
	a.bytes = next
	return nil
}

// readBody reads a call's body, or answers the call itself and returns false. Done has to be called all the same.
func (c *call) readBody(w http.ResponseWriter, r *http.Request, a *requestBody, refuse func(kind, message string)) bool {
	err := a.read(w, r)
	var large *http.MaxBytesError
	switch {
	case err == nil:
		return true
	case errors.As(err, &large):
		refuse("request_too_large", fmt.Sprintf("a call has at most %d bytes", maxBody))
	case errors.Is(err, errBodyMemory):
		w.Header().Set("Connection", "close") // the rest of the body is not read
		c.denyForNow(w, fmt.Sprintf("the calls of a VM have at most %d MB under way at once", maxBodies>>20))
	case errors.Is(err, os.ErrDeadlineExceeded):
		http.Error(w, fmt.Sprintf("errand: the request did not come within %s", formatDuration(bodyTimeout)), http.StatusRequestTimeout)
	default:
		http.Error(w, "errand: the request could not be read", http.StatusBadRequest)
	}
	return false
}

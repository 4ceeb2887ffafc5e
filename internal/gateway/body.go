package gateway

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/errand-bot/errand/state"
	"golang.org/x/sync/semaphore"
)

// Limits of request bodies, in bytes and time.
const (
	maxBody       = 32 << 20 // of one call; the maximum of all providers
	maxBodies     = 96 << 20 // of the calls of one VM in flight
	initialBuffer = 1 << 20  // even if the request announces less or more
	bodyTimeout   = 2 * time.Minute
)

// errBodyMemory is returned when the bodies of a VM's calls would exceed maxBodies.
var errBodyMemory = errors.New("the calls of this VM have reached their memory limit")

// BodyMemory limits the memory that the bodies of one VM's calls take.
type BodyMemory struct{ bytes *semaphore.Weighted }

// NewBodyMemory returns the limit for one VM.
func NewBodyMemory() *BodyMemory { return &BodyMemory{bytes: semaphore.NewWeighted(maxBodies)} }

// requestBody is the body of a call. It is kept in memory until it is released, because a call may be sent twice.
type requestBody struct {
	bytes    []byte
	memory   *BodyMemory
	reserved int64 // bytes of memory
}

func (b *requestBody) release() {
	b.memory.bytes.Release(b.reserved)
	b.bytes, b.reserved = nil, 0
}

// readAll reads a call's body. It reserves at most twice the received length.
func (b *requestBody) readAll(w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength > maxBody {
		return &http.MaxBytesError{Limit: maxBody}
	}
	most := int64(maxBody) + 1 // one more byte detects the end
	if r.ContentLength >= 0 {
		most = r.ContentLength + 1
	}
	deadline := http.NewResponseController(w)
	if err := deadline.SetReadDeadline(time.Now().Add(bodyTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("set the deadline of a request body: %w", err)
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
				return fmt.Errorf("remove the deadline of a request body: %w", err)
			}
			return nil
		case err != nil:
			return err
		}
	}
}

// grow increases the buffer's capacity to the given number of bytes.
func (b *requestBody) grow(to int64) error {
	if to <= int64(cap(b.bytes)) {
		return io.ErrShortBuffer // cannot happen: net/http limits a body to its announced length
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

// read reads a call's body, or returns why the call is denied. The caller releases the body in both cases.
func (b *requestBody) read(w http.ResponseWriter, r *http.Request) *denial {
	err := b.readAll(w, r)
	var large *http.MaxBytesError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &large):
		d := newRuleDenial(fmt.Sprintf("a call may have at most %d bytes", maxBody))
		d.rule, d.kind = "size", "request_too_large"
		return d
	case errors.Is(err, errBodyMemory):
		w.Header().Set("Connection", "close") // the rest of the body is not read
		d := newTemporaryDenial(fmt.Sprintf("the calls of a VM may have at most %d MB in flight", maxBodies>>20))
		d.rule = "memory"
		return d
	case errors.Is(err, os.ErrDeadlineExceeded):
		message := fmt.Sprintf("the request was not received within %s", state.DurationText(bodyTimeout))
		return &denial{status: http.StatusRequestTimeout, message: message}
	}
	return &denial{status: http.StatusBadRequest, message: "the request could not be read"}
}

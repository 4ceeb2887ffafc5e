package gateway

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"
)

// zeros is a body of so many bytes, which then signals that it waits, and waits.
type zeros struct {
	left    int
	waits   chan<- struct{}
	goOn    <-chan struct{}
	waiting bool
}

func (z *zeros) Read(p []byte) (int, error) {
	if z.left == 0 && z.waits != nil && !z.waiting {
		z.waiting = true
		z.waits <- struct{}{}
		<-z.goOn
	}
	if z.left == 0 {
		return 0, io.EOF
	}
	n := min(z.left, len(p))
	z.left -= n
	return n, nil
}

func newRequest(body io.Reader, length int64) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", body)
	r.ContentLength = length
	return r
}

// TestBodyMemoryIsLimited: the memory for the bodies of a VM is limited, however many calls it starts and whatever
// length it announces; finished calls release theirs.
func TestBodyMemoryIsLimited(t *testing.T) {
	t.Parallel()
	const size, fit = 1 << 20, 3
	bodies := semaphore.NewWeighted(fit*size + fit)
	waits, goOn := make(chan struct{}), make(chan struct{})
	ended := make(chan error, fit)
	calls := make([]requestBody, fit)
	for i := range calls {
		calls[i].memory = &BodyMemory{bodies}
		go func() {
			ended <- calls[i].readAll(httptest.NewRecorder(), newRequest(&zeros{left: size - 1, waits: waits, goOn: goOn}, size))
		}()
		<-waits
	}
	for name, length := range map[string]int64{"announced": size, "of unknown length": -1} {
		more := requestBody{memory: &BodyMemory{bodies}}
		if err := more.readAll(httptest.NewRecorder(), newRequest(&zeros{left: size}, length)); !errors.Is(err, errBodyMemory) {
			t.Errorf("one more body, %s: got error %v, want errBodyMemory", name, err)
		}
		more.release()
	}
	close(goOn)
	for range fit {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	for i := range calls {
		if len(calls[i].bytes) != size-1 {
			t.Errorf("got %d bytes", len(calls[i].bytes))
		}
		calls[i].release()
		calls[i].release() // does nothing more
	}
	if !bodies.TryAcquire(fit*size + fit) {
		t.Error("not all memory was released")
	}
}

// TestBodyMemoryFollowsReceivedBytes: a body reserves at most twice the memory of what was received, whatever length is
// announced.
func TestBodyMemoryFollowsReceivedBytes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		length int64
		come   int
		err    bool
		most   int64
	}{
		"nothing received":   {length: maxBody, most: initialBuffer},
		"something received": {length: maxBody, come: 3 << 20, most: 4 << 20},
		"of unknown length":  {length: -1, come: 5 << 20, most: 8 << 20},
		"short":              {length: 10, come: 10, most: 11},
		"none":               {length: 0, most: 1},
		"too long, it says":  {length: maxBody + 1, err: true},
		"too long, it turns": {length: -1, come: maxBody + 1, err: true, most: maxBody + 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := requestBody{memory: &BodyMemory{semaphore.NewWeighted(2 * maxBody)}}
			defer a.release()
			err := a.readAll(httptest.NewRecorder(), newRequest(&zeros{left: tc.come}, tc.length))
			var large *http.MaxBytesError
			if errors.As(err, &large) != tc.err || !tc.err && err != nil {
				t.Errorf("read: %v", err)
			}
			if a.reserved > tc.most || int64(cap(a.bytes)) > tc.most {
				t.Errorf("reserved %d bytes, want at most %d", a.reserved, tc.most)
			}
		})
	}
}

// deadlines records the read deadlines of a connection.
type deadlines struct {
	http.ResponseWriter
	set []time.Time
}

// SetReadDeadline implements what http.ResponseController looks for.
func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.set = append(d.set, t)
	return nil
}

// TestBodyDeadline: a body has to be received within two minutes; after that the connection has no deadline, because
// the answer may take long.
func TestBodyDeadline(t *testing.T) {
	t.Parallel()
	a, d := requestBody{memory: &BodyMemory{semaphore.NewWeighted(maxBody)}}, &deadlines{ResponseWriter: httptest.NewRecorder()}
	before := time.Now()
	if err := a.readAll(d, newRequest(strings.NewReader("body"), 4)); err != nil {
		t.Fatal(err)
	}
	if len(d.set) != 2 || d.set[0].Before(before.Add(bodyTimeout)) || d.set[0].After(time.Now().Add(bodyTimeout)) || !d.set[1].IsZero() {
		t.Errorf("got deadlines %v", d.set)
	}
}

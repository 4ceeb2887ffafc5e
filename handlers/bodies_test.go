package handlers

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// slowBody is a body that arrives only as the test sends it.
type slowBody struct {
	*io.PipeReader
	w *io.PipeWriter
}

func newSource() slowBody {
	r, w := io.Pipe()
	return slowBody{r, w}
}

// send sends the given number of chunks and one byte of another. When it returns they have been read.
func (s slowBody) send(t *testing.T, chunks int) {
	t.Helper()
	if _, err := s.w.Write(bytes.Repeat([]byte("x"), chunks*chunkSize+1)); err != nil {
		t.Fatal(err)
	}
}

// startBody begins a body that sends the given number of chunks and then nothing. The channel receives the error of
// readAll.
func startBody(t *testing.T, b *bodies, chunks int) (*body, <-chan error) {
	t.Helper()
	s := newSource()
	d := b.begin(func() { _ = s.w.CloseWithError(errors.New("interrupted")) })
	done := make(chan error, 1)
	go func() {
		err := d.readAll(s)
		d.release()
		done <- err
	}()
	s.send(t, chunks)
	return d, done
}

// read reads a whole body and returns its error.
func read(b *bodies, size int) error {
	d := b.begin(func() {})
	defer d.release()
	text := strings.Repeat("small ", size/6+1)[:size]
	if err := d.readAll(strings.NewReader(text)); err != nil {
		return err
	}
	if string(d.bytes()) != text {
		return errors.New("another body was read")
	}
	return nil
}

func TestBodiesOfAllSizesAreRead(t *testing.T) {
	t.Parallel()
	b := newBodies(8 * chunkSize)
	for _, size := range []int{0, 1, chunkSize - 1, chunkSize, chunkSize + 1, 3 * chunkSize, 8*chunkSize - 1} {
		if err := read(b, size); err != nil {
			t.Errorf("body of %d bytes: got error %v", size, err)
		}
	}
	if err := read(b, 9*chunkSize); !errors.Is(err, errNoMemory) {
		t.Errorf("body larger than the memory: got error %v, want errNoMemory", err)
	}
	if len(b.free) != b.allocated || b.allocated > b.max || len(b.unread) > 0 {
		t.Errorf("got %d of %d chunks free, with a maximum of %d, and %d unread bodies; want all free and none unread", len(b.free), b.allocated, b.max, len(b.unread))
	}
}

// The bodies in this test hold all memory and do not end.
func TestLargestBodyIsAbandonedForSmallerOnes(t *testing.T) {
	t.Parallel()
	b := newBodies(8 * chunkSize)
	_, large := startBody(t, b, 4)
	_, small := startBody(t, b, 1) // all chunks are in use but one, including those being read into
	_, last := startBody(t, b, 0)
	for range 3 {
		if err := read(b, 100); err != nil {
			t.Fatalf("small body: got error %v", err)
		}
	}
	if err := read(b, 2*chunkSize); err != nil {
		t.Fatalf("body smaller than the largest: got error %v", err)
	}
	if err := <-large; !errors.Is(err, errNoMemory) {
		t.Errorf("largest body: got error %v, want errNoMemory", err)
	}
	select {
	case err := <-small:
		t.Errorf("small body that began earlier: got error %v", err)
	case err := <-last:
		t.Errorf("body of one chunk that began earlier: got error %v", err)
	default:
	}
}

// The newest body is the one that needs too much memory.
func TestNewestBodyIsAbandonedIfItIsTheLargest(t *testing.T) {
	t.Parallel()
	b := newBodies(8 * chunkSize)
	_, first := startBody(t, b, 2)
	if err := read(b, 7*chunkSize); !errors.Is(err, errNoMemory) {
		t.Errorf("largest body: got error %v, want errNoMemory", err)
	}
	select {
	case err := <-first:
		t.Errorf("smaller body: got error %v", err)
	default:
	}
}

func TestConcurrentBodiesStayWithinMemoryLimit(t *testing.T) {
	t.Parallel()
	b := newBodies(64 * chunkSize)
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			for j := range 20 {
				size := (i * j * 997) % (20 * chunkSize)
				if i%2 == 0 {
					size = 1000
				}
				if err := read(b, size); err != nil && (size <= chunkSize || !errors.Is(err, errNoMemory)) {
					t.Errorf("body of %d bytes: got error %v", size, err)
				}
			}
		})
	}
	wg.Wait()
	if len(b.free) != b.allocated || b.allocated > b.max+60 {
		t.Errorf("got %d of %d chunks free, want all of at most %d", len(b.free), b.allocated, b.max)
	}
	seen := map[*byte]bool{}
	for _, chunk := range b.free {
		if len(chunk) != chunkSize || seen[&chunk[0]] {
			t.Fatal("got a chunk that was released twice or cut, want each chunk once")
		}
		seen[&chunk[0]] = true
	}
}

// A body that does not end is abandoned: its sender gets an answer and loses the connection.
func TestSlowBodiesAreAbandoned(t *testing.T) {
	t.Parallel()
	f := &front{secrets: [][]byte{[]byte("s")}, bodies: newBodies(8 * chunkSize), within: 50 * time.Millisecond, log: zerolog.Nop(), forms: webhookForms()}
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nX-GitHub-Event: issues\r\nX-GitHub-Delivery: a\r\n"+
		"X-Hub-Signature-256: sha256=%064d\r\nContent-Length: 1000\r\n\r\n{", 0)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn) // until the connection closes
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") {
		t.Errorf("got answer %q, error %v", answer, err)
	}
}

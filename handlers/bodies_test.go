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

// source is a body that arrives as far as the test lets it.
type source struct {
	*io.PipeReader
	w *io.PipeWriter
}

func newSource() source {
	r, w := io.Pipe()
	return source{r, w}
}

// send sends so many chunks and a byte of another, which have been read when it returns.
func (s source) send(t *testing.T, chunks int) {
	t.Helper()
	if _, err := s.w.Write(bytes.Repeat([]byte("x"), chunks*chunkSize+1)); err != nil {
		t.Fatal(err)
	}
}

// stuck begins a body that has sent so many chunks and then sends nothing. The channel has its end.
func stuck(t *testing.T, b *bodies, chunks int) (*body, <-chan error) {
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

// read reads a whole body and returns how that ended.
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

func TestBodiesOfAllSizes(t *testing.T) {
	t.Parallel()
	b := newBodies(8 * chunkSize)
	for _, size := range []int{0, 1, chunkSize - 1, chunkSize, chunkSize + 1, 3 * chunkSize, 8*chunkSize - 1} {
		if err := read(b, size); err != nil {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if err := read(b, 9*chunkSize); !errors.Is(err, errNoMemory) {
		t.Errorf("more than there is memory: %v", err)
	}
	if len(b.free) != b.made || b.made > b.max || len(b.unread) > 0 {
		t.Errorf("%d chunks of %d are free, at most %d; %d bodies are being read", len(b.free), b.made, b.max, len(b.unread))
	}
}

// TestLargeBodiesGiveWayToSmallOnes holds all memory with bodies that do not end.
func TestLargeBodiesGiveWayToSmallOnes(t *testing.T) {
	t.Parallel()
	b := newBodies(8 * chunkSize)
	_, large := stuck(t, b, 4)
	_, small := stuck(t, b, 1) // with the chunks that are read into, all are taken but one
	_, last := stuck(t, b, 0)
	for range 3 {
		if err := read(b, 100); err != nil {
			t.Fatalf("a small body: %v", err)
		}
	}
	if err := read(b, 2*chunkSize); err != nil {
		t.Fatalf("a body that is smaller than the largest: %v", err)
	}
	if err := <-large; !errors.Is(err, errNoMemory) {
		t.Errorf("the largest body: %v", err)
	}
	select {
	case err := <-small:
		t.Errorf("a small body that had begun before: %v", err)
	case err := <-last:
		t.Errorf("a body of one chunk that had begun before: %v", err)
	default:
	}
}

// TestTheLargestBodyGivesWayThoughItIsTheLast has the newcomer be the one that asks for too much.
func TestTheLargestBodyGivesWayThoughItIsTheLast(t *testing.T) {
	t.Parallel()
	b := newBodies(8 * chunkSize)
	_, first := stuck(t, b, 2)
	if err := read(b, 7*chunkSize); !errors.Is(err, errNoMemory) {
		t.Errorf("a body that is larger than the rest: %v", err)
	}
	select {
	case err := <-first:
		t.Errorf("a smaller body: %v", err)
	default:
	}
}

func TestBodiesAtOnceStayWithinTheirMemory(t *testing.T) {
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
					t.Errorf("%d bytes: %v", size, err)
				}
			}
		})
	}
	wg.Wait()
	if len(b.free) != b.made || b.made > b.max+60 {
		t.Errorf("%d chunks of %d are free, at most %d", len(b.free), b.made, b.max)
	}
	seen := map[*byte]bool{}
	for _, chunk := range b.free {
		if len(chunk) != chunkSize || seen[&chunk[0]] {
			t.Fatal("a chunk was given back twice, or not whole")
		}
		seen[&chunk[0]] = true
	}
}

// TestSlowBodiesAreGivenUp begins a body that does not end; whoever sends it is answered and loses the connection.
func TestSlowBodiesAreGivenUp(t *testing.T) {
	t.Parallel()
	f := &front{secret: []byte("s"), bodies: newBodies(8 * chunkSize), within: 50 * time.Millisecond, log: zerolog.Nop(), forms: webhookForms()}
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
	answer, err := io.ReadAll(conn) // to the end of the connection
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") {
		t.Errorf("answered %q, %v", answer, err)
	}
}

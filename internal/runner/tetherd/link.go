package tetherd

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/yamux"

	"github.com/errand-bot/errand/internal/clock"
)

// transferTimeout is how long after its last byte an answer still counts as being transferred.
const transferTimeout = 2 * time.Second

// link is one accepted connection.
type link struct {
	conn net.Conn
	// unattached is true while the connection waits for an orchestrator to attach.
	unattached atomic.Bool
	// awaitsAnswer is true after a byte from the VM until a byte from the other side.
	awaitsAnswer atomic.Bool
	// lastByte is the time of the last byte, in Unix nanoseconds.
	lastByte atomic.Int64
}

// isWaiting reports whether a process on the VM is waiting for the other side. A kept-alive connection without a request is
// not open; otherwise a hung agent would look like a waiting one.
func (l *link) isWaiting(now time.Time) bool {
	return l.unattached.Load() || l.awaitsAnswer.Load() || now.Sub(time.Unix(0, l.lastByte.Load())) < transferTimeout
}

// forwardConn forwards one connection to the attached side, which it waits for.
func (d *daemon) forwardConn(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	l := &link{conn: conn}
	l.unattached.Store(true)
	d.mu.Lock()
	d.links[l] = struct{}{}
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		delete(d.links, l)
		d.mu.Unlock()
	}()
	stream, err := d.openStream(ctx, conn)
	if err != nil {
		return
	}
	l.unattached.Store(false)
	l.lastByte.Store(time.Now().UnixNano())
	stop := context.AfterFunc(ctx, func() { _, _ = conn.Close(), stream.Close() })
	defer stop()
	l.copyBoth(stream)
}

// Reasons for closing a connection that waits for an orchestrator.
var (
	errHeldTooLong = errors.New("errand did not attach in time")
	errPeerClosed  = errors.New("the peer closed the connection")
)

// peerCheckInterval is the interval of checks whether a waiting connection is still open.
const peerCheckInterval = time.Second

// openStream waits for a session and opens a stream in it.
func (d *daemon) openStream(ctx context.Context, conn net.Conn) (*yamux.Stream, error) {
	timer := time.NewTimer(d.config.Hold)
	defer timer.Stop()
	check := time.NewTicker(peerCheckInterval)
	defer check.Stop()
	for {
		session, attached := d.current()
		if isPeerClosed(conn) {
			return nil, errPeerClosed
		}
		if session != nil {
			stream, err := session.OpenStream()
			if err == nil {
				return stream, nil
			}
			// The session is ending: attach will soon replace or remove it.
			_ = session.Close()
			attached = session.CloseChan()
		}
		select {
		case <-attached:
		case <-check.C:
		case <-timer.C:
			return nil, errHeldTooLong
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		if session != nil {
			_ = clock.Sleep(ctx, 5*time.Millisecond) // CloseChan stays closed; do not spin until attach has noticed
		}
	}
}

// copyBoth copies in both directions until both are done.
func (l *link) copyBoth(stream *yamux.Stream) {
	defer stream.Close()
	var group sync.WaitGroup
	group.Go(func() {
		_, err := io.Copy(stream, meter{Reader: l.conn, passed: func() { l.noteTraffic(true) }})
		_ = stream.Close() // half-close: the answer may still come
		if err != nil {
			_ = l.conn.Close()
		}
	})
	_, err := io.Copy(l.conn, meter{Reader: stream, passed: func() { l.noteTraffic(false) }})
	if tcp, ok := l.conn.(*net.TCPConn); ok && err == nil {
		_ = tcp.CloseWrite()
	} else {
		_ = l.conn.Close()
	}
	l.awaitsAnswer.Store(false)
	group.Wait()
}

// noteTraffic records the time and direction of the last bytes.
func (l *link) noteTraffic(fromVM bool) {
	l.awaitsAnswer.Store(fromVM)
	l.lastByte.Store(time.Now().UnixNano())
}

// meter reports every read that returned data.
type meter struct {
	io.Reader
	passed func()
}

func (m meter) Read(p []byte) (int, error) {
	n, err := m.Reader.Read(p)
	if n > 0 {
		m.passed()
	}
	return n, err
}

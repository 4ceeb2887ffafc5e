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
)

// movingFor is how long after its last byte an answer still counts as being transferred.
const movingFor = 2 * time.Second

// link is one accepted connection.
type link struct {
	conn net.Conn
	held atomic.Bool
	// asked is true after a byte from the VM until a byte from the other side.
	asked atomic.Bool
	// moved is the time of the last byte, in Unix nanoseconds.
	moved atomic.Int64
}

// open reports whether a process on the VM is waiting for the other side. A kept-alive connection without a request is
// not open; otherwise a hung agent would look like a waiting one.
func (l *link) open(now time.Time) bool {
	return l.held.Load() || l.asked.Load() || now.Sub(time.Unix(0, l.moved.Load())) < movingFor
}

// link forwards one connection to the attached side, and holds it while there is none.
func (d *daemon) link(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	l := &link{conn: conn}
	l.held.Store(true)
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
	l.held.Store(false)
	l.moved.Store(time.Now().UnixNano())
	stop := context.AfterFunc(ctx, func() { _, _ = conn.Close(), stream.Close() })
	defer stop()
	l.carry(stream)
}

// Reasons for closing a held connection.
var (
	errHeldTooLong = errors.New("nobody attached in time")
	errGone        = errors.New("the connection's other end has gone")
)

// gonePause is the interval of checks whether a held connection is still open.
const gonePause = time.Second

// openStream waits for a session and opens a stream in it.
func (d *daemon) openStream(ctx context.Context, conn net.Conn) (*yamux.Stream, error) {
	timer := time.NewTimer(d.config.Hold)
	defer timer.Stop()
	check := time.NewTicker(gonePause)
	defer check.Stop()
	for {
		session, attached := d.current()
		if gone(conn) {
			return nil, errGone
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
			select { // CloseChan stays closed; do not spin until attach has noticed
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
			}
		}
	}
}

// carry copies in both directions until both are done.
func (l *link) carry(stream *yamux.Stream) {
	defer stream.Close()
	var group sync.WaitGroup
	group.Go(func() {
		_, err := io.Copy(stream, meter{Reader: l.conn, passed: func() { l.pass(true) }})
		_ = stream.Close() // half-close: the answer may still come
		if err != nil {
			_ = l.conn.Close()
		}
	})
	_, err := io.Copy(l.conn, meter{Reader: stream, passed: func() { l.pass(false) }})
	if tcp, ok := l.conn.(*net.TCPConn); ok && err == nil {
		_ = tcp.CloseWrite()
	} else {
		_ = l.conn.Close()
	}
	l.asked.Store(false)
	group.Wait()
}

func (l *link) pass(fromVM bool) {
	l.asked.Store(fromVM)
	l.moved.Store(time.Now().UnixNano())
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

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

// movingFor is how long after its last byte an answer still counts as on its way.
const movingFor = 2 * time.Second

// link is one accepted connection.
type link struct {
	conn net.Conn
	held atomic.Bool
	// asked is true from a byte of the VM until a byte of the other side.
	asked atomic.Bool
	// moved is when the last byte passed, in Unix nanoseconds.
	moved atomic.Int64
}

// open says whether somebody on the VM is waiting for the other side. A kept-alive connection
// without a request is not open, else a hung agent could never be told from a waiting one.
func (l *link) open(now time.Time) bool {
	return l.held.Load() || l.asked.Load() || now.Sub(time.Unix(0, l.moved.Load())) < movingFor
}

// link carries one connection to the attached side, and holds it while there is none.
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

// Why a held connection was closed.
var (
	errHeldTooLong = errors.New("nobody attached in time")
	errGone        = errors.New("the connection's other end has gone")
)

// gonePause is the pause between two looks whether a held connection is still wanted.
const gonePause = time.Second

// openStream waits for a session that takes a stream.
func (d *daemon) openStream(ctx context.Context, conn net.Conn) (*yamux.Stream, error) {
	timer := time.NewTimer(d.config.Hold)
	defer timer.Stop()
	look := time.NewTicker(gonePause)
	defer look.Stop()
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
		case <-look.C:
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

// carry copies both ways until both sides are done.
func (l *link) carry(stream *yamux.Stream) {
	defer stream.Close()
	var group sync.WaitGroup
	group.Go(func() {
		_, err := io.Copy(stream, meter{Reader: l.conn, passed: func() { l.pass(true) }})
		_ = stream.Close() // half: the answer may still come
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

// meter reports every read that gave something.
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

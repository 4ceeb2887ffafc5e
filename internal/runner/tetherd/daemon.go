package tetherd

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/yamux"
	"golang.org/x/sys/unix"

	"github.com/errand-bot/errand/internal/clock"
)

// Defaults for zero fields of a Config.
const (
	DefaultHold           = 10 * time.Minute
	DefaultMaxConnections = 256
)

// Config configures Serve.
type Config struct {
	// Dir is the directory of the daemon's lock and control socket.
	Dir string
	// Listen is the loopback address to listen on.
	Listen string
	// Hold is how long a connection waits for an orchestrator to attach before it is closed.
	Hold time.Duration
	// MaxConnections bounds the open connections; further ones wait in the kernel.
	MaxConnections int
	// Ready, if set, is called once with the actual address when the port is open.
	Ready func(Status)
}

// ErrServing means that another daemon owns the directory.
var ErrServing = errors.New("a tether is already being served")

// daemon is one served tether.
type daemon struct {
	config  Config
	address string
	stop    context.CancelFunc

	mu       sync.Mutex
	session  *yamux.Session
	attached chan struct{} // closed when a session begins; replaced when it ends
	links    map[*link]struct{}
}

// Serve owns the port until ctx ends or it receives a stop order. There is at most one daemon per directory.
func Serve(ctx context.Context, config Config) error {
	if config.Hold == 0 {
		config.Hold = DefaultHold
	}
	if config.MaxConnections == 0 {
		config.MaxConnections = DefaultMaxConnections
	}
	lock, err := lockDir(config.Dir)
	if err != nil {
		return fmt.Errorf("serve tether: %w", err)
	}
	defer lock.Close()
	port, err := net.Listen("tcp", config.Listen)
	if err != nil {
		return fmt.Errorf("serve tether: %w", err)
	}
	defer port.Close()
	control, err := listenControl(config.Dir)
	if err != nil {
		return fmt.Errorf("serve tether: %w", err)
	}
	defer control.Close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	d := &daemon{
		config: config, address: port.Addr().String(), stop: stop,
		attached: make(chan struct{}), links: make(map[*link]struct{}),
	}
	if config.Ready != nil {
		config.Ready(d.status())
	}
	return d.run(ctx, port, control)
}

// run serves both listeners until ctx ends, and returns when everything is closed.
func (d *daemon) run(ctx context.Context, port, control net.Listener) error {
	var group sync.WaitGroup
	slots := make(chan struct{}, d.config.MaxConnections)
	group.Go(func() {
		d.accept(ctx, port, func(conn net.Conn) {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				_ = conn.Close()
				return
			}
			group.Go(func() {
				defer func() { <-slots }()
				d.forwardConn(ctx, conn)
			})
		})
	})
	group.Go(func() {
		d.accept(ctx, control, func(conn net.Conn) { group.Go(func() { d.handleControl(ctx, conn) }) })
	})
	<-ctx.Done()
	_, _ = port.Close(), control.Close()
	d.detachAll()
	group.Wait()
	return nil
}

// acceptPause is the pause after a failed accept, for example because of missing file descriptors.
const acceptPause = 100 * time.Millisecond

func (d *daemon) accept(ctx context.Context, l net.Listener, handle func(net.Conn)) {
	for ctx.Err() == nil {
		conn, err := l.Accept()
		if err == nil {
			handle(conn)
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		_ = clock.Sleep(ctx, acceptPause) // the loop checks ctx
	}
}

// handleControl reads one order from a control connection and executes it.
func (d *daemon) handleControl(ctx context.Context, conn net.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(orderTimeout))
	// The order is read byte by byte, because the following bytes belong to yamux.
	order, err := readLine(conn)
	if err != nil {
		_ = conn.Close()
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	switch order {
	case orderAttach:
		if _, err := io.WriteString(conn, attachAnswer+"\n"); err != nil {
			_ = conn.Close()
			return
		}
		d.attach(ctx, conn)
	case orderStatus:
		_ = json.NewEncoder(conn).Encode(d.status())
		_ = conn.Close()
	case orderStop:
		_ = json.NewEncoder(conn).Encode(d.status())
		_ = conn.Close()
		d.stop()
	default:
		_ = conn.Close()
	}
}

func readLine(r io.Reader) (string, error) {
	line, one := make([]byte, 0, 16), make([]byte, 1)
	for len(line) < 64 {
		if _, err := io.ReadFull(r, one); err != nil {
			return "", err
		}
		if one[0] == '\n' {
			return string(line), nil
		}
		line = append(line, one[0])
	}
	return "", bufio.ErrTooLong
}

// attach makes the connection the session for streams, in place of an older one, and returns when the session has
// ended.
func (d *daemon) attach(ctx context.Context, conn net.Conn) {
	session, err := yamux.Client(conn, sessionConfig())
	if err != nil {
		_ = conn.Close()
		return
	}
	d.mu.Lock()
	older := d.session
	d.session = session
	if older == nil {
		close(d.attached)
	}
	d.mu.Unlock()
	if older != nil {
		_ = older.Close()
	}
	select {
	case <-session.CloseChan():
	case <-ctx.Done():
		_ = session.Close()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.session == session {
		d.session = nil
		d.attached = make(chan struct{})
	}
}

// sessionConfig detects a dead or frozen peer within about 15 s.
func sessionConfig() *yamux.Config {
	config := yamux.DefaultConfig()
	config.EnableKeepAlive = true
	config.KeepAliveInterval = 5 * time.Second
	config.ConnectionWriteTimeout = 10 * time.Second
	config.LogOutput = io.Discard
	return config
}

func (d *daemon) detachAll() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.session != nil {
		_ = d.session.Close()
	}
}

// current returns the session, or nil, and the channel that is closed when one begins.
func (d *daemon) current() (*yamux.Session, <-chan struct{}) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.session, d.attached
}

func (d *daemon) status() Status {
	d.mu.Lock()
	defer d.mu.Unlock()
	status := Status{Listen: d.address, Attached: d.session != nil}
	now := time.Now()
	for l := range d.links {
		if l.unattached.Load() {
			status.Unattached++
		}
		if l.isWaiting(now) {
			status.Open++
		}
	}
	return status
}

// lockDir locks the directory for this daemon.
func lockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, ErrServing
	}
	return nil, fmt.Errorf("lock directory: %w", err)
}

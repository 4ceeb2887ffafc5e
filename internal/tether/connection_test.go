package tether_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/yamux"
	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/gateway/gatewaytest"
	"github.com/errand-bot/errand/internal/tether"
	"github.com/errand-bot/errand/state"
)

// cable connects the keeper to VMs. Each attach hands the VM's end to the test.
type cable struct {
	ends chan net.Conn
	fail chan error // one is taken per attach that is to fail
}

func newCable() *cable { return &cable{ends: make(chan net.Conn, 10), fail: make(chan error, 10)} }

func (c *cable) Attach(ctx context.Context, _ string) (io.ReadWriteCloser, error) {
	select {
	case err := <-c.fail:
		return nil, err
	default:
	}
	ours, theirs := net.Pipe()
	select {
	case c.ends <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// vmSide returns the VM's end of a tether, and a client that uses it.
func (c *cable) vmSide(t *testing.T) (*http.Client, *yamux.Session) {
	t.Helper()
	var conn net.Conn
	select {
	case conn = <-c.ends:
	case <-time.After(time.Minute):
		t.Fatal("the keeper did not attach")
	}
	cfg := yamux.DefaultConfig()
	cfg.LogOutput = io.Discard
	session, err := yamux.Client(conn, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return session.Open() }}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}, session
}

// runKeeper runs a keeper until the test ends, or until stop is called.
func runKeeper(t *testing.T, a tether.Attacher, h *tether.Handler) (k *tether.Keeper, stop func()) {
	t.Helper()
	k = tether.NewKeeper(a, h, zerolog.Nop())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- k.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	t.Cleanup(stop)
	return k, stop
}

// ensure waits until Run has started and the tether is attached.
func ensure(t *testing.T, k *tether.Keeper) {
	t.Helper()
	if err := tryEnsure(t, k); err != nil {
		t.Fatalf("ensure: %v", err)
	}
}

func tryEnsure(t *testing.T, k *tether.Keeper) error {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		err := k.Ensure(ctx, peer)
		if !errors.Is(err, tether.ErrNotRunning) || ctx.Err() != nil {
			return err
		}
		runtime.Gosched()
	}
}

var peer = tether.Peer{VM: vm, Task: state.TaskKey{Repo: 7, Issue: 1}}

// reaches calls the model through the tether.
func reaches(t *testing.T, e *end, client *http.Client) {
	t.Helper()
	status, body := ask(t, client, http.MethodPost, "http://vm"+modelPath, gatewaytest.Bearer(e.handler.RunToken(run)))
	if status != http.StatusOK || body != `"body;"from upstream` {
		t.Errorf("status %d: %s", status, body)
	}
}

// TestKeeper: an attached tether serves requests until the keeper ends.
func TestKeeper(t *testing.T) {
	t.Parallel()
	e, c := newEnd(t, someTask(), nil), newCable()
	k, stop := runKeeper(t, c, e.handler)
	ensure(t, k)
	client, session := c.vmSide(t)
	reaches(t, e, client)
	ensure(t, k) // attached already: no new connection is opened
	if len(c.ends) != 0 {
		t.Error("attached twice")
	}
	stop()
	<-session.CloseChan()
	if err := k.Ensure(t.Context(), peer); !errors.Is(err, tether.ErrNotRunning) {
		t.Errorf("after the end: %v", err)
	}
}

// TestReconnect: a lost connection is attached again, repeatedly, and serves requests as before.
func TestReconnect(t *testing.T) {
	t.Parallel()
	e, c := newEnd(t, someTask(), nil), newCable()
	k, _ := runKeeper(t, c, e.handler)
	ensure(t, k)
	for range 3 {
		client, session := c.vmSide(t)
		reaches(t, e, client)
		if err := session.Close(); err != nil {
			t.Fatal(err)
		}
	}
	client, _ := c.vmSide(t)
	reaches(t, e, client)
	ensure(t, k)
}

// TestAttachFails: Ensure returns the error of a failed attempt, and the attempts continue.
func TestAttachFails(t *testing.T) {
	t.Parallel()
	e, c := newEnd(t, someTask(), nil), newCable()
	gone := errors.New("the host cannot be reached")
	c.fail <- gone
	k, _ := runKeeper(t, c, e.handler)
	if err := tryEnsure(t, k); !errors.Is(err, gone) {
		t.Errorf("ensure: %v", err)
	}
	client, _ := c.vmSide(t)
	reaches(t, e, client)
	ensure(t, k)
}

// stuck is a VM that never answers.
type stuck struct{ asked chan struct{} }

func (s stuck) Attach(ctx context.Context, _ string) (io.ReadWriteCloser, error) {
	s.asked <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestForget(t *testing.T) {
	t.Parallel()
	e := newEnd(t, someTask(), nil)
	s := stuck{asked: make(chan struct{}, 1)}
	k, _ := runKeeper(t, s, e.handler)
	waited := make(chan error, 1)
	go func() { waited <- tryEnsure(t, k) }()
	<-s.asked
	k.Forget(vm)
	k.Forget("unknown")
	if err := <-waited; !errors.Is(err, tether.ErrForgotten) {
		t.Errorf("Ensure returned %v", err)
	}
}

func TestForgetClosesTheConnection(t *testing.T) {
	t.Parallel()
	e, c := newEnd(t, someTask(), nil), newCable()
	k, _ := runKeeper(t, c, e.handler)
	ensure(t, k)
	client, session := c.vmSide(t)
	reaches(t, e, client)
	k.Forget(vm)
	<-session.CloseChan()
	ensure(t, k) // wanted again
	client, _ = c.vmSide(t)
	reaches(t, e, client)
}

func TestEnsureEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := stuck{asked: make(chan struct{}, 1)}
	k, _ := runKeeper(t, s, newEnd(t, someTask(), nil).handler)
	ctx, cancel := context.WithCancel(t.Context())
	waited := make(chan error, 1)
	go func() {
		err := tether.ErrNotRunning
		for errors.Is(err, tether.ErrNotRunning) {
			err = k.Ensure(ctx, peer)
		}
		waited <- err
	}()
	<-s.asked
	cancel()
	if err := <-waited; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestConnectionsOfAVMAreLimited: a VM may have a limited number of connections, even if another program replaces the runner's end there; the
// next one is served when one ends.
func TestConnectionsOfAVMAreLimited(t *testing.T) {
	t.Parallel()
	const most = 320
	e, c := newEnd(t, someTask(), nil), newCable()
	k, _ := runKeeper(t, c, e.handler)
	ensure(t, k)
	_, session := c.vmSide(t)
	const request, answer = "GET / HTTP/1.1\r\nHost: vm\r\n\r\n", "HTTP/1.1 401 Unauthorized\r\n"
	open := func() net.Conn {
		conn, err := session.Open()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	answered := func(conn net.Conn, within time.Duration) error {
		if err := conn.SetReadDeadline(time.Now().Add(within)); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(answer))
		_, err := io.ReadFull(conn, got)
		if err == nil && string(got) != answer {
			t.Errorf("answered with %q", got)
		}
		return err
	}
	var first net.Conn
	for range most {
		first = open()
		if err := answered(first, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	next := open()
	if err := answered(next, 100*time.Millisecond); err == nil {
		t.Error("a connection beyond the limit was served")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := answered(next, time.Minute); err != nil {
		t.Errorf("after another one has ended: %v", err)
	}
}

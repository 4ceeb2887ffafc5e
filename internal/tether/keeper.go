package tether

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/hashicorp/yamux"
	"github.com/rs/zerolog"
	"golang.org/x/net/netutil"

	"github.com/errand-bot/errand/internal/clock"
)

// maxConnections is the maximum number of connections of one VM. The runner's end allows fewer, but it is on the VM.
const maxConnections = 320

// Attacher opens the byte stream to a VM's end of the tether: a yamux session of which errand is the server.
type Attacher interface {
	Attach(ctx context.Context, vm string) (io.ReadWriteCloser, error)
}

// A Keeper keeps the tethers of VMs attached, and attaches them again when a connection is lost, until Forget is called or the context
// of Run ends.
type Keeper struct {
	attach  Attacher
	handler *Handler
	log     zerolog.Logger

	mu          sync.Mutex
	ctx         context.Context // of Run; nil before and after
	connections map[string]*connection
	wg          sync.WaitGroup
}

// A connection is the tether of one VM.
type connection struct {
	cancel   context.CancelFunc
	ended    <-chan struct{} // closed when it is forgotten or the keeper ends
	up       chan struct{}   // closed when attached; replaced when the connection is lost
	attached bool
	failed   chan struct{} // closed when an attempt fails; replaced at once
	err      error         // of the last attempt
}

// NewKeeper returns a Keeper. It does nothing before Run.
func NewKeeper(a Attacher, h *Handler, log zerolog.Logger) *Keeper {
	return &Keeper{attach: a, handler: h, log: log, connections: map[string]*connection{}}
}

// Run keeps tethers attached until ctx ends; then every connection is closed.
func (k *Keeper) Run(ctx context.Context) error {
	k.mu.Lock()
	k.ctx = ctx
	k.mu.Unlock()
	<-ctx.Done()
	k.mu.Lock()
	k.ctx = nil // no connection is started from here on
	k.mu.Unlock()
	k.wg.Wait()
	return nil
}

// ErrNotRunning is returned before Run is called and after it has ended.
var ErrNotRunning = errors.New("the tether keeper is not running")

// ErrForgotten is returned by Ensure if Forget is called meanwhile.
var ErrForgotten = errors.New("the tether was closed")

// Ensure starts to attach the VM's tether and waits until it is attached or an attempt fails. After an error the attempts continue:
// the caller may call Ensure again, or conclude that the VM is gone.
func (k *Keeper) Ensure(ctx context.Context, p Peer) error {
	k.mu.Lock()
	if k.ctx == nil {
		k.mu.Unlock()
		return ErrNotRunning
	}
	c := k.connections[p.VM]
	if c == nil {
		connCtx, cancel := context.WithCancel(k.ctx)
		c = &connection{cancel: cancel, ended: connCtx.Done(), up: make(chan struct{}), failed: make(chan struct{})}
		k.connections[p.VM] = c
		k.wg.Go(func() { k.keepAttached(connCtx, p, c) })
	}
	up, failed := c.up, c.failed
	k.mu.Unlock()
	select {
	case <-up:
		return nil
	case <-failed:
		k.mu.Lock()
		defer k.mu.Unlock()
		return c.err
	case <-c.ended:
		return ErrForgotten
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Forget closes a VM's tether.
func (k *Keeper) Forget(vm string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if c := k.connections[vm]; c != nil {
		c.cancel()
		delete(k.connections, vm)
	}
}

// keepAttached attaches the tether until ctx ends, with back-off between failures.
func (k *Keeper) keepAttached(ctx context.Context, p Peer, c *connection) {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 100*time.Millisecond, 10*time.Second
	for ctx.Err() == nil {
		begun := time.Now()
		err := k.serve(ctx, p, c)
		if ctx.Err() != nil {
			return
		}
		if time.Since(begun) > time.Minute {
			b.Reset()
		}
		k.reportFailure(c, err)
		wait := b.NextBackOff()
		k.log.Warn().Err(err).Str("vm", p.VM).Dur("retry_in", wait).Msg("tether lost; reconnecting")
		_ = clock.Sleep(ctx, wait) // the loop checks ctx
	}
}

// serve attaches the tether once and answers its requests until the connection ends.
func (k *Keeper) serve(ctx context.Context, p Peer, c *connection) error {
	attachCtx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	// The stream lives as long as the context that it was opened with, so that context must not have the timeout.
	streamCtx, endStream := context.WithCancel(ctx)
	defer endStream()
	stop := context.AfterFunc(attachCtx, endStream)
	rw, err := k.attach.Attach(streamCtx, p.VM)
	if !stop() || err != nil {
		if rw != nil && err == nil {
			_ = rw.Close()
		}
		return errors.Join(err, attachCtx.Err())
	}
	defer func() { _ = rw.Close() }()
	cfg := yamux.DefaultConfig()
	cfg.LogOutput = io.Discard
	cfg.KeepAliveInterval, cfg.ConnectionWriteTimeout = 10*time.Second, 15*time.Second
	session, err := yamux.Server(rw, cfg)
	if err != nil {
		return err
	}
	defer func() { _ = session.Close() }()
	k.setAttached(c, true)
	defer k.setAttached(c, false)
	srv := &http.Server{
		Handler: k.handler.For(p), ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 5 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx }, ErrorLog: log.New(k.log, "", 0),
	}
	end := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer end()
	return srv.Serve(netutil.LimitListener(session, maxConnections))
}

// reportFailure reports a failed attempt to those that wait in Ensure.
func (k *Keeper) reportFailure(c *connection, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	c.err = err
	close(c.failed)
	c.failed = make(chan struct{})
}

// setAttached records whether the tether is attached.
func (k *Keeper) setAttached(c *connection, up bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if up && !c.attached {
		close(c.up)
	} else if !up && c.attached {
		c.up = make(chan struct{})
	}
	c.attached = up
}

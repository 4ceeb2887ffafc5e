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
)

// maxConnections bounds the connections that are served of one VM at once. The runner's own end lets fewer come; but
// that is on the VM.
const maxConnections = 320

// Attacher opens the byte stream to a VM's end of the tether: a yamux session whose server is ours.
type Attacher interface {
	Attach(ctx context.Context, vm string) (io.ReadWriteCloser, error)
}

// Keeper keeps the tethers of the VMs that are wanted attached, over cut connections, until it is
// told to forget them or Run's context ends.
type Keeper struct {
	attach  Attacher
	handler *Handler
	log     zerolog.Logger

	mu          sync.Mutex
	ctx         context.Context // of Run, nil before; the goroutines' life, not a call's
	connections map[string]*connection
	wg          sync.WaitGroup
}

// connection is one VM's tether.
type connection struct {
	cancel   context.CancelFunc
	ended    <-chan struct{} // closed when it was forgotten, or the keeper has ended
	up       chan struct{}   // closed when attached; replaced when cut
	attached bool
	failed   chan struct{} // closed when an attempt fails; replaced at once
	err      error         // of the last attempt
}

// NewKeeper returns a Keeper. Nothing happens before Run.
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
	k.ctx = nil // no line is begun from here on
	k.mu.Unlock()
	k.wg.Wait()
	return nil
}

// ErrNotRunning says that Run has not been called, or has ended.
var ErrNotRunning = errors.New("the tether keeper does not run")

// ErrForgotten says that somebody let the tether go while it was waited for.
var ErrForgotten = errors.New("the tether was let go")

// Ensure has the VM's tether attached and waits until it is, or until an attempt fails. The attempts
// go on all the same: who gets an error may ask again, or conclude from it that the VM is gone.
func (k *Keeper) Ensure(ctx context.Context, p Peer) error {
	k.mu.Lock()
	if k.ctx == nil {
		k.mu.Unlock()
		return ErrNotRunning
	}
	l := k.connections[p.VM]
	if l == nil {
		lctx, cancel := context.WithCancel(k.ctx)
		l = &connection{cancel: cancel, ended: lctx.Done(), up: make(chan struct{}), failed: make(chan struct{})}
		k.connections[p.VM] = l
		k.wg.Go(func() { k.keep(lctx, p, l) })
	}
	up, failed := l.up, l.failed
	k.mu.Unlock()
	select {
	case <-up:
		return nil
	case <-failed:
		k.mu.Lock()
		defer k.mu.Unlock()
		return l.err
	case <-l.ended:
		return ErrForgotten
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Forget lets a VM's tether go.
func (k *Keeper) Forget(vm string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l := k.connections[vm]; l != nil {
		l.cancel()
		delete(k.connections, vm)
	}
}

// keep attaches again and again, with back-off between failures.
func (k *Keeper) keep(ctx context.Context, p Peer, l *connection) {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 100*time.Millisecond, 10*time.Second
	for ctx.Err() == nil {
		begun := time.Now()
		err := k.serve(ctx, p, l)
		if ctx.Err() != nil {
			return
		}
		if time.Since(begun) > time.Minute {
			b.Reset()
		}
		k.reportFailure(l, err)
		wait := b.NextBackOff()
		k.log.Warn().Err(err).Str("vm", p.VM).Dur("again", wait).Msg("tether: connection lost")
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// serve attaches once and answers until the connection ends.
func (k *Keeper) serve(ctx context.Context, p Peer, l *connection) error {
	attachCtx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	// The stream lives as long as the context that it was opened with, so the timeout must not be its.
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
	k.setAttached(l, true)
	defer k.setAttached(l, false)
	srv := &http.Server{
		Handler: k.handler.For(p), ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 5 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx }, ErrorLog: log.New(k.log, "", 0),
	}
	end := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer end()
	return srv.Serve(netutil.LimitListener(session, maxConnections))
}

// reportFailure tells those who wait that an attempt failed.
func (k *Keeper) reportFailure(l *connection, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	l.err = err
	close(l.failed)
	l.failed = make(chan struct{})
}

// setAttached says whether the line is up.
func (k *Keeper) setAttached(l *connection, up bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if up && !l.attached {
		close(l.up)
	} else if !up && l.attached {
		l.up = make(chan struct{})
	}
	l.attached = up
}

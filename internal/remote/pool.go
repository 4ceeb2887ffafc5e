package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"golang.org/x/sync/singleflight"
)

// Resolve returns the current endpoint of a VM. An error that wraps ErrUnreachable is retried; any other is final.
type Resolve func(ctx context.Context, vmID string) (Endpoint, error)

// Pool keeps one live Client per VM. It is safe for concurrent use. The clients
// belong to the pool: callers do not close them.
type Pool struct {
	cfg     Config
	resolve Resolve
	giveUp  time.Duration

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	flight singleflight.Group

	mu      sync.Mutex
	clients map[string]*Client
}

// NewPool returns an empty pool. giveUp bounds the time in which one call of Client tries to connect; zero means 30 s.
func NewPool(cfg Config, resolve Resolve, giveUp time.Duration) *Pool {
	if giveUp <= 0 {
		giveUp = 30 * time.Second
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &Pool{cfg: cfg, resolve: resolve, giveUp: giveUp, ctx: ctx, cancel: cancel, clients: map[string]*Client{}}
}

// Client returns the live connection to a VM, and dials with back-off if there is none. Concurrent callers share one
// attempt; each returns when its own ctx ends. ErrHostKey and ErrAuth are not retried.
func (p *Pool) Client(ctx context.Context, vmID string) (*Client, error) {
	if c := p.liveClient(vmID); c != nil {
		return c, nil
	}
	ch := p.flight.DoChan(vmID, func() (any, error) { return p.dial(vmID) })
	select {
	case res := <-ch:
		if res.Err != nil {
			return nil, fmt.Errorf("connect to VM %s: %w", vmID, res.Err)
		}
		return res.Val.(*Client), nil
	case <-ctx.Done():
		return nil, fmt.Errorf("connect to VM %s: %w", vmID, context.Cause(ctx))
	}
}

func (p *Pool) liveClient(vmID string) *Client {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.clients[vmID]
	if c == nil || c.Err() != nil {
		return nil
	}
	return c
}

func (p *Pool) dial(vmID string) (*Client, error) {
	if c := p.liveClient(vmID); c != nil {
		return c, nil
	}
	b := backoff.NewExponentialBackOff()
	b.InitialInterval, b.MaxInterval = 50*time.Millisecond, 5*time.Second
	ctx, cancel := context.WithTimeout(p.ctx, p.giveUp)
	defer cancel()
	var last error
	c, err := backoff.Retry(ctx, func() (*Client, error) {
		ep, err := p.resolve(ctx, vmID)
		if err == nil {
			var c *Client
			if c, err = Dial(ctx, ep, p.cfg); err == nil {
				return c, nil
			}
		}
		last = err
		if !errors.Is(err, ErrUnreachable) {
			err = backoff.Permanent(err)
		}
		return nil, err
	}, backoff.WithBackOff(b))
	if err != nil {
		if last != nil { // more informative than "deadline exceeded"
			err = last
		}
		return nil, err
	}
	return p.storeClient(vmID, c)
}

func (p *Pool) storeClient(vmID string, c *Client) (*Client, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ctx.Err() != nil {
		_ = c.Close()
		return nil, net.ErrClosed
	}
	p.clients[vmID] = c
	return c, nil
}

// Forget closes the connection to a VM, if any. It is for VMs that have ended.
func (p *Pool) Forget(vmID string) {
	p.mu.Lock()
	c := p.clients[vmID]
	delete(p.clients, vmID)
	p.mu.Unlock()
	if c != nil {
		_ = c.Close()
	}
}

// Close closes all connections and makes later calls fail. It may be called repeatedly.
func (p *Pool) Close() {
	p.mu.Lock()
	p.cancel()
	clients := p.clients
	p.clients = map[string]*Client{}
	p.mu.Unlock()
	for _, c := range clients {
		_ = c.Close()
	}
}

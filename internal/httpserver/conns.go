package httpserver

import (
	"context"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// maxConns bounds the connections to one listener.
const maxConns = 256

// conns bounds the open connections of an http.Server by closing one where a new one is too many: of the address that has
// the most, the one whose request, or whose wait for one, began first. So those who hold connections open lose their own,
// and the others are answered.
type conns struct {
	max int

	mu    sync.Mutex
	begun uint64 // counts requests and waits, in place of a clock
	open  map[net.Conn]conn
	next  chan struct{} // closed at the next change, if somebody waits for it
}

type conn struct {
	from  netip.Prefix
	begun uint64
	state http.ConnState
}

func newConns(most int) *conns { return &conns{max: most, open: map[net.Conn]conn{}} }

// changed is an http.Server's ConnState.
func (c *conns) changed(nc net.Conn, s http.ConnState) {
	if victim := c.store(nc, s); victim != nil {
		abort(victim)
	}
}

// abort closes a connection at once. Closing one of TLS would first send an alert, and wait while its client does not read.
func abort(nc net.Conn) {
	for {
		inner, ok := nc.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		nc = inner.NetConn()
	}
	_ = nc.Close()
}

// abortAll closes all connections.
func (c *conns) abortAll() {
	c.mu.Lock()
	list := slices.Collect(maps.Keys(c.open))
	c.mu.Unlock()
	for _, nc := range list {
		abort(nc)
	}
}

// store stores the state of a connection, and returns the connection that has to be closed because of it, or nil.
func (c *conns) store(nc net.Conn, s http.ConnState) (victim net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next != nil {
		close(c.next)
		c.next = nil
	}
	known, ok := c.open[nc]
	switch {
	case s == http.StateClosed || s == http.StateHijacked:
		delete(c.open, nc)
		return nil
	case s == http.StateNew:
		known.from = clientNetwork(nc.RemoteAddr().String())
	case !ok:
		return nil // closed already
	}
	c.begun++
	known.begun, known.state = c.begun, s
	c.open[nc] = known
	if len(c.open) > c.max {
		victim = c.victim()
		delete(c.open, victim)
	}
	return victim
}

// wait waits until no connection has a request, is new, or has begun to send a request, or until ctx ends. It does not wait long for heads: a
// browser opens connections in advance. For a moment it also keeps connections that are idle: a proxy that uses one meanwhile gets its
// answer, with the request to close it, whereas a request that crosses the closing would be lost.
func (c *conns) wait(ctx context.Context) {
	patience, linger := time.NewTimer(headTime), time.NewTimer(idleTime)
	defer patience.Stop()
	defer linger.Stop()
	for heads, kept := true, true; ; {
		next, idle := c.idle(heads, kept)
		if idle {
			return
		}
		select {
		case <-next:
		case <-patience.C:
			heads = false
		case <-linger.C:
			kept = false
		case <-ctx.Done():
			return
		}
	}
}

// headTime is how long wait waits for the heads of requests.
const headTime = 2 * time.Second

// idleTime is how long wait keeps connections that are idle.
const idleTime = 500 * time.Millisecond

// idle reports whether no connection has a request, nor, if heads is set, is about to bring one, nor, if kept is set, waits for one. Next
// is closed when a connection changes.
func (c *conns) idle(heads, kept bool) (next <-chan struct{}, idle bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for nc, known := range c.open {
		if known.state == http.StateActive || kept && known.state == http.StateIdle || heads && (known.state == http.StateNew || headBegun(nc)) {
			if c.next == nil {
				c.next = make(chan struct{})
			}
			return c.next, false
		}
	}
	return nil, true
}

// victim returns the connection to close.
func (c *conns) victim() (victim net.Conn) {
	count := map[netip.Prefix]int{}
	for _, known := range c.open {
		count[known.from]++
	}
	for nc, known := range c.open {
		if victim == nil {
			victim = nc
			continue
		}
		v := c.open[victim]
		if more := count[known.from] - count[v.from]; more > 0 || more == 0 && known.begun < v.begun {
			victim = nc
		}
	}
	return victim
}

// clientNetwork returns the network that counts as one client: the address itself, or for IPv6 its /64.
func clientNetwork(remote string) netip.Prefix {
	a := parseAddr(remote)
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	p, _ := a.Prefix(bits) // the zero prefix if it is not an address
	return p
}

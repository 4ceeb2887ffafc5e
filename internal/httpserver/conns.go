package httpserver

import (
	"net"
	"net/http"
	"net/netip"
	"sync"
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
}

type conn struct {
	from  netip.Prefix
	begun uint64
}

func newConns(most int) *conns { return &conns{max: most, open: map[net.Conn]conn{}} }

// changed is an http.Server's ConnState.
func (c *conns) changed(nc net.Conn, s http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.open[nc]
	switch {
	case s == http.StateClosed || s == http.StateHijacked:
		delete(c.open, nc)
		return
	case s == http.StateNew:
		known.from = clientNetwork(nc.RemoteAddr().String())
	case !ok:
		return // closed already
	}
	c.begun++
	known.begun = c.begun
	c.open[nc] = known
	if len(c.open) > c.max {
		victim := c.victim()
		delete(c.open, victim)
		_ = victim.Close()
	}
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

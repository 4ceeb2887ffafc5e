package admin

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	failBurst   = 10               // wrong tokens at once from one address
	failEvery   = 10 * time.Second // and one more after each such time
	maxThrottle = 1024             // addresses that are remembered
)

// throttle bounds how many wrong tokens an address may try. Its memory is bounded: when there are too many addresses the
// ones that have recovered are forgotten, and if all have failed lately, everybody new waits.
type throttle struct {
	now func() time.Time

	mu      sync.Mutex
	clients map[string]*rate.Limiter
	rest    *rate.Limiter // of those for whom there is no room
}

func newThrottle(now func() time.Time) *throttle {
	return &throttle{now: now, clients: map[string]*rate.Limiter{}, rest: newLimiter()}
}

// throttleKey returns what a remote address counts as: itself, and for IPv6 its /64, of which one client has all addresses.
func throttleKey(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		return remote
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is4() {
		return addr.String()
	}
	return netip.PrefixFrom(addr, 64).Masked().String()
}

func newLimiter() *rate.Limiter { return rate.NewLimiter(rate.Every(failEvery), failBurst) }

// wait returns for how long the address has to wait before its next try; 0 means not at all.
func (t *throttle) wait(addr string) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.limiter(addr)
	tokens := l.TokensAt(t.now())
	if tokens >= 1 {
		return 0
	}
	return time.Duration((1 - tokens) * float64(failEvery))
}

// failed counts a wrong token.
func (t *throttle) failed(addr string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if t.clients[addr] == nil {
		if len(t.clients) >= maxThrottle {
			t.forget(now)
		}
		if len(t.clients) < maxThrottle {
			t.clients[addr] = newLimiter()
		}
	}
	t.limiter(addr).AllowN(now, 1)
}

func (t *throttle) limiter(addr string) *rate.Limiter {
	if l := t.clients[addr]; l != nil {
		return l
	}
	if len(t.clients) >= maxThrottle {
		return t.rest
	}
	return newLimiter()
}

// forget drops the addresses that have not failed for a while.
func (t *throttle) forget(now time.Time) {
	for addr, l := range t.clients {
		if l.TokensAt(now) >= failBurst {
			delete(t.clients, addr)
		}
	}
}

package login

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	failBurst   = 10               // initial wrong tokens of one address
	failEvery   = 10 * time.Second // time for one more wrong token
	maxThrottle = 1024             // number of remembered addresses
)

// throttle limits the wrong tokens of an address. Its memory is bounded: with too many addresses it drops those that
// have recovered, and if none has, new addresses share one limit.
type throttle struct {
	now func() time.Time

	mu      sync.Mutex
	clients map[string]*rate.Limiter
	rest    *rate.Limiter // shared by addresses that do not fit
}

func newThrottle(now func() time.Time) *throttle {
	return &throttle{now: now, clients: map[string]*rate.Limiter{}, rest: newLimiter()}
}

// throttleKey returns the key of a remote address: the address itself, or for IPv6 its /64, because one client has all
// of its addresses.
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

// wait returns how long the address must wait before its next try.
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

// forget drops addresses without recent failures.
func (t *throttle) forget(now time.Time) {
	for addr, l := range t.clients {
		if l.TokensAt(now) >= failBurst {
			delete(t.clients, addr)
		}
	}
}

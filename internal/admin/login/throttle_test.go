package login

import (
	"fmt"
	"testing"
	"time"
)

func TestThrottleKeys(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ remote, want string }{
		"IPv4":                   {"203.0.113.7:5123", "203.0.113.7"},
		"IPv4 without a port":    {"203.0.113.7", "203.0.113.7"},
		"IPv4 written as IPv6":   {"[::ffff:203.0.113.7]:80", "203.0.113.7"},
		"IPv6 counts by its /64": {"[2001:db8:1:2:3:4:5:6]:443", "2001:db8:1:2::/64"},
		"its neighbor":           {"[2001:db8:1:2:ffff::1]:9", "2001:db8:1:2::/64"},
		"IPv6 with a zone":       {"[fe80::1%eth0]:1", "fe80::/64"},
		"a socket of the host":   {"@", "@"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := throttleKey(c.remote); got != c.want {
				t.Errorf("got key %q, want %q", got, c.want)
			}
		})
	}
}

func TestThrottleMemoryIsBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	th := newThrottle(func() time.Time { return now })
	for i := range 5 * maxThrottle {
		th.failed(throttleKey(fmt.Sprintf("[2001:db8:%x:%x::1]:80", i/256, i%256)))
	}
	if len(th.clients) > maxThrottle {
		t.Errorf("got %d remembered addresses", len(th.clients))
	}
	if th.wait("198.51.100.1") == 0 {
		t.Error("a new address is not throttled although the memory is full")
	}
	now = now.Add(time.Hour)
	th.failed("198.51.100.1")
	if len(th.clients) != 1 {
		t.Errorf("got %d remembered addresses after an hour", len(th.clients))
	}
}

package hetzner

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/errand-bot/errand/internal/fleet"
)

// The API allows a project 3,600 requests an hour, refilled by one a second, whoever makes them. Ours are
// at most burst + 3600·perSecond in any hour.
const (
	perSecond = 0.9
	burst     = 300
	// spare is what of our own burst is kept from calls that can wait.
	spare = 60
	// spareRemaining is the same of what the API says remains.
	spareRemaining = 600
)

// budget is the one purse of requests.
type budget struct {
	now   func() time.Time
	pause time.Duration

	mu        sync.Mutex
	limiter   *rate.Limiter
	remaining int // what the API said last, -1 before
	said      time.Time
	until     time.Time // no call before
	calls     map[string]int
	skew      time.Duration // how far the API's clock is ahead of ours
}

func newBudget(now func() time.Time, pause time.Duration) *budget {
	return &budget{now: now, pause: pause, limiter: rate.NewLimiter(perSecond, burst), remaining: -1, calls: map[string]int{}}
}

// take pays for one request or says fleet.ErrLimited. It never waits: who calls knows better what to do
// meanwhile. A call that can wait (low) leaves a reserve to the others.
func (b *budget) take(low bool, route string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if now.Before(b.until) {
		return fmt.Errorf("%w: the API said so; next call in %s", fleet.ErrLimited, b.until.Sub(now).Round(time.Second))
	}
	if low {
		// The API refills one a second.
		if left := b.remaining + int(now.Sub(b.said).Seconds()); b.remaining >= 0 && left < spareRemaining {
			return fmt.Errorf("%w: %d of the project's requests remain, kept for what cannot wait", fleet.ErrLimited, left)
		}
		if b.limiter.TokensAt(now) < spare {
			return fmt.Errorf("%w: the rest of our own budget is kept for what cannot wait", fleet.ErrLimited)
		}
	}
	if !b.limiter.AllowN(now, 1) {
		return fmt.Errorf("%w: our own budget of %d an hour is used up", fleet.ErrLimited, int(3600*perSecond))
	}
	b.calls[route]++
	return nil
}

// heard learns from the headers of an answer.
func (b *budget) heard(h http.Header, limited bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		b.skew = date.Sub(now)
	}
	if n, err := strconv.Atoi(h.Get("RateLimit-Remaining")); err == nil {
		b.remaining, b.said = n, now
	}
	if limited {
		b.until = now.Add(b.pause)
	}
}

// clockOff is how far the clocks are apart, by the API's last answer, which tells whole seconds.
func (b *budget) clockOff() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.skew
}

// Requests is how many requests were made since the start, by method.
func (p *Provider) Requests() map[string]int {
	p.budget.mu.Lock()
	defer p.budget.mu.Unlock()
	out := map[string]int{}
	for route, n := range p.budget.calls {
		out[route] = n
	}
	return out
}

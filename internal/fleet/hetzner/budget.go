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

// requestsPerHour is the API's limit for a project over all clients: a token bucket of that size, refilled by one per
// second. errand makes at most requestsPerHour requests in any hour, and 1/burstShare of them in one burst.
const (
	requestsPerHour = 3600
	burstShare      = 12
	// spareShare is the share of errand's burst that is reserved for calls that cannot wait.
	spareShare = 5
	// spareRemaining is the same for the API's reported remainder, as a share of its limit.
	spareRemaining = 6
)

// budget is the request budget shared by all calls.
type budget struct {
	now   func() time.Time
	pause time.Duration

	mu           sync.Mutex
	limiter      *rate.Limiter
	perHour      int
	remaining    int // the API's last report, -1 before
	lastReported time.Time
	until        time.Time     // no call before this time
	skew         time.Duration // how far the API's clock is ahead
}

func newBudget(now func() time.Time, perHour int, pause time.Duration) *budget {
	burst := perHour / burstShare
	limiter := rate.NewLimiter(rate.Limit(float64(perHour-burst)/3600), burst)
	return &budget{now: now, pause: pause, limiter: limiter, perHour: perHour, remaining: -1}
}

// reserveRequest reserves one request or returns fleet.ErrLimited. It never waits. A call that can wait (low) leaves a
// reserve for others.
func (b *budget) reserveRequest(low bool) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if now.Before(b.until) {
		return fmt.Errorf("%w: the API's rate limit is reached; next call in %s", fleet.ErrLimited, b.until.Sub(now).Round(time.Second))
	}
	if low {
		// The API refills one request per second.
		if left := b.remaining + int(now.Sub(b.lastReported).Seconds()); b.remaining >= 0 && left < requestsPerHour/spareRemaining {
			return fmt.Errorf("%w: the project's last %d requests are reserved for urgent calls", fleet.ErrLimited, left)
		}
		if b.limiter.TokensAt(now) < float64(b.limiter.Burst())/spareShare {
			return fmt.Errorf("%w: the rest of errand's request budget is reserved for urgent calls", fleet.ErrLimited)
		}
	}
	if !b.limiter.AllowN(now, 1) {
		return fmt.Errorf("%w: errand's budget of %d requests per hour is used up", fleet.ErrLimited, b.perHour)
	}
	return nil
}

// updateFromHeaders updates the budget from the headers of a response.
func (b *budget) updateFromHeaders(h http.Header, limited bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		b.skew = date.Sub(now)
	}
	if n, err := strconv.Atoi(h.Get("RateLimit-Remaining")); err == nil {
		b.remaining, b.lastReported = n, now
	}
	if limited {
		b.until = now.Add(b.pause)
	}
}

// clockSkew returns the difference of the clocks, from the API's last response, which has whole seconds.
func (b *budget) clockSkew() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.skew
}

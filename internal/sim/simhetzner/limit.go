package simhetzner

import (
	"math"
	"net/http"
	"strconv"
	"time"
)

// bucket is the project's rate limit: it holds the requests of an hour and refills evenly.
type bucket struct {
	size  int
	left  float64
	asked time.Time
}

func (b *bucket) refill(now time.Time) {
	if b.asked.IsZero() {
		b.left = float64(b.size)
	} else if d := now.Sub(b.asked); d > 0 {
		b.left = min(float64(b.size), b.left+d.Hours()*float64(b.size))
	}
	b.asked = now
}

// takeRequest takes one request and returns false if there is none left. It sets the headers in both cases.
func (b *bucket) takeRequest(now time.Time, h http.Header) bool {
	b.refill(now)
	ok := b.left >= 1
	if ok {
		b.left--
	}
	full := time.Duration((float64(b.size) - b.left) / float64(b.size) * float64(time.Hour))
	h.Set("RateLimit-Limit", strconv.Itoa(b.size))
	h.Set("RateLimit-Remaining", strconv.Itoa(int(math.Floor(b.left))))
	h.Set("RateLimit-Reset", strconv.FormatInt(now.Add(full).Unix(), 10))
	return ok
}

// Drain leaves the project with left requests until the bucket refills.
func (s *Sim) Drain(left int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bucket.refill(s.cfg.Now())
	s.bucket.left = float64(left)
}

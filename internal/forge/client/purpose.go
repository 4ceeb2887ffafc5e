package client

import (
	"context"
	"sync"
)

// Purpose is the reason of requests, by which they are counted: work on tasks or background checks.
type Purpose string

// The purposes.
const (
	ForTask  Purpose = "task"  // work on a task; the default
	ForPoll  Purpose = "poll"  // periodic reading of reactions
	ForSweep Purpose = "sweep" // periodic checks for missed webhooks
	ForStart Purpose = "start" // reading the App at the start
)

// WithPurpose sets the purpose of the requests that are made with the returned context.
func WithPurpose(ctx context.Context, p Purpose) context.Context {
	return context.WithValue(ctx, purposeKey{}, p)
}

type purposeKey struct{}

// PurposeOf returns the purpose of requests that are made with ctx.
func PurposeOf(ctx context.Context) Purpose {
	if p, ok := ctx.Value(purposeKey{}).(Purpose); ok {
		return p
	}
	return ForTask
}

// requestCounter counts HTTP requests by purpose.
type requestCounter struct {
	mu     sync.Mutex
	counts map[Purpose]int
}

func newRequestCounter() *requestCounter { return &requestCounter{counts: map[Purpose]int{}} }

func (b *requestCounter) add(p Purpose) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counts[p]++
}

// Calls returns the number of HTTP requests for a purpose so far, with retries and requests for tokens, but without
// those of VMs through the tether.
func (c *Client) Calls(p Purpose) int {
	c.tr.calls.mu.Lock()
	defer c.tr.calls.mu.Unlock()
	return c.tr.calls.counts[p]
}

package client

import (
	"context"
	"sync"
)

// Purpose is what calls serve, so that what tasks cost can be told from what looks after all of them.
type Purpose string

// The purposes.
const (
	ForTask  Purpose = "task"  // what moves a task on; what is not said otherwise
	ForPoll  Purpose = "poll"  // reading reactions now and again
	ForSweep Purpose = "sweep" // looking now and again for what was missed
	ForStart Purpose = "start" // learning who we are
)

// WithPurpose says what the calls that are made with the returned context serve.
func WithPurpose(ctx context.Context, p Purpose) context.Context {
	return context.WithValue(ctx, purposeKey{}, p)
}

type purposeKey struct{}

// PurposeOf returns what calls with this context serve.
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

// Calls returns how many HTTP requests were made so far for a purpose, repeated ones and those for
// tokens included. What VMs read through the tether is not among them.
func (c *Client) Calls(p Purpose) int {
	c.tr.calls.mu.Lock()
	defer c.tr.calls.mu.Unlock()
	return c.tr.calls.counts[p]
}

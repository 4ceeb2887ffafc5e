package client

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Priority orders the writes that wait in a queue: higher priorities first, then first come, first served.
type Priority int

// The priorities.
const (
	PriorityStatus   Priority = iota // edits of the status comment
	PriorityAnswer                   // comments, pull requests and everything else
	PriorityReaction                 // 👀, which shows that errand has noticed a comment
)

// WithPriority sets the priority of the writes that are made with the returned context. Without it,
// reactions are PriorityReaction and everything else is PriorityAnswer.
func WithPriority(ctx context.Context, p Priority) context.Context {
	return context.WithValue(ctx, priorityKey{}, p)
}

// WithDefaultPriority is WithPriority, unless ctx has a priority.
func WithDefaultPriority(ctx context.Context, p Priority) context.Context {
	return WithPriority(ctx, priorityOf(ctx, p))
}

type priorityKey struct{}

func priorityOf(ctx context.Context, fallback Priority) Priority {
	if p, ok := ctx.Value(priorityKey{}).(Priority); ok {
		return p
	}
	return fallback
}

// RateLimit is a token bucket: Burst at once, then one every Every. A zero Every means no limit.
type RateLimit struct {
	Burst int
	Every time.Duration
}

// writeQueue admits the writes of one installation one by one, the highest priority first.
type writeQueue struct {
	limiter *rate.Limiter
	now     func() time.Time

	mu      sync.Mutex
	waiting []*waiter // in the order of service
}

// waiter is a write in a queue.
type waiter struct {
	priority Priority
	turn     chan struct{} // closed when the order has changed
}

func newWriteQueue(p RateLimit, now func() time.Time) *writeQueue {
	limit := rate.Inf
	if p.Every > 0 {
		limit = rate.Every(p.Every)
	}
	return &writeQueue{limiter: rate.NewLimiter(limit, max(p.Burst, 1)), now: now}
}

// wait returns nil when the caller may write, or ctx's error. It waits by the runtime's clock.
func (p *writeQueue) wait(ctx context.Context, priority Priority) error {
	w := &waiter{priority: priority}
	p.enter(w)
	defer p.leave(w)
	for {
		delay, turn := p.tryTake(w)
		if delay == 0 && turn == nil {
			return ctx.Err()
		}
		var timer *time.Timer
		var due <-chan time.Time
		if delay > 0 {
			timer = time.NewTimer(delay)
			due = timer.C
		}
		select {
		case <-turn:
		case <-due:
		case <-ctx.Done():
		}
		if timer != nil {
			timer.Stop()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// tryTake takes a token if w is first. Otherwise it returns how long to wait (0: until the channel is closed), and a
// channel that is closed when the order has changed.
func (p *writeQueue) tryTake(w *waiter) (time.Duration, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.turn = make(chan struct{})
	if p.waiting[0] != w {
		return 0, w.turn
	}
	r := p.limiter.ReserveN(p.now(), 1)
	delay := r.DelayFrom(p.now())
	if delay == 0 {
		return 0, nil
	}
	r.CancelAt(p.now()) // a write of higher priority may arrive meanwhile
	return delay, w.turn
}

// enter queues w behind the writes of its priority and above.
func (p *writeQueue) enter(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	w.turn = make(chan struct{})
	at := slices.IndexFunc(p.waiting, func(o *waiter) bool { return o.priority < w.priority })
	if at < 0 {
		at = len(p.waiting)
	}
	p.waiting = slices.Insert(p.waiting, at, w)
}

// leave removes w and wakes the write that is first now.
func (p *writeQueue) leave(w *waiter) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := slices.Index(p.waiting, w); at >= 0 {
		p.waiting = slices.Delete(p.waiting, at, at+1)
	}
	if len(p.waiting) > 0 {
		first := p.waiting[0]
		select {
		case <-first.turn:
		default:
			close(first.turn)
		}
	}
}

// queueKey identifies a queue.
type queueKey struct {
	installation int64
	kind         operationKind
}

// maxQueueWait is the maximum time that a write waits for its turn.
const maxQueueWait = time.Minute

// waitForTurn waits in the queue of the installation if the operation is a write.
func (t *transport) waitForTurn(ctx context.Context, op *Operation) error {
	if op.kind == kindRead {
		return nil
	}
	wctx, cancel := context.WithTimeout(ctx, maxQueueWait)
	defer cancel()
	err := t.queue(op).wait(wctx, op.priority)
	if err != nil && ctx.Err() == nil {
		return &LimitError{Kind: LimitLocal, Installation: op.installation, Until: t.now().Add(maxQueueWait)}
	}
	return err
}

// queue returns the queue of the installation for the kind of operation.
func (t *transport) queue(op *Operation) *writeQueue {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := queueKey{op.installation, op.kind}
	q := t.queues[k]
	if q == nil {
		limit := t.write
		if op.kind == kindData {
			limit = t.data
		}
		q = newWriteQueue(limit, t.now)
		t.queues[k] = q
	}
	return q
}

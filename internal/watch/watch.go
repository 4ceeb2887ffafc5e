// Package watch looks where nobody tells us: at reactions, which GitHub sends no webhook for, at
// webhooks that got lost, at GitHub's present state, and at runs on their VMs. What it sees becomes
// events in the store; it does nothing else.
//
// Each watcher is a Run(ctx) that ends with its context. Start reading at Poller for reactions,
// Supervisor for runs, Sweeper for what was missed.
package watch

import (
	"context"
	"time"

	"github.com/errand-bot/errand/state"
)

// Applier applies what a watcher saw.
type Applier interface {
	Apply(ctx context.Context, e state.Event, ack state.Ack) (state.Applied, error)
}

// Reader reads tasks.
type Reader interface {
	Task(ctx context.Context, key state.TaskKey) (*state.Task, error)
	TasksIn(ctx context.Context, phases ...state.Phase) ([]*state.Task, error)
	EachOpen(ctx context.Context, fn func(state.Listed) error) error
	Wake(ctx context.Context) <-chan struct{}
}

// pause waits for d, a poke or the end of ctx, and reports whether to go on.
func pause(ctx context.Context, d time.Duration, poke <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-poke:
	case <-timer.C:
	}
	return ctx.Err() == nil
}

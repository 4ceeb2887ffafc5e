// Package watch finds changes that no webhook reports: reactions, lost webhooks, differences from GitHub's current
// state, and the progress of runs on their VMs. It applies them as events to the store and does nothing else.
//
// Each watcher has a Run method that ends with its context.
//
// Start here: [Poller] for reactions, [Supervisor] for runs, [Sweeper] for missed changes.
package watch

import (
	"context"
	"time"

	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
)

// An Applier applies events.
type Applier interface {
	Apply(ctx context.Context, e event.Event, ack store.Ack) (store.Applied, error)
}

// A Reader reads tasks.
type Reader interface {
	Task(ctx context.Context, key state.TaskKey) (*state.Task, error)
	TasksIn(ctx context.Context, phases ...state.Phase) ([]*state.Task, error)
	EachOpen(ctx context.Context, fn func(store.Listed) error) error
	Wake(ctx context.Context) <-chan struct{}
}

// pause waits for d, a poke or the end of ctx. It returns false if ctx has ended.
func pause(ctx context.Context, d time.Duration, poke <-chan struct{}) bool {
	_, err := clock.SleepOrWake(ctx, d, poke)
	return err == nil
}

package fleet

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/vm"
)

// core has what all parts of a Fleet share: the provider, the rows and their changes.
type core struct {
	provider Provider
	rows     Rows
	store    Store
	cfg      Config

	changeMu sync.Mutex
	changed  chan struct{} // closed and replaced when a row changes
}

// caps returns the caps for a VM of the task, which may be zero. VMs that cost nothing are only limited in number.
func (c *core) caps(ctx context.Context, task state.TaskKey) (vm.Caps, error) {
	if _, ok := c.asMarket(); !ok {
		return vm.Caps{VMs: c.cfg.Caps.VMs}, nil
	}
	caps := c.cfg.Caps
	if caps.PerTask <= 0 || task.IsZero() {
		return caps, nil
	}
	t, err := c.store.Task(ctx, task)
	if err != nil {
		return vm.Caps{}, err
	}
	if t != nil {
		caps.PerTask = t.VMTime(caps.PerTask)
	}
	return caps, nil
}

func (c *core) asMarket() (Market, bool) {
	m, ok := c.provider.(Market)
	return m, ok
}

// apply applies an event to a row and wakes callers that wait for a change.
func (c *core) apply(ctx context.Context, name string, e vm.Event) (vm.Row, bool, error) {
	row, changed, err := c.rows.Apply(ctx, name, e)
	if err != nil || !changed {
		return row, changed, err
	}
	c.changeMu.Lock()
	close(c.changed)
	c.changed = make(chan struct{})
	c.changeMu.Unlock()
	c.cfg.Log.Debug().Str("vm", name).Str("event", string(e.Kind)).Str("phase", string(row.Phase)).Str("reason", string(row.EndReason)).Msg("VM changed phase")
	return row, true, nil
}

// waitOrChange waits for d or until a row changes.
func (c *core) waitOrChange(ctx context.Context, d time.Duration) error {
	if c.cfg.Sleep != nil {
		return c.cfg.Sleep(ctx, d)
	}
	c.changeMu.Lock()
	changed := c.changed
	c.changeMu.Unlock()
	if _, err := clock.SleepOrWake(ctx, d, changed); err != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (c *core) lossAfter() time.Duration { return min(lossAfter, 12*c.cfg.Tick) }

// sleep sleeps for the whole duration, even if rows change.
func (c *core) sleep(ctx context.Context, d time.Duration) error {
	for end := c.cfg.Now().Add(d); ; {
		left := end.Sub(c.cfg.Now())
		if left <= 0 {
			return nil
		}
		if err := c.waitOrChange(ctx, left); err != nil {
			return err
		}
	}
}

// isDisabled reports whether a safeguard is disabled.
func (c *core) isDisabled(s Safeguard) bool { return slices.Contains(c.cfg.DisabledSafeguards, s) }

// ticks returns n times Config.Tick.
func (c *core) ticks(n time.Duration) time.Duration { return n * c.cfg.Tick }

// newGroup returns a group that runs at most that many functions at once, or one at a time for tests with their own
// clock, which need a fixed order.
func (c *core) newGroup(most int) *errgroup.Group {
	group := &errgroup.Group{}
	if c.cfg.Sleep != nil {
		most = 1
	}
	group.SetLimit(most)
	return group
}

package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/errand-bot/errand/state"
)

// deletesAtOnce is how many VMs the poller deletes at the same time. Each takes at least some seconds.
const deletesAtOnce = 4

// retry is when a deletion that failed is tried again.
type retry struct {
	at time.Time
	n  int
}

// deleteInBackground deletes what is to be deleted, unless that is being done. It does not wait, so that VMs which come
// up need not wait for those that go; for a test with a clock of its own it does.
func (f *Fleet) deleteInBackground(ctx context.Context, wait *sync.WaitGroup) {
	if f.cfg.Sleep != nil {
		_ = f.deleteDue(ctx, false)
		return
	}
	if !f.deleting.TryLock() {
		return
	}
	wait.Go(func() {
		defer f.deleting.Unlock()
		_ = f.deleteDue(ctx, false)
	})
}

// deleteDue makes one pass over the rows whose VMs are to be deleted, and returns how many those are. With wait it waits
// for those that somebody else is deleting.
func (f *Fleet) deleteDue(ctx context.Context, wait bool) (rows int) {
	within, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	all, err := f.rows.List(within)
	group := f.group(deletesAtOnce)
	var mu sync.Mutex
	for _, row := range all {
		if !f.falling(row) {
			continue
		}
		rows++
		group.Go(func() error {
			if f.deletes(row.Name) && !wait {
				return nil
			}
			if sinkErr := f.sink(within, row); sinkErr != nil {
				mu.Lock()
				defer mu.Unlock()
				err = errors.Join(err, sinkErr)
			}
			return nil
		})
	}
	_ = group.Wait()
	if err != nil && ctx.Err() == nil {
		f.cfg.Log.Warn().Err(err).Msg("failed to delete VMs; retrying")
	}
	return rows
}

// falling reports whether a row's VM is to be deleted.
func (f *Fleet) falling(row state.VMRow) bool {
	return row.Phase == state.VMFailed || row.Phase == state.VMDeleting || row.Phase == state.VMAsleep && row.EndedAt.IsZero() || f.spent(row)
}

// spent reports whether a spare VM's hour ends.
func (f *Fleet) spent(row state.VMRow) bool {
	now := f.cfg.Now()
	return row.Spare && row.Phase == state.VMParked && !now.Before(SleepAt(row, now, f.margin(row)))
}

// sink moves a row on that is on its way down.
func (f *Fleet) sink(ctx context.Context, row state.VMRow) error {
	if ctx.Err() != nil || !f.deletes(row.Name) && !f.tries(row.Name) {
		return nil
	}
	if err := f.conclude(ctx, row.Name, Reason(row.Why), row.Phase == state.VMAsleep); err != nil {
		return fmt.Errorf("delete VM %s: %w", row.Name, err)
	}
	f.forget(row.Name)
	return nil
}

// conclude ends a row and deletes what the provider has of it: all but the image, if keepsImage is set and the VM sleeps.
// Only one caller at a time does this for a VM; those that come second wait, and do what is left.
func (f *Fleet) conclude(ctx context.Context, name string, why Reason, keepsImage bool) error {
	unlock, waited, err := f.lockDeletion(ctx, name)
	if err != nil {
		return err
	}
	defer unlock()
	row, err := f.rows.Get(ctx, name)
	if err != nil {
		return err
	}
	if waited && row.Phase == state.VMGone {
		return nil // the one before us has deleted it
	}
	if !keepsImage || row.Phase != state.VMAsleep {
		if row, _, err = f.apply(ctx, name, state.VMEvent{Kind: state.VMEnd, Why: string(why)}); err != nil {
			return err
		}
	}
	return f.finish(ctx, row)
}

// lockDeletion waits until nobody else deletes a VM, and keeps others from it until unlock is called. It reports
// whether it had to wait. Whoever ends a row locks it first: the poller deletes rows that have ended and are not locked.
func (f *Fleet) lockDeletion(ctx context.Context, name string) (unlock func(), waited bool, err error) {
	for {
		f.mu.Lock()
		other, busy := f.ending[name]
		if !busy {
			done := make(chan struct{})
			f.ending[name] = done
			f.mu.Unlock()
			return func() {
				f.mu.Lock()
				defer f.mu.Unlock()
				delete(f.ending, name)
				close(done)
			}, waited, nil
		}
		f.mu.Unlock()
		waited = true
		select {
		case <-other:
		case <-ctx.Done():
			return nil, waited, context.Cause(ctx)
		}
	}
}

// deletes reports whether somebody is deleting a VM at this moment.
func (f *Fleet) deletes(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ending[name] != nil
}

// tries reports whether a deletion is due, and puts the next one off.
func (f *Fleet) tries(name string) bool {
	const longest = 5 * time.Minute
	f.mu.Lock()
	defer f.mu.Unlock()
	now, r := f.cfg.Now(), f.retries[name]
	if now.Before(r.at) {
		return false
	}
	r.at, r.n = now.Add(min(f.cfg.Tick<<min(r.n, 10), longest)), r.n+1
	f.retries[name] = r
	return true
}

package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/errand-bot/errand/state/vm"
)

// deletesAtOnce is the number of VMs that the poller deletes concurrently. Each takes at least some seconds.
const deletesAtOnce = 4

// retry schedules the next attempt of a failed deletion.
type retry struct {
	at time.Time
	n  int
}

// deleteInBackground starts deleting the VMs to delete, unless that is in progress. It does not wait, so that deletions
// do not delay VMs that come up; for tests with their own clock it does.
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

// deleteDue makes one pass over the rows whose VMs must be deleted and returns their number. With wait it waits for
// deletions by other callers.
func (f *Fleet) deleteDue(ctx context.Context, wait bool) (rows int) {
	within, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	all, err := f.rows.List(within)
	group := f.group(deletesAtOnce)
	var mu sync.Mutex
	for _, row := range all {
		if !f.mustDelete(row) {
			continue
		}
		rows++
		group.Go(func() error {
			if f.deletes(row.Name) && !wait {
				return nil
			}
			if sinkErr := f.advanceDeletion(within, row); sinkErr != nil {
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

// mustDelete reports whether a row's VM must be deleted.
func (f *Fleet) mustDelete(row vm.Row) bool {
	return row.Phase == vm.Failed || row.Phase == vm.Deleting || row.Phase == vm.Asleep && row.EndedAt.IsZero() || f.spanEnds(row)
}

// spanEnds reports whether the paid hour of a standby VM is about to end.
func (f *Fleet) spanEnds(row vm.Row) bool {
	now := f.cfg.Now()
	return row.Spare && row.Phase == vm.Parked && !now.Before(SleepAt(row, now, f.margin(row)))
}

// advanceDeletion advances a row whose VM must be deleted.
func (f *Fleet) advanceDeletion(ctx context.Context, row vm.Row) error {
	if ctx.Err() != nil || !f.deletes(row.Name) && !f.claimTry(row.Name) {
		return nil
	}
	if err := f.conclude(ctx, row.Name, Reason(row.Why), row.Phase == vm.Asleep); err != nil {
		return fmt.Errorf("delete VM %s: %w", row.Name, err)
	}
	f.forget(row.Name)
	return nil
}

// conclude ends a row and deletes its provider resources; with keepsImage and a suspended VM it keeps the image. Only
// one caller at a time does this for a VM; later callers wait and do the rest.
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
	if waited && row.Phase == vm.Gone {
		return nil // the previous caller has deleted it
	}
	if !keepsImage || row.Phase != vm.Asleep {
		if row, _, err = f.apply(ctx, name, vm.Event{Kind: vm.End, Why: string(why)}); err != nil {
			return err
		}
	}
	return f.finish(ctx, row)
}

// lockDeletion waits until no other caller deletes the VM, and blocks others until unlock is called. It reports whether
// it had to wait. Callers must lock before they end a row, because the poller deletes ended rows that are not locked.
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

// deletes reports whether a caller is deleting the VM now.
func (f *Fleet) deletes(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ending[name] != nil
}

// claimTry reports whether a deletion is due and postpones the next attempt.
func (f *Fleet) claimTry(name string) bool {
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

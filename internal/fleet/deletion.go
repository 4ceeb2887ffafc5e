package fleet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/errand-bot/errand/state/vm"
)

// A deleter deletes VMs. It repeats a deletion until the provider confirms it.
type deleter struct {
	*core
	inventory *inventory

	deleting sync.Mutex // held by the pass that deletes VMs in the background

	mu         sync.Mutex
	inProgress map[string]chan struct{} // VMs that are being deleted
	retries    map[string]retry         // retries of deletions, by VM
}

func newDeleter(c *core, v *inventory) *deleter {
	d := &deleter{core: c, inventory: v, inProgress: map[string]chan struct{}{}, retries: map[string]retry{}}
	v.onForget = append(v.onForget, d.forgetRetries)
	return d
}

func (d *deleter) forgetRetries(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.retries, name)
}

// deletesAtOnce is the number of VMs that the poller deletes concurrently. Each takes at least some seconds.
const deletesAtOnce = 4

// retry schedules the next attempt of a failed deletion.
type retry struct {
	at       time.Time
	attempts int
}

// deleteInBackground starts deleting the VMs to delete, unless that is in progress. It does not wait, so that deletions
// do not delay VMs that come up; for tests with their own clock it does.
func (d *deleter) deleteInBackground(ctx context.Context, wait *sync.WaitGroup) {
	if d.cfg.Sleep != nil {
		_ = d.deleteDue(ctx, false)
		return
	}
	if !d.deleting.TryLock() {
		return
	}
	wait.Go(func() {
		defer d.deleting.Unlock()
		_ = d.deleteDue(ctx, false)
	})
}

// deleteDue makes one pass over the rows whose VMs must be deleted and returns their number. With wait it waits for
// deletions by other callers.
func (d *deleter) deleteDue(ctx context.Context, wait bool) (rows int) {
	within, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	all, err := d.rows.List(within)
	group := d.newGroup(deletesAtOnce)
	var mu sync.Mutex
	for _, row := range all {
		if !d.mustDelete(row) {
			continue
		}
		rows++
		group.Go(func() error {
			if d.isDeleting(row.Name) && !wait {
				return nil
			}
			if sinkErr := d.advanceDeletion(within, row); sinkErr != nil {
				mu.Lock()
				defer mu.Unlock()
				err = errors.Join(err, sinkErr)
			}
			return nil
		})
	}
	_ = group.Wait()
	if err != nil && ctx.Err() == nil {
		d.cfg.Log.Warn().Err(err).Msg("failed to delete VMs; retrying")
	}
	return rows
}

// mustDelete reports whether a row's VM must be deleted.
func (d *deleter) mustDelete(row vm.Row) bool {
	return row.Phase == vm.Failed || row.Phase == vm.Deleting || row.Phase == vm.Asleep && row.EndedAt.IsZero() || d.paidHourEnds(row)
}

// paidHourEnds reports whether the paid hour of a standby VM is about to end.
func (d *deleter) paidHourEnds(row vm.Row) bool {
	now := d.cfg.Now()
	return row.Standby && row.Phase == vm.Parked && !now.Before(SleepAt(row, now, d.deletionMargin(row)))
}

// advanceDeletion advances a row whose VM must be deleted.
func (d *deleter) advanceDeletion(ctx context.Context, row vm.Row) error {
	if ctx.Err() != nil || !d.isDeleting(row.Name) && !d.claimRetry(row.Name) {
		return nil
	}
	if err := d.endAndDelete(ctx, row, row.EndReason, row.Phase == vm.Asleep); err != nil {
		return fmt.Errorf("delete VM %s: %w", row.Name, err)
	}
	d.inventory.dropCached(row.Name)
	return nil
}

// endAndDelete ends a row and deletes its provider resources; with keepsImage and a suspended VM it keeps the image.
// Only one caller at a time does this for a VM; later callers wait and do the rest. The row is as the caller has read
// it: if the VM was deleted since then, nothing is left to do.
func (d *deleter) endAndDelete(ctx context.Context, read vm.Row, why Reason, keepsImage bool) error {
	unlock, err := d.lockDeletion(ctx, read.Name)
	if err != nil {
		return err
	}
	defer unlock()
	row, err := d.rows.Get(ctx, read.Name)
	if err != nil {
		return err
	}
	if row.Phase == vm.Gone && read.Phase != vm.Gone {
		return nil // another caller has deleted it
	}
	if !keepsImage || row.Phase != vm.Asleep {
		if row, _, err = d.apply(ctx, row.Name, vm.Event{Kind: vm.End, EndReason: why}); err != nil {
			return err
		}
	}
	return d.deleteResources(ctx, row)
}

// lockDeletion waits until no other caller deletes the VM, and blocks others until unlock is called. Callers must lock
// before they end a row, because the poller deletes ended rows that are not locked.
func (d *deleter) lockDeletion(ctx context.Context, name string) (unlock func(), err error) {
	for {
		d.mu.Lock()
		other, busy := d.inProgress[name]
		if !busy {
			done := make(chan struct{})
			d.inProgress[name] = done
			d.mu.Unlock()
			return func() {
				d.mu.Lock()
				defer d.mu.Unlock()
				delete(d.inProgress, name)
				close(done)
			}, nil
		}
		d.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// isDeleting reports whether a caller is deleting the VM now.
func (d *deleter) isDeleting(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.inProgress[name] != nil
}

// claimRetry reports whether a deletion is due and postpones the next attempt.
func (d *deleter) claimRetry(name string) bool {
	const longest = 5 * time.Minute
	d.mu.Lock()
	defer d.mu.Unlock()
	now, r := d.cfg.Now(), d.retries[name]
	if now.Before(r.at) {
		return false
	}
	r.at, r.attempts = now.Add(min(d.cfg.Tick<<min(r.attempts, 10), longest)), r.attempts+1
	d.retries[name] = r
	return true
}

// releaseStandby deletes a standby VM to make room and reports whether it is gone.
func (d *deleter) releaseStandby(ctx context.Context, rows []vm.Row) bool {
	for _, row := range rows {
		if row.Standby && row.Phase == vm.Parked {
			err := d.release(ctx, row.Name, row.EndReason)
			d.cfg.Log.Info().Err(err).Str("vm", row.Name).Msg("standby VM released to make room")
			if err == nil {
				return true
			}
		}
	}
	return false
}

// delete deletes the listed VM and no other of its name.
func (d *deleter) delete(ctx context.Context, vm VM, why Reason) error {
	if market, ok := d.asMarket(); ok && vm.ID != "" {
		return market.DeleteByID(ctx, vm.ID, why)
	}
	return d.provider.Delete(ctx, vm.Name, why)
}

// endWithoutReuse ends a row and deletes its provider resources without keeping the VM for another task.
func (d *deleter) endWithoutReuse(ctx context.Context, name string, why Reason) error {
	d.inventory.dropCached(name)
	row, err := d.rows.Get(ctx, name)
	if err != nil {
		return err
	}
	return d.endAndDelete(ctx, row, why, false)
}

// keepsAsStandby reports whether a released VM should be kept for the next task of its repository.
func (d *deleter) keepsAsStandby(row vm.Row, why Reason) bool {
	if _, ok := d.provider.(Rebuilder); !ok || !d.cfg.Pool.Reuse || row.Standby || row.Repo == 0 {
		return false
	}
	if why != ReasonDone && why != ReasonCancelled || !row.Phase.Usable() || row.Phase == vm.Sleeping {
		return false
	}
	now := d.cfg.Now()
	return SleepAt(row, now, d.deletionMargin(row)).Sub(now) >= min(minReusableTime, row.Paid/4)
}

func (d *deleter) deletionMargin(row vm.Row) time.Duration { return Margin(row.Paid, d.cfg.Tick, 0) }

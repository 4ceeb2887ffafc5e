package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/errand-bot/errand/state/vm"
	"golang.org/x/sync/errgroup"
)

const (
	// vanishedAfter is how long a known VM may be missing from the provider's lists.
	vanishedAfter = time.Minute
	// unknownFor is how long an intent without a VM is kept after the last request for it.
	unknownFor = 10 * time.Minute
	// tombstones is how long the rows of deleted VMs are kept: longer than a create can take effect late.
	tombstones = 24 * time.Hour
	// tryFor limits one pass over the VMs that come up, and one over those to delete.
	tryFor = 2 * time.Minute
)

// Run advances the rows: it checks the provider each Config.Tick while some VM is coming up or being deleted, and reaps
// each Config.ReapEvery. It returns when ctx ends. Only one fleet of a deployment may run.
func (f *Fleet) Run(ctx context.Context) error {
	var reaped time.Time
	var deleting sync.WaitGroup
	defer deleting.Wait()
	for {
		if err := f.poll(ctx); err != nil && ctx.Err() == nil {
			f.cfg.Log.Warn().Err(err).Msg("failed to check VMs; retrying")
		}
		f.deleteInBackground(ctx, &deleting)
		if now := f.cfg.Now(); now.Sub(reaped) >= f.cfg.ReapEvery {
			reaped = now
			f.reapOnce(ctx)
		}
		if err := f.pause(ctx, min(f.cfg.Tick, f.cfg.ReapEvery)); err != nil {
			return nil //nolint:nilerr // ctx has ended
		}
	}
}

// poll makes one pass over the rows that need action, unless one was made just now. Callers that wait for a VM call it;
// one of them checks for all.
func (f *Fleet) poll(ctx context.Context) error {
	if !f.polling.TryLock() {
		return nil
	}
	defer f.polling.Unlock()
	now := f.cfg.Now()
	f.mu.Lock()
	soon := now.Sub(f.polled) < f.cfg.Tick/2
	f.mu.Unlock()
	if soon {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	err := f.pass(ctx)
	f.mu.Lock()
	f.polled = f.cfg.Now()
	f.mu.Unlock()
	return err
}

// pass checks once, if necessary, and advances the rows of VMs that are coming up.
func (f *Fleet) pass(ctx context.Context) error {
	rows, err := f.rows.List(ctx)
	if err != nil {
		return err
	}
	return f.passRising(ctx, slices.DeleteFunc(rows, func(row vm.Row) bool { return !row.Phase.Rising() }))
}

// passRising asks the provider about the rows if that is due, and dials VMs with a known address. It also dials them
// while the provider does not respond.
func (f *Fleet) passRising(ctx context.Context, rows []vm.Row) error {
	if len(rows) == 0 {
		return nil
	}
	c, err := f.checks(ctx)
	if err != nil {
		return err
	}
	due := f.mayCheck() && slices.ContainsFunc(rows, func(row vm.Row) bool { return f.due(row, c) })
	var checkErr error
	if due {
		checkErr = f.check(ctx, rows, c)
		due = checkErr == nil
	}
	group := f.group(len(rows))
	for _, row := range rows {
		group.Go(func() error {
			server, ok := c.vms[row.Name]
			var err error
			if due {
				err = f.advance(ctx, row, server, ok)
			} else {
				err = f.dial(ctx, row, server, ok, c)
			}
			if err != nil {
				return fmt.Errorf("VM %s (%s): %w", row.Name, row.Phase, err)
			}
			return nil
		})
	}
	return errors.Join(checkErr, group.Wait())
}

// group returns a group that runs at most that many functions at once, or one at a time for tests with their own clock,
// which need a fixed order.
func (f *Fleet) group(most int) *errgroup.Group {
	group := &errgroup.Group{}
	if f.cfg.Sleep != nil {
		most = 1
	}
	group.SetLimit(most)
	return group
}

// advance moves on a row whose VM is coming up.
func (f *Fleet) advance(ctx context.Context, row vm.Row, server VM, there bool) error {
	now := f.cfg.Now()
	switch {
	case there && server.State == StateEnded:
		_, err := f.giveUp(ctx, row, server.Ended, errors.New(server.Detail))
		return err
	case row.Phase == vm.Intended && there:
		if why := f.foreign(row, server); why != "" {
			_, err := f.giveUp(ctx, row, ReasonCreateFailed, errors.New(why))
			return err
		}
		_, err := f.made(ctx, row, server)
		return err
	case row.Phase == vm.Intended:
		return nil // the requester creates it; the reaper ends intents without a requester
	case !there && now.Sub(row.Since) > vanishedAfter:
		return f.vanished(ctx, row)
	case !there:
		return nil
	case row.Phase == vm.Creating && server.State == StateRunning:
		next, _, err := f.apply(ctx, row.Name, vm.Event{Kind: vm.Runs})
		if err != nil {
			return err
		}
		return f.greet(ctx, next, server)
	case f.late(ctx, row, now):
		why := ReasonCreateFailed
		if row.Phase == vm.Booting {
			why = ReasonUnusable
		}
		cause := fmt.Errorf("it is %s since %s", row.Phase, row.Since.Format(time.RFC3339))
		if unmet := f.whyUnmet(row.Name); unmet != nil {
			cause = fmt.Errorf("%w: %w", cause, unmet)
		}
		_, err := f.giveUp(ctx, row, why, cause)
		return err
	case row.Phase == vm.Booting && server.State == StateRunning:
		return f.greet(ctx, row, server)
	}
	return nil
}

// vanished ends a row whose VM is in no list, if the provider does not find it by ID either.
func (f *Fleet) vanished(ctx context.Context, row vm.Row) error {
	_, err := f.confirm(ctx, row)
	switch {
	case errors.Is(err, ErrNotFound):
		_, err = f.giveUp(ctx, row, ReasonVanished, errors.New("the provider no longer has it"))
	case errors.Is(err, ErrMissing):
		return nil
	}
	return err
}

// foreign returns why a VM with a row's name is not the row's, or an empty string.
func (f *Fleet) foreign(row vm.Row, server VM) string {
	for _, key := range []string{LabelDeployment, LabelOwner, LabelGeneration} {
		if server.Labels[key] != row.Labels[key] {
			return fmt.Sprintf("its label %s is %q, not %q", key, server.Labels[key], row.Labels[key])
		}
	}
	return ""
}

// late reports whether a VM has exceeded its time to come up, which grows with measured times.
func (f *Fleet) late(ctx context.Context, row vm.Row, now time.Time) bool {
	within := f.cfg.BootWithin
	times, err := f.rows.Times(ctx)
	if err != nil {
		return false
	}
	measured := times.Boot
	if row.FromImage {
		within, measured = f.cfg.RestoreWithin, times.Restore
	}
	if errors.Is(f.whyUnmet(row.Name), ErrSettingUp) {
		within = max(within, f.cfg.SetUpWithin)
	}
	return now.Sub(row.Since) > max(within, min(2*vm.Percentile(measured, 95), 4*within))
}

package fleet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/errand-bot/errand/state/vm"
)

// A starter watches VMs that are coming up, and makes the first contact with them.
type starter struct {
	*core
	inventory *inventory

	polling sync.Mutex // held by the caller that checks the provider for all

	mu            sync.Mutex
	polled        time.Time        // time of the last poll
	checked       time.Time        // time of the last check of VMs that are coming up
	starting      map[string]VM    // VMs that are coming up, by name
	recheck       retry            // retry of a failed check
	contactErrors map[string]error // error of the last first contact with a VM
}

func newStarter(c *core, v *inventory) *starter {
	s := &starter{core: c, inventory: v, starting: map[string]VM{}, contactErrors: map[string]error{}}
	v.onForget = append(v.onForget, s.dropState)
	return s
}

func (s *starter) dropState(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.starting, name)
	delete(s.contactErrors, name)
}

// storeCreated stores the VM that the provider created.
func (s *starter) storeCreated(ctx context.Context, row vm.Row, server VM) (vm.Row, error) {
	e := vm.Event{
		Kind: vm.Made, ID: server.ID, Type: server.Kind, Location: server.Location, CreatedAt: server.CreatedAt,
		Usable: s.cfg.Contact == nil && server.State == StateRunning,
	}
	if _, ok := s.asMarket(); ok {
		e.MicroHour, e.Currency, e.Paid = server.MicroHour, server.Currency, s.cfg.Paid
	}
	s.inventory.cacheVM(server)
	s.mu.Lock()
	s.starting[server.Name] = server
	s.mu.Unlock()
	row, _, err := s.apply(ctx, row.Name, e)
	return row, err
}

// giveUp ends a row whose VM does not come up.
func (s *starter) giveUp(ctx context.Context, row vm.Row, why Reason, cause error) (vm.Row, error) {
	s.cfg.Log.Warn().Err(cause).Str("vm", row.Name).Str("reason", string(why)).Msg("VM given up")
	row, _, err := s.apply(ctx, row.Name, vm.Event{Kind: vm.Fail, EndReason: why, Detail: cause.Error()})
	return row, err
}

// orderedWithin is the maximum difference between errand's clock and the provider's.
const orderedWithin = 10 * time.Minute

// predates reports whether a VM with a row's name was created before the row was stored: another errand created it, and this one is a
// copy that was restored from a backup. A standby VM that the row takes over is older, too.
func predates(row vm.Row, server VM) bool {
	return row.Rebuilds == "" && !server.CreatedAt.IsZero() && server.CreatedAt.Before(row.Intended.Add(-orderedWithin))
}

// isUnknown reports whether a VM that predates its row is one of which a store that was restored from a backup knows nothing. In any other
// store the VM is errand's, and its clock was wrong.
func (s *starter) isUnknown(ctx context.Context, row vm.Row, server VM) (bool, error) {
	if !predates(row, server) {
		return false, nil
	}
	first, err := s.rows.FirstGen(ctx)
	return first > 1, err
}

// giveUpUnknown ends a row whose name another errand has used, without deleting its VM, which may have work.
func (s *starter) giveUpUnknown(ctx context.Context, row vm.Row, server VM) (vm.Row, error) {
	cause := fmt.Sprintf("a VM of this name was created at %s, before errand ordered it", server.CreatedAt.UTC().Format(time.RFC3339))
	s.cfg.Log.Warn().Str("vm", row.Name).Str("id", server.ID).Msg(cause + "; it is left alone, and the next one gets another name")
	row, _, err := s.apply(ctx, row.Name, vm.Event{Kind: vm.Lose, EndReason: ReasonVanished, Detail: cause})
	return row, err
}

// greetTimeout limits one first contact. A VM that does not respond is retried at the next check.
const greetTimeout = 30 * time.Second

// makeFirstContact makes the first contact, unless the configuration has none.
func (s *starter) makeFirstContact(ctx context.Context, row vm.Row, server VM) error {
	var pins []string
	if s.cfg.Contact != nil {
		dressed, err := s.inventory.withRow(server, row)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, greetTimeout)
		defer cancel()
		pins, err = s.cfg.Contact.Greet(ctx, row, dressed.Endpoint, func(ctx context.Context, pins []string) error {
			// A VM that accepts errand's key is running, even if the provider has not reported it yet.
			_, _, runsErr := s.apply(ctx, row.Name, vm.Event{Kind: vm.Runs})
			_, _, err := s.apply(ctx, row.Name, vm.Event{Kind: vm.Pinned, Pins: pins})
			return errors.Join(runsErr, err)
		})
		if err != nil {
			return s.recordContactFailure(ctx, row, err)
		}
	}
	if closer, ok := s.provider.(NetworkCloser); ok {
		if err := closer.CloseNetwork(ctx, server.ID); err != nil {
			return s.recordContactFailure(ctx, row, err)
		}
	}
	if _, _, err := s.apply(ctx, row.Name, vm.Event{Kind: vm.Runs}); err != nil {
		return err
	}
	server.State = StateRunning
	s.inventory.cacheVM(server) // before the event, which wakes callers who would otherwise ask the provider
	_, up, err := s.apply(ctx, row.Name, vm.Event{Kind: vm.Up, Pins: pins})
	if !up || err != nil {
		s.inventory.forgetFacts(row.Name)
	}
	return err
}

// recordContactFailure records why a first contact failed: the VM may still be booting, or never become usable.
func (s *starter) recordContactFailure(ctx context.Context, row vm.Row, cause error) error {
	s.cfg.Log.Debug().Err(cause).Str("vm", row.Name).Msg("first contact failed")
	s.mu.Lock()
	s.contactErrors[row.Name] = cause
	s.mu.Unlock()
	if !errors.Is(cause, ErrSetUp) {
		return nil
	}
	_, err := s.giveUp(ctx, row, ReasonUnusable, cause)
	return err
}

// lastContactError returns the error of the last first contact, nil if there was none.
func (s *starter) lastContactError(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.contactErrors[name]
}

const (
	// vanishedAfter is how long a known VM may be missing from the provider's lists.
	vanishedAfter = time.Minute
	// unknownIntentTTL is how long an intent without a VM is kept after the last request for it.
	unknownIntentTTL = 10 * time.Minute
	// tombstones is how long the rows of deleted VMs are kept: longer than a create can take effect late.
	tombstones = 24 * time.Hour
	// passTimeout limits one pass over the VMs that come up, and one over those to delete.
	passTimeout = 2 * time.Minute
)

// poll makes one pass over the rows that need action, unless one was made just now. Callers that wait for a VM call it;
// one of them checks for all.
func (s *starter) poll(ctx context.Context) error {
	if !s.polling.TryLock() {
		return nil
	}
	defer s.polling.Unlock()
	now := s.cfg.Now()
	s.mu.Lock()
	soon := now.Sub(s.polled) < s.cfg.Tick/2
	s.mu.Unlock()
	if soon {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	err := s.advanceAll(ctx)
	s.mu.Lock()
	s.polled = s.cfg.Now()
	s.mu.Unlock()
	return err
}

// advanceAll checks once, if necessary, and advances the rows of VMs that are coming up.
func (s *starter) advanceAll(ctx context.Context) error {
	rows, err := s.rows.List(ctx)
	if err != nil {
		return err
	}
	return s.advanceRising(ctx, slices.DeleteFunc(rows, func(row vm.Row) bool { return !row.Phase.Rising() }))
}

// advanceRising asks the provider about the rows if that is due, and dials VMs with a known address. It also dials them
// while the provider does not respond.
func (s *starter) advanceRising(ctx context.Context, rows []vm.Row) error {
	if len(rows) == 0 {
		return nil
	}
	c, err := s.knownStates(ctx)
	if err != nil {
		return err
	}
	due := s.mayCheck() && slices.ContainsFunc(rows, func(row vm.Row) bool { return s.isDue(row, c) })
	var checkErr error
	if due {
		checkErr = s.queryProvider(ctx, rows, c)
		due = checkErr == nil
	}
	group := s.newGroup(len(rows))
	for _, row := range rows {
		group.Go(func() error {
			server, ok := c.vms[row.Name]
			var err error
			if due {
				err = s.advance(ctx, row, server, ok)
			} else {
				err = s.dial(ctx, row, server, ok, c)
			}
			if err != nil {
				return fmt.Errorf("VM %s (%s): %w", row.Name, row.Phase, err)
			}
			return nil
		})
	}
	return errors.Join(checkErr, group.Wait())
}

// advance moves on a row whose VM is coming up.
func (s *starter) advance(ctx context.Context, row vm.Row, server VM, there bool) error {
	now := s.cfg.Now()
	switch {
	case there && server.State == StateEnded:
		_, err := s.giveUp(ctx, row, server.Ended, errors.New(server.Detail))
		return err
	case row.Phase == vm.Intended && there:
		if why := s.foreignReason(row, server); why != "" {
			_, err := s.giveUp(ctx, row, ReasonCreateFailed, errors.New(why))
			return err
		}
		if unknown, err := s.isUnknown(ctx, row, server); err != nil || unknown {
			if err == nil {
				_, err = s.giveUpUnknown(ctx, row, server)
			}
			return err
		}
		_, err := s.storeCreated(ctx, row, server)
		return err
	case row.Phase == vm.Intended:
		return nil // the requester creates it; the reaper ends intents without a requester
	case !there && now.Sub(row.Since) > vanishedAfter:
		return s.endVanished(ctx, row)
	case !there:
		return nil
	case row.Phase == vm.Creating && server.State == StateRunning:
		next, _, err := s.apply(ctx, row.Name, vm.Event{Kind: vm.Runs})
		if err != nil {
			return err
		}
		return s.makeFirstContact(ctx, next, server)
	case s.isOverdue(ctx, row, now):
		why := ReasonCreateFailed
		if row.Phase == vm.Booting {
			why = ReasonUnusable
		}
		cause := fmt.Errorf("it is %s since %s", row.Phase, row.Since.Format(time.RFC3339))
		if unmet := s.lastContactError(row.Name); unmet != nil {
			cause = fmt.Errorf("%w: %w", cause, unmet)
		}
		_, err := s.giveUp(ctx, row, why, cause)
		return err
	case row.Phase == vm.Booting && server.State == StateRunning:
		return s.makeFirstContact(ctx, row, server)
	}
	return nil
}

// endVanished ends a row whose VM is in no list, if the provider does not find it by ID either.
func (s *starter) endVanished(ctx context.Context, row vm.Row) error {
	_, err := s.inventory.confirmState(ctx, row)
	switch {
	case errors.Is(err, ErrNotFound):
		_, err = s.giveUp(ctx, row, ReasonVanished, errors.New("the provider no longer has it"))
	case errors.Is(err, ErrMissing):
		return nil
	}
	return err
}

// foreignReason returns why a VM with a row's name is not the row's, or an empty string.
func (s *starter) foreignReason(row vm.Row, server VM) string {
	for _, key := range []string{LabelDeployment, LabelOwner, LabelGeneration} {
		if server.Labels[key] != row.Labels[key] {
			return fmt.Sprintf("its label %s is %q, not %q", key, server.Labels[key], row.Labels[key])
		}
	}
	return ""
}

// isOverdue reports whether a VM has exceeded its time to come up, which grows with measured times.
func (s *starter) isOverdue(ctx context.Context, row vm.Row, now time.Time) bool {
	within := s.cfg.BootWithin
	times, err := s.rows.Times(ctx)
	if err != nil {
		return false
	}
	measured := times.Boot
	if row.FromImage {
		within, measured = s.cfg.RestoreWithin, times.Restore
	}
	if errors.Is(s.lastContactError(row.Name), ErrSettingUp) {
		within = max(within, s.cfg.SetUpWithin)
	}
	return now.Sub(row.Since) > max(within, min(2*vm.Percentile(measured, 95), 4*within))
}

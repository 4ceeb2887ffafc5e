package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/errand-bot/errand/state/vm"
)

// Reap deletes exactly the items in plan.Delete. It returns the deleted ones; failures are in the error and in the next
// plan.
func (f *Fleet) Reap(ctx context.Context, plan ReapPlan) ([]ReapItem, error) {
	var gone []ReapItem
	var errs []error
	for _, item := range plan.Delete {
		if err := f.reap(ctx, item); err != nil {
			errs = append(errs, fmt.Errorf("reap %s %s: %w", item.Kind, item.ID, err))
			continue
		}
		f.cfg.Log.Warn().Str("kind", item.Kind).Str("id", item.ID).Str("name", item.Name).Str("why", item.Why).Msg("reaped")
		gone = append(gone, item)
	}
	return gone, errors.Join(errs...)
}

func (f *Fleet) reap(ctx context.Context, item ReapItem) error {
	switch item.Kind {
	case ReapRow:
		return f.end(ctx, item.ID, item.Reason)
	case ReapVM:
		return f.reapVM(ctx, item)
	case ReapImage:
		if imager, ok := f.provider.(Imager); ok {
			return imager.DeleteImage(ctx, item.ID)
		}
	default:
		if auditor, ok := f.provider.(Auditor); ok {
			return auditor.DeleteStray(ctx, item.stray)
		}
	}
	return fmt.Errorf("%w: unknown kind of resource", ErrInvalid)
}

// reapVM deletes a VM. Its row ends with it only if the row refers to this VM and no earlier one: an order that took
// effect late has the name of a deleted VM, whose row may still keep an image.
func (f *Fleet) reapVM(ctx context.Context, item ReapItem) error {
	row, err := f.rows.Get(ctx, item.Name)
	switch {
	case errors.Is(err, vm.ErrNoRow):
	case err != nil:
		return err
	case row.EndedAt.IsZero() && !isAnother(row, item.vm):
		return f.end(ctx, item.Name, item.Reason)
	}
	f.forget(item.Name)
	return f.delete(ctx, VM{Name: item.Name, ID: item.vm}, item.Reason)
}

// delete deletes the listed VM and no other of its name.
func (f *Fleet) delete(ctx context.Context, vm VM, why Reason) error {
	if market, ok := f.market(); ok && vm.ID != "" {
		return market.DeleteByID(ctx, vm.ID, why)
	}
	return f.provider.Delete(ctx, vm.Name, why)
}

// end ends a row and deletes its provider resources without keeping the VM for another task.
func (f *Fleet) end(ctx context.Context, name string, why Reason) error {
	f.forget(name)
	return f.conclude(ctx, name, why, false)
}

// reapOnce is one pass of the automatic reapers.
func (f *Fleet) reapOnce(ctx context.Context) {
	s, err := f.survey(ctx, ReapOptions{})
	if err == nil {
		if s.unlisted[ReapImage] == nil {
			f.bookImages(ctx, s.images, true)
		}
		if !f.lacks(SafeguardReaper) {
			_, err = f.Reap(ctx, f.plan(s))
		}
		if s.unlisted[ReapVM] == nil { // otherwise the list may be incomplete
			err = errors.Join(err, f.lost(ctx, s))
		}
	}
	_, pruneErr := f.rows.Prune(ctx, f.cfg.Now().Add(-tombstones))
	if err := errors.Join(err, pruneErr); err != nil && ctx.Err() == nil {
		f.cfg.Log.Error().Err(err).Msg("failed to reap; retrying")
	}
}

// unreadPasses is the number of further passes after which an unreadable list is logged as an error.
const unreadPasses = 2

// raise records alarms and logs new ones; an unreadable list is logged as an error only if it persists. Alarms about a
// kind that could not be listed are kept.
func (f *Fleet) raise(alarms []Alarm, unlisted map[string]error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := map[string]Alarm{}
	for key, a := range f.alarms {
		if unlisted[a.Kind] != nil && a.ID != unlistedID {
			now[key] = a
		}
	}
	for _, a := range alarms {
		key := a.Kind + " " + a.ID
		old, known := f.alarms[key]
		if known {
			a.Since = old.Since
		}
		switch {
		case a.ID == unlistedID && !known:
			f.cfg.Log.Warn().Str("kind", a.Kind).Msg("failed to read a list; deleting none of its kind until it can be read")
		case a.ID == unlistedID:
			f.unread[a.Kind]++
			if f.unread[a.Kind] == unreadPasses {
				f.cfg.Log.Error().Str("kind", a.Kind).Time("since", a.Since).Msg("needs attention: " + a.Why)
			}
		case !known:
			f.cfg.Log.Error().Str("kind", a.Kind).Str("id", a.ID).Str("name", a.Name).Msg("needs attention: " + a.Why)
		}
		now[key] = a
	}
	for kind := range f.unread {
		if unlisted[kind] == nil {
			delete(f.unread, kind)
		}
	}
	f.alarms = now
}

// Alarms returns the current alarms, for status pages and metrics.
func (f *Fleet) Alarms() []Alarm {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := slices.Collect(maps.Values(f.alarms))
	if f.limit.alarm.Kind != "" && f.cfg.Now().Sub(f.limit.last) < limitStands {
		all = append(all, f.limit.alarm)
	}
	return slices.SortedFunc(slices.Values(all), func(a, b Alarm) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID)) })
}

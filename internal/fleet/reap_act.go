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

// execute implements [Fleet.Reap].
func (r *reaper) execute(ctx context.Context, plan ReapPlan) ([]ReapItem, error) {
	var gone []ReapItem
	var errs []error
	for _, item := range plan.Delete {
		if err := r.deleteItem(ctx, item); err != nil {
			errs = append(errs, fmt.Errorf("reap %s %s: %w", item.Kind, item.ID, err))
			continue
		}
		r.cfg.Log.Warn().Str("kind", item.Kind).Str("id", item.ID).Str("name", item.Name).Str("reason", item.Explanation).Msg("orphaned resource deleted")
		gone = append(gone, item)
	}
	return gone, errors.Join(errs...)
}

func (r *reaper) deleteItem(ctx context.Context, item ReapItem) error {
	switch item.Kind {
	case ReapRow:
		return r.deletion.endWithoutReuse(ctx, item.ID, item.Reason)
	case ReapVM:
		return r.deleteVM(ctx, item)
	case ReapImage:
		if imager, ok := r.provider.(Imager); ok {
			return imager.DeleteImage(ctx, item.ID)
		}
	default:
		if auditor, ok := r.provider.(Auditor); ok {
			return auditor.DeleteUnmanaged(ctx, item.resource)
		}
	}
	return fmt.Errorf("%w: unknown kind of resource", ErrInvalid)
}

// deleteVM deletes a VM. Its row ends with it only if the row refers to this VM and no earlier one: an order that took
// effect late has the name of a deleted VM, whose row may still keep an image.
func (r *reaper) deleteVM(ctx context.Context, item ReapItem) error {
	row, err := r.rows.Get(ctx, item.Name)
	switch {
	case errors.Is(err, vm.ErrNoRow):
	case err != nil:
		return err
	case row.EndedAt.IsZero() && !isDifferentVM(row, item.vm):
		return r.deletion.endWithoutReuse(ctx, item.Name, item.Reason)
	}
	r.inventory.dropCached(item.Name)
	return r.deletion.delete(ctx, VM{Name: item.Name, ID: item.vm}, item.Reason)
}

// runPass is one pass of the automatic reapers.
func (r *reaper) runPass(ctx context.Context) {
	s, err := r.takeSurvey(ctx, ReapOptions{})
	if err == nil {
		if s.unlisted[ReapImage] == nil {
			r.images.bookImages(ctx, s.images, true)
		}
		if !r.isDisabled(SafeguardReaper) {
			_, err = r.execute(ctx, r.planReap(s))
		}
		if s.unlisted[ReapVM] == nil { // otherwise the list may be incomplete
			err = errors.Join(err, r.failLost(ctx, s))
		}
	}
	_, pruneErr := r.rows.Prune(ctx, r.cfg.Now().Add(-tombstones))
	if err := errors.Join(err, pruneErr); err != nil && ctx.Err() == nil {
		r.cfg.Log.Error().Err(err).Msg("failed to reap; retrying")
	}
}

// unreadPasses is the number of further passes after which an unreadable list is logged as an error.
const unreadPasses = 2

// recordAlarms records alarms and logs new ones; an unreadable list is logged as an error only if it persists. Alarms
// about a kind that could not be listed are kept.
func (r *reaper) recordAlarms(alarms []Alarm, unlisted map[string]error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := map[string]Alarm{}
	for key, a := range r.alarms {
		if unlisted[a.Kind] != nil && a.ID != unlistedID {
			now[key] = a
		}
	}
	for _, a := range alarms {
		key := a.Kind + " " + a.ID
		old, known := r.alarms[key]
		if known {
			a.Since = old.Since
		}
		switch {
		case a.ID == unlistedID && !known:
			r.cfg.Log.Warn().Str("kind", a.Kind).Msg("failed to read a list; deleting none of its kind until it can be read")
		case a.ID == unlistedID:
			r.unreadablePasses[a.Kind]++
			if r.unreadablePasses[a.Kind] == unreadPasses {
				r.cfg.Log.Error().Str("kind", a.Kind).Time("since", a.Since).Msg("needs attention: " + a.Explanation)
			}
		case !known:
			r.cfg.Log.Error().Str("kind", a.Kind).Str("id", a.ID).Str("name", a.Name).Msg("needs attention: " + a.Explanation)
		}
		now[key] = a
	}
	for kind := range r.unreadablePasses {
		if unlisted[kind] == nil {
			delete(r.unreadablePasses, kind)
		}
	}
	r.alarms = now
}

// currentAlarms implements [Fleet.Alarms].
func (r *reaper) currentAlarms() []Alarm {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Collect(maps.Values(r.alarms))
	if limit, ok := r.limit.activeAlarm(); ok {
		all = append(all, limit)
	}
	return slices.SortedFunc(slices.Values(all), func(a, b Alarm) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
}

// failLost fails rows in use whose VM is missing or has ended unexpectedly.
func (r *reaper) failLost(ctx context.Context, s survey) error {
	var errs []error
	for _, row := range s.rows {
		if !row.Phase.Usable() {
			continue
		}
		if server, ok := findListed(s.vms, row); ok && server.State != StateEnded {
			r.inventory.resetMissed(row.Name)
			continue
		}
		if _, err := r.inventory.failIfLost(ctx, row); err != nil {
			errs = append(errs, fmt.Errorf("VM %s: %w", row.Name, err))
		}
	}
	return errors.Join(errs...)
}

package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/errand-bot/errand/state"
)

// Reap deletes exactly what a plan says. It returns what is gone; what could not be deleted is in the
// error, and in the next plan.
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
	return fmt.Errorf("%w: nothing knows how to delete it", ErrInvalid)
}

// reapVM deletes a VM. Its row ends with it only if the row means this VM and no earlier one: an order that
// was carried out late has the name of a VM that is gone, whose row may still keep an image.
func (f *Fleet) reapVM(ctx context.Context, item ReapItem) error {
	row, err := f.rows.Get(ctx, item.Name)
	switch {
	case errors.Is(err, state.ErrNoVMRow):
	case err != nil:
		return err
	case row.EndedAt.IsZero() && !another(row, item.vm):
		return f.end(ctx, item.Name, item.Reason)
	}
	f.forget(item.Name)
	return f.delete(ctx, VM{Name: item.Name, ID: item.vm}, item.Reason)
}

// delete deletes a VM that the provider has listed: no other of its name.
func (f *Fleet) delete(ctx context.Context, vm VM, why Reason) error {
	if market, ok := f.market(); ok && vm.ID != "" {
		return market.DeleteByID(ctx, vm.ID, why)
	}
	return f.provider.Delete(ctx, vm.Name, why)
}

// end ends a row, and what the provider has of it, without keeping it for anybody.
func (f *Fleet) end(ctx context.Context, name string, why Reason) error {
	f.forget(name)
	return f.conclude(ctx, name, why, false)
}

// reapOnce is one pass of the reapers that run by themselves.
func (f *Fleet) reapOnce(ctx context.Context) {
	s, err := f.survey(ctx, ReapOptions{})
	if err == nil {
		if s.unlisted[ReapImage] == nil {
			f.bookImages(ctx, s.images, true)
		}
		if !f.lacks(SafeguardReaper) {
			_, err = f.Reap(ctx, f.plan(s))
		}
		if s.unlisted[ReapVM] == nil { // else nothing is missing from it
			err = errors.Join(err, f.lost(ctx, s))
		}
	}
	_, pruneErr := f.rows.Prune(ctx, f.cfg.Now().Add(-tombstones))
	if err := errors.Join(err, pruneErr); err != nil && ctx.Err() == nil {
		f.cfg.Log.Error().Err(err).Msg("failed to reap; retrying")
	}
}

// unreadPasses is after how many further passes a list that could not be read is logged as an error.
const unreadPasses = 2

// raise remembers alarms and logs those that are new; that a list could not be read is an error only once it has lasted.
// Alarms about a kind that could not be listed stay.
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
				f.cfg.Log.Error().Str("kind", a.Kind).Time("since", a.Since).Msg("a person has to look: " + a.Why)
			}
		case !known:
			f.cfg.Log.Error().Str("kind", a.Kind).Str("id", a.ID).Str("name", a.Name).Msg("a person has to look: " + a.Why)
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

// Alarms are what the last look at everything found that a person has to see to, for status and metrics.
func (f *Fleet) Alarms() []Alarm {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := slices.Collect(maps.Values(f.alarms))
	if f.limit.alarm.Kind != "" && f.cfg.Now().Sub(f.limit.last) < limitStands {
		all = append(all, f.limit.alarm)
	}
	return slices.SortedFunc(slices.Values(all), func(a, b Alarm) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID)) })
}

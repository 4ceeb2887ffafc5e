package fleet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/errand-bot/errand/state/vm"
)

// order makes the call that may cost money. After a refusal because of an account limit, it only tries candidates with
// fewer CPUs than the refused one: the limit may be one on CPUs.
func (f *Fleet) order(ctx context.Context, row vm.Row, want Spec, spec AcquireSpec) (VM, error) {
	if row.Rebuilds != "" {
		rebuilder, ok := f.provider.(Rebuilder)
		if !ok {
			return VM{}, fmt.Errorf("%w: this provider cannot rebuild VMs", ErrInvalid)
		}
		return rebuilder.Rebuild(ctx, row.Rebuilds, want)
	}
	if _, ok := f.market(); !ok {
		return f.provider.Create(ctx, want)
	}
	offers, err := f.offers(ctx, spec)
	if err != nil {
		return VM{}, err
	}
	var not []string
	var limit error
	below := math.MaxInt // CPU limit
	for _, offer := range offers {
		if offer.VCPU >= below {
			continue
		}
		want.Offer = offer
		vm, err := f.createWithRoom(ctx, want)
		switch {
		case errors.Is(err, ErrNoCapacity):
			f.deny(ctx, Candidate{offer.Type, offer.Location}, err)
			not = append(not, fmt.Sprintf("%s has none now", Candidate{offer.Type, offer.Location}))
		case errors.Is(err, ErrQuota):
			f.reportLimit(err)
			limit, below = err, offer.VCPU
		default:
			if err == nil && limit == nil {
				f.clearLimit()
			}
			return vm, err
		}
	}
	if limit != nil {
		return VM{}, &NoCapacityError{Reason: "the provider's limit for this account is reached", Cause: limit}
	}
	return VM{}, noneLeft(not, ErrNoCapacity)
}

// createWithRoom creates a VM. While an account limit is reached it releases one standby VM after another.
func (f *Fleet) createWithRoom(ctx context.Context, want Spec) (VM, error) {
	for {
		vm, err := f.provider.Create(ctx, want)
		if !errors.Is(err, ErrQuota) {
			return vm, err
		}
		rows, rowsErr := f.rows.List(ctx)
		if rowsErr != nil || !f.releaseSpare(ctx, rows) {
			return VM{}, errors.Join(err, rowsErr)
		}
	}
}

// releaseSpare deletes a standby VM to make room and reports whether it is gone.
func (f *Fleet) releaseSpare(ctx context.Context, rows []vm.Row) bool {
	for _, row := range rows {
		if row.Spare && row.Phase == vm.Parked {
			err := f.Release(ctx, row.Name, Reason(row.Why))
			f.cfg.Log.Info().Err(err).Str("vm", row.Name).Msg("spare VM released to make room")
			if err == nil {
				return true
			}
		}
	}
	return false
}

// Kind and ID of the alarm for a reached account limit, and how long the alarm lasts after the last refusal.
const (
	alarmAccount = "account"
	alarmLimit   = "limit"
	limitStands  = time.Hour
)

// accountLimit is the state of the account limit.
type accountLimit struct {
	alarm Alarm     // its Kind is empty if there is no alarm
	last  time.Time // the last refusal
}

// reportLimit raises the alarm for a reached account limit.
func (f *Fleet) reportLimit(cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, since := f.cfg.Now(), f.limit.alarm.Since
	if f.limit.alarm.Kind == "" || now.Sub(f.limit.last) >= limitStands {
		since = now
		f.cfg.Log.Error().Err(cause).Msg("the provider's limit for this account is reached")
	}
	f.limit = accountLimit{last: now, alarm: Alarm{
		Kind: alarmAccount, ID: alarmLimit, Since: since,
		Why: fmt.Sprintf("the provider's limit for this account is reached (%s): request a higher limit, or set `limits.vms` so that errand stays below it", shorten(cause)),
	}}
}

// clearLimit clears the alarm after a successful order.
func (f *Fleet) clearLimit() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.limit = accountLimit{}
}

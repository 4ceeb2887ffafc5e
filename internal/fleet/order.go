package fleet

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/errand-bot/errand/state/vm"
)

// An orderer orders VMs of the provider, one candidate after the other.
type orderer struct {
	*core
	images   *imageStore
	limit    *accountLimit
	deletion *deleter

	mu      sync.Mutex
	refused map[Candidate]candidateRefusal // recent refusals by the provider

	lastRefusal OrderRefusal // zero if none was refused since the last success
}

// offers returns the offers that may be ordered for a spec. If there are none the error is a *[NoCapacityError].
func (o *orderer) offers(ctx context.Context, spec AcquireSpec) ([]Offer, error) {
	market, ok := o.asMarket()
	if !ok {
		return nil, nil
	}
	all, err := market.Offers(ctx)
	if err != nil {
		return nil, err
	}
	w, want := offerRequirements{needs: spec.Needs}, o.candidates(spec)
	switch {
	case spec.FromImage:
		w.image, err = o.images.lastingImage(ctx, spec.Image)
	case spec.Image != "": // an image made by the fleet requires its disk size; other images are names that only the provider knows
		if w.image, err = o.images.image(ctx, spec.Image); errors.Is(err, ErrNotFound) {
			err = nil
		}
	}
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	refused := maps.Clone(o.refused)
	o.mu.Unlock()
	use, not := chooseOffers(all, want, w, refused, o.cfg.Now())
	if len(use) == 0 {
		return nil, noCandidateError(not, errNoCandidate)
	}
	return use, nil
}

func (o *orderer) candidates(spec AcquireSpec) []Candidate {
	if len(spec.Candidates) > 0 {
		return spec.Candidates
	}
	return o.cfg.Candidates
}

// errNoCandidate is the cause if the provider was not called at all.
var errNoCandidate = errors.New("no candidate is left")

// noCandidateError returns an error that explains why no candidate is suitable.
func noCandidateError(not []string, cause error) error {
	const most = 4
	if len(not) > most {
		not = append(slices.Clone(not[:most]), fmt.Sprintf("and %d more", len(not)-most))
	}
	reason := "no type of VM is configured"
	if len(not) > 0 {
		reason = not[0]
		for _, n := range not[1:] {
			reason += "; " + n
		}
	}
	return &NoCapacityError{Reason: reason, Cause: cause}
}

// placeOrder makes the call that may cost money. After a refusal because of an account limit, it only tries candidates
// with fewer CPUs than the refused one: the limit may be one on CPUs.
func (o *orderer) placeOrder(ctx context.Context, row vm.Row, want Spec, spec AcquireSpec) (VM, error) {
	if row.Rebuilds != "" {
		rebuilder, ok := o.provider.(Rebuilder)
		if !ok {
			return VM{}, fmt.Errorf("%w: this provider cannot rebuild VMs", ErrInvalid)
		}
		return rebuilder.Rebuild(ctx, row.Rebuilds, want)
	}
	if _, ok := o.asMarket(); !ok {
		return o.provider.Create(ctx, want)
	}
	offers, err := o.offers(ctx, spec)
	if err != nil {
		return VM{}, err
	}
	began := o.cfg.Now()
	var not []string
	var limit error
	below := math.MaxInt // CPU limit
	for _, offer := range offers {
		if offer.VCPU >= below {
			continue
		}
		want.Offer = offer
		vm, err := o.createWithRoom(ctx, want)
		o.recordResult(Candidate{offer.Type, offer.Location}, err)
		switch {
		case errors.Is(err, ErrNoCapacity):
			o.recordRefusal(ctx, Candidate{offer.Type, offer.Location}, err)
			not = append(not, fmt.Sprintf("%s has none now", Candidate{offer.Type, offer.Location}))
		case errors.Is(err, ErrQuota):
			o.limit.raiseAlarm(err)
			limit, below = err, offer.VCPU
		default:
			if err == nil && limit == nil {
				o.limit.endAlarm()
			}
			if err == nil {
				o.limit.recordOrder(time.Time{})
			}
			return vm, err
		}
	}
	if limit != nil {
		o.limit.recordOrder(began)
		return VM{}, &NoCapacityError{Reason: "the provider's limit for this account is reached", Cause: limit}
	}
	return VM{}, noCandidateError(not, ErrNoCapacity)
}

// An OrderRefusal is an order of a VM that the provider refused.
type OrderRefusal struct {
	At        time.Time
	Candidate Candidate
	Err       error // matches ErrNoCapacity, ErrQuota, ErrUnauthorized or ErrInvalid
}

// recordResult remembers the latest refusal until an order succeeds. An order whose outcome is unknown changes nothing.
func (o *orderer) recordResult(c Candidate, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	refused := slices.ContainsFunc([]error{ErrNoCapacity, ErrQuota, ErrUnauthorized, ErrInvalid}, func(target error) bool { return errors.Is(err, target) })
	switch {
	case err == nil:
		o.lastRefusal = OrderRefusal{}
	case refused:
		o.lastRefusal = OrderRefusal{o.cfg.Now(), c, err}
	}
}

// latestRefusal implements [Fleet.LastRefusal].
func (o *orderer) latestRefusal() OrderRefusal {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lastRefusal
}

// createWithRoom creates a VM. While an account limit is reached it releases one standby VM after another.
func (o *orderer) createWithRoom(ctx context.Context, want Spec) (VM, error) {
	for {
		vm, err := o.provider.Create(ctx, want)
		if !errors.Is(err, ErrQuota) {
			return vm, err
		}
		rows, rowsErr := o.rows.List(ctx)
		if rowsErr != nil || !o.deletion.releaseStandby(ctx, rows) {
			return VM{}, errors.Join(err, rowsErr)
		}
	}
}

// recordRefusal records that the provider has no capacity for a candidate.
func (o *orderer) recordRefusal(ctx context.Context, c Candidate, why error) {
	now := o.cfg.Now()
	o.mu.Lock()
	o.refused[c] = candidateRefusal{now, "no capacity"}
	o.mu.Unlock()
	o.cfg.Log.Warn().Err(why).Str("type", c.Type).Str("location", c.Location).Msg("the provider currently has no VM of this kind")
	if err := o.store.SetFact(ctx, factRefused, []byte(now.UTC().Format(time.RFC3339))); err != nil {
		o.cfg.Log.Warn().Err(err).Msg("failed to record that capacity was refused") // the next refusal is recorded again
	}
}

// isCapacityScarce reports whether capacity was refused recently.
func (o *orderer) isCapacityScarce(ctx context.Context) bool {
	value, err := o.store.Fact(ctx, factRefused)
	if err != nil || value == nil {
		return false
	}
	at, err := time.Parse(time.RFC3339, string(value))
	return err == nil && o.cfg.Now().Sub(at) < insuranceDuration
}

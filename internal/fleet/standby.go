package fleet

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/errand-bot/errand/state/vm"
)

// standby keeps VMs beyond one task and gives them to others; see [Pool].
type standby struct {
	*core
	inventory *inventory
	deletion  *deleter
	orders    *orderer
}

const (
	// minReusableTime is the minimum rest of its paid hour for which a VM is kept for another task.
	minReusableTime = 15 * time.Minute
	// insuranceDuration is how long after a refusal for lack of capacity parked VMs may be kept beyond their hour.
	insuranceDuration = 24 * time.Hour
	// factRefused is the time of the provider's last refusal for lack of capacity, in RFC 3339.
	factRefused = "fleet/refused"
)

// Margin returns how long before the end of a paid span a VM must start to be suspended: one check, two minutes for
// clock differences, and the time to save its disk. It is at most a quarter of a short span, as in a demo, and half of
// any span.
func Margin(paid, tick, image time.Duration) time.Duration {
	const clocks = time.Minute
	margin := tick + 2*time.Minute + clocks
	if margin > paid/4 {
		margin = paid / 4
	}
	return min(margin+image, paid/2)
}

// SleepAt returns when a resting VM must start to be suspended so that no further span is charged, or the zero time for
// a VM that costs nothing. It is pure: see vm.SleepAt.
func SleepAt(row vm.Row, now time.Time, margin time.Duration) time.Time {
	return vm.SleepAt(row.CreatedAt, row.Paid, margin, now)
}

// survivesRelease implements [Fleet.Outlives].
func (p *standby) survivesRelease(ctx context.Context, name string) (bool, error) {
	if p.cfg.Pool.Insurance <= 0 || !p.orders.isCapacityScarce(ctx) {
		return false, nil
	}
	rows, err := p.rows.List(ctx)
	if err != nil {
		return false, err
	}
	row, ok := insuredVM(rows, p.cfg.Pool.Insurance, name)
	if !ok || p.nearsMaxAge(row) {
		return false, nil
	}
	var limit *vm.LimitError
	if err := p.mayRunOn(ctx, row); errors.As(err, &limit) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return true, nil
}

// nearsMaxAge reports whether a VM is close to its maximum age.
func (p *standby) nearsMaxAge(row vm.Row) bool {
	before := min(12*time.Hour, p.cfg.MaxAge/4)
	return !row.NotAfter.IsZero() && !p.cfg.Now().Before(row.NotAfter.Add(-before))
}

// spanAllowed implements [Fleet.SpanAllowed].
func (p *standby) spanAllowed(ctx context.Context, name string) error {
	row, err := p.rows.Get(ctx, name)
	if errors.Is(err, vm.ErrNoRow) {
		return nil
	}
	if err != nil {
		return err
	}
	return p.mayRunOn(ctx, row)
}

// mayRunOn returns a *vm.LimitError if the caps forbid another paid span of the row's VM.
func (p *standby) mayRunOn(ctx context.Context, row vm.Row) error {
	caps, err := p.caps(ctx, row.Task)
	if err != nil {
		return err
	}
	return p.rows.SpanAllowed(ctx, row, caps)
}

// insuredVM finds a VM among the n oldest ones that are parked for a task and cost money.
func insuredVM(rows []vm.Row, n int, name string) (vm.Row, bool) {
	parked := slices.DeleteFunc(slices.Clone(rows), func(r vm.Row) bool { return r.Phase != vm.Parked || r.Paid <= 0 || r.Standby })
	slices.SortFunc(parked, func(a, b vm.Row) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Name, b.Name))
	})
	for _, row := range parked[:min(n, len(parked))] {
		if row.Name == name {
			return row, true
		}
	}
	return vm.Row{}, false
}

// findStandby finds a standby VM for a spec: of the same repository, of a suitable kind, with the most time left.
func (p *standby) findStandby(ctx context.Context, rows []vm.Row, spec AcquireSpec) (vm.Row, bool) {
	if !p.cfg.Pool.Reuse || spec.FromImage {
		return vm.Row{}, false
	}
	// The network of a used VM is not opened again: until its disk is rebuilt, the last agent's processes could use it.
	if closer, ok := p.provider.(NetworkCloser); ok && closer.OpensNetwork(spec.Image) {
		return vm.Row{}, false
	}
	var best vm.Row
	var left time.Duration
	now := p.cfg.Now()
	for _, row := range rows {
		d := SleepAt(row, now, p.deletion.deletionMargin(row)).Sub(now)
		if row.Standby && row.Phase == vm.Parked && row.Repo == spec.Repo && d > left {
			best, left = row, d
		}
	}
	if best.Name == "" || !p.isSuitable(ctx, best, spec) {
		return vm.Row{}, false
	}
	return best, true
}

// isSuitable reports whether a standby VM's kind could be ordered for a spec. Sold-out kinds also count.
func (p *standby) isSuitable(ctx context.Context, row vm.Row, spec AcquireSpec) bool {
	market, ok := p.asMarket()
	if !ok {
		return false
	}
	offers, err := market.Offers(ctx)
	if err != nil {
		return false
	}
	use, _ := chooseOffers(offers, p.orders.candidates(spec), offerRequirements{needs: spec.Needs}, nil, p.cfg.Now())
	return slices.ContainsFunc(use, func(o Offer) bool { return o.Type == row.Kind && o.Location == row.Location })
}

// rebuildIntent stores that the new VM takes over a standby VM.
func (p *standby) rebuildIntent(ctx context.Context, in vm.Intent, spare vm.Row, caps vm.Caps) (vm.Row, error) {
	in.Rebuilds = spare.Name
	p.inventory.dropCached(spare.Name)
	return p.rows.Intend(ctx, in, caps)
}

// makeRoom frees a slot after the cap on VMs was reached: of a standby VM, of one that must be deleted anyway, or of
// one whose end was not noticed yet.
func (p *standby) makeRoom(ctx context.Context, rows []vm.Row, err error) bool {
	var limit *vm.LimitError
	if !errors.As(err, &limit) || limit.Limit != vm.LimitVMs {
		return false
	}
	if p.deletion.releaseStandby(ctx, rows) || p.deletion.deleteDue(ctx, true) > 0 {
		return true
	}
	vms, listErr := p.inventory.list(ctx)
	if listErr != nil {
		return false
	}
	room := false
	for _, row := range rows {
		if vm, ok := findListed(vms, row); ok && vm.State == StateEnded && !row.Phase.Over() {
			failed, err := p.inventory.failIfLost(ctx, row)
			room = room || failed && err == nil
		}
	}
	return room
}

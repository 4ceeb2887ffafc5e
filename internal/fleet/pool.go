package fleet

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/errand-bot/errand/state/vm"
)

const (
	// spareFrom is the minimum rest of its paid hour for which a VM is kept for another task.
	spareFrom = 15 * time.Minute
	// insuredFor is how long after a refusal for lack of capacity parked VMs may be kept beyond their hour.
	insuredFor = 24 * time.Hour
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

// Outlives reports whether a parked VM may be kept beyond its paid span, in case the provider has no capacity when its
// task continues: capacity was refused in the last 24 h, the VM is among the `hetzner.insurance` oldest parked ones,
// the caps allow another span, and the VM does not reach its maximum age soon, because its work is saved half a day
// before that.
func (f *Fleet) Outlives(ctx context.Context, name string) (bool, error) {
	if f.cfg.Pool.Insurance <= 0 || !f.scarce(ctx) {
		return false, nil
	}
	rows, err := f.rows.List(ctx)
	if err != nil {
		return false, err
	}
	row, ok := insured(rows, f.cfg.Pool.Insurance, name)
	if !ok || f.nearsMaxAge(row) {
		return false, nil
	}
	var limit *vm.LimitError
	if err := f.rows.SpanAllowed(ctx, row, f.caps()); errors.As(err, &limit) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	return true, nil
}

// nearsMaxAge reports whether a VM is close to its maximum age.
func (f *Fleet) nearsMaxAge(row vm.Row) bool {
	before := min(12*time.Hour, f.cfg.MaxAge/4)
	return !row.NotAfter.IsZero() && !f.cfg.Now().Before(row.NotAfter.Add(-before))
}

// SpanAllowed returns a *vm.LimitError if the caps forbid another paid span of a VM. A VM without a row or cost is
// always allowed.
func (f *Fleet) SpanAllowed(ctx context.Context, name string) error {
	row, err := f.rows.Get(ctx, name)
	if errors.Is(err, vm.ErrNoRow) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.rows.SpanAllowed(ctx, row, f.caps())
}

// insured finds a VM among the n oldest ones that are parked for a task and cost money.
func insured(rows []vm.Row, n int, name string) (vm.Row, bool) {
	parked := slices.DeleteFunc(slices.Clone(rows), func(r vm.Row) bool { return r.Phase != vm.Parked || r.Paid <= 0 || r.Spare })
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

// deny records that the provider has no capacity for a candidate.
func (f *Fleet) deny(ctx context.Context, c Candidate, why error) {
	now := f.cfg.Now()
	f.mu.Lock()
	f.refused[c] = deny{now, "no capacity"}
	f.mu.Unlock()
	f.cfg.Log.Warn().Err(why).Str("type", c.Type).Str("location", c.Location).Msg("the provider currently has no VM of this kind")
	if err := f.store.SetFact(ctx, factRefused, []byte(now.UTC().Format(time.RFC3339))); err != nil {
		f.cfg.Log.Warn().Err(err).Msg("failed to record that capacity was refused") // the next refusal is recorded again
	}
}

// scarce reports whether capacity was refused recently.
func (f *Fleet) scarce(ctx context.Context) bool {
	value, err := f.store.Fact(ctx, factRefused)
	if err != nil || value == nil {
		return false
	}
	at, err := time.Parse(time.RFC3339, string(value))
	return err == nil && f.cfg.Now().Sub(at) < insuredFor
}

// keeps reports whether a released VM should be kept for the next task of its repository.
func (f *Fleet) keeps(row vm.Row, why Reason) bool {
	if _, ok := f.provider.(Rebuilder); !ok || !f.cfg.Pool.Reuse || row.Spare || row.Repo == 0 {
		return false
	}
	if why != ReasonDone && why != ReasonCancelled || !row.Phase.Usable() || row.Phase == vm.Sleeping {
		return false
	}
	now := f.cfg.Now()
	return SleepAt(row, now, f.margin(row)).Sub(now) >= min(spareFrom, row.Paid/4)
}

func (f *Fleet) margin(row vm.Row) time.Duration { return Margin(row.Paid, f.cfg.Tick, 0) }

// spareFor finds a standby VM for a spec: of the same repository, of a suitable kind, with the most time left.
func (f *Fleet) spareFor(ctx context.Context, rows []vm.Row, spec AcquireSpec) (vm.Row, bool) {
	if !f.cfg.Pool.Reuse || spec.FromImage {
		return vm.Row{}, false
	}
	var best vm.Row
	var left time.Duration
	now := f.cfg.Now()
	for _, row := range rows {
		d := SleepAt(row, now, f.margin(row)).Sub(now)
		if row.Spare && row.Phase == vm.Parked && row.Repo == spec.Repo && d > left {
			best, left = row, d
		}
	}
	if best.Name == "" || !f.willDo(ctx, best, spec) {
		return vm.Row{}, false
	}
	return best, true
}

// willDo reports whether a standby VM's kind could be ordered for a spec. Sold-out kinds also count.
func (f *Fleet) willDo(ctx context.Context, row vm.Row, spec AcquireSpec) bool {
	market, ok := f.market()
	if !ok {
		return false
	}
	offers, err := market.Offers(ctx)
	if err != nil {
		return false
	}
	use, _ := choose(offers, f.candidates(spec), wish{needs: spec.Needs}, nil, f.cfg.Now())
	return slices.ContainsFunc(use, func(o Offer) bool { return o.Type == row.Kind && o.Location == row.Location })
}

// rebuildIntent stores that the new VM takes over a standby VM.
func (f *Fleet) rebuildIntent(ctx context.Context, in vm.Intent, spare vm.Row) (vm.Row, error) {
	in.Rebuilds = spare.Name
	f.forget(spare.Name)
	return f.rows.Intend(ctx, in, f.caps())
}

// makeRoom frees a slot after the cap on VMs was reached: of a standby VM, of one that must be deleted anyway, or of
// one whose end was not noticed yet.
func (f *Fleet) makeRoom(ctx context.Context, rows []vm.Row, err error) bool {
	var limit *vm.LimitError
	if !errors.As(err, &limit) || limit.Limit != vm.LimitVMs {
		return false
	}
	if f.releaseSpare(ctx, rows) || f.deleteDue(ctx, true) > 0 {
		return true
	}
	vms, listErr := f.List(ctx)
	if listErr != nil {
		return false
	}
	room := false
	for _, row := range rows {
		if vm, ok := findListed(vms, row); ok && vm.State == StateEnded && !row.Phase.Over() {
			failed, err := f.lose(ctx, row)
			room = room || failed && err == nil
		}
	}
	return room
}

package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/errand-bot/errand/state"
)

// A Market's API allows few requests, and a VM takes its time to boot. So the provider is not asked at each tick
// how far a VM is. A VM whose address is known is dialed instead, which costs no request and tells more; the
// provider is asked when that has not helped for as long as it usually takes, and then ever more rarely.
//
// The times are in ticks (Config.Tick), which are five seconds in production.
const (
	// dialFrom is how long after its order a VM is dialed for the first time where nothing was measured.
	dialFrom = 2
	// bootsIn is how long a VM is dialed before the provider is asked, where nothing was measured; restoresIn is the
	// same for one that is made from an image of a whole disk. People report 22 s until a server of a stock image is
	// made, and 69 s to many minutes from a snapshot; then its system boots. bootsAtMost is the most, whatever was
	// measured: an order that has failed shall not be waited for too long.
	bootsIn, restoresIn, bootsAtMost = 18, 48, 60
	// imageIn is how long after its order an image is checked for the first time where nothing was measured. They are
	// reported to take one to five minutes. It is less than what is left of the VM's hour when it begins to sleep
	// (Margin).
	imageIn = 24
	// rarest is how long VMs that do not come up are left alone at most.
	rarest = 12
	// growth: the next check is due after another third of the time that has passed.
	growth = 3
)

// ticks returns n times Config.Tick.
func (f *Fleet) ticks(n time.Duration) time.Duration { return n * f.cfg.Tick }

// checks says when the provider is asked about VMs that are on their way up.
type checks struct {
	last  time.Time     // when it was asked, zero for never
	vms   map[string]VM // what it said then or at the order, by name
	times state.VMTimes
}

// due reports whether the provider has to be asked about a row now.
func (f *Fleet) due(row state.VMRow, c checks) bool {
	if _, ok := f.market(); !ok {
		return true
	}
	now := f.cfg.Now()
	vm, known := c.vms[row.Name]
	first := f.cfg.Tick
	switch {
	case row.Phase == state.VMIntended: // it is being ordered, or there is none to be had
		first *= 2
	case !known: // we have begun anew
		return true
	case f.dialable(vm):
		if first = f.ticks(bootsIn); row.FromImage {
			first = f.ticks(restoresIn)
		}
		if usual := c.boots(row, 95); usual > 0 {
			first = min(usual+f.ticks(2), f.ticks(bootsAtMost))
		}
	}
	return !now.Before(f.nextCheck(row.Intended, c.last, first))
}

// nextCheck is when something that began then is checked next, which is expected to take first.
func (f *Fleet) nextCheck(began, last time.Time, first time.Duration) time.Time {
	if last.Before(began.Add(first)) {
		return began.Add(first)
	}
	return last.Add(min(max(last.Sub(began)/growth, f.cfg.Tick), f.ticks(rarest)))
}

// boots is how long VMs like a row's took until they could be used, in so many of 100 cases; 0 if nothing was measured.
func (c checks) boots(row state.VMRow, percent int) time.Duration {
	if row.FromImage {
		return state.Percentile(c.times.Restore, percent)
	}
	return state.Percentile(c.times.Boot, percent)
}

// dialable reports whether a first contact with a VM may be tried before the provider says that it runs.
func (f *Fleet) dialable(vm VM) bool { return f.cfg.Contact != nil && vm.Endpoint.Address != "" }

// early reports whether it is too early to dial a VM: none was ever as quick.
func (f *Fleet) early(row state.VMRow, c checks) bool {
	from := f.ticks(dialFrom)
	if quickest := c.boots(row, 1); quickest > 0 {
		from = quickest - f.ticks(2)
	}
	return row.Phase == state.VMCreating && f.cfg.Now().Before(row.Intended.Add(from))
}

// dial tries the first contact with a VM between two checks, whether the provider has said yet that it runs or not.
func (f *Fleet) dial(ctx context.Context, row state.VMRow, vm VM, known bool, c checks) error {
	if !known || row.Phase == state.VMIntended || another(row, vm.ID) || row.Phase == state.VMCreating && !f.dialable(vm) {
		return nil
	}
	if f.early(row, c) {
		return nil
	}
	return f.greet(ctx, row, vm)
}

// checks returns what is known of the VMs that are on their way up, without asking the provider.
func (f *Fleet) checks(ctx context.Context) (checks, error) {
	times, err := f.rows.Times(ctx)
	if err != nil {
		return checks{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c := checks{last: f.checked, vms: map[string]VM{}, times: times}
	maps.Copy(c.vms, f.coming)
	return c, nil
}

// check asks the provider how far the VMs of some rows are, and puts what it says into c.
func (f *Fleet) check(ctx context.Context, rows []state.VMRow, c checks) error {
	list, err := f.List(ctx)
	if err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.recheck = retry{f.cfg.Now().Add(min(f.cfg.Tick<<min(f.recheck.n, 10), f.ticks(rarest))), f.recheck.n + 1}
		return err
	}
	clear(c.vms)
	for _, row := range rows {
		if vm, ok := listed(list, row); ok {
			c.vms[row.Name] = vm
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checked, f.coming, f.recheck = f.cfg.Now(), maps.Clone(c.vms), retry{}
	return nil
}

// mayCheck reports whether the last checks went well, or it is time to try again.
func (f *Fleet) mayCheck() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.cfg.Now().Before(f.recheck.at)
}

// Images lists this deployment's images, or fails: never a part. The list may be as old as within, so that those
// who ask at about the same time share one request.
func (f *Fleet) Images(ctx context.Context, within time.Duration) ([]Image, error) {
	imager, ok := f.provider.(Imager)
	if !ok {
		return nil, fmt.Errorf("%w: this provider makes no images", ErrInvalid)
	}
	select {
	case f.listing <- struct{}{}:
		defer func() { <-f.listing }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	f.mu.Lock()
	images, at := f.listed, f.read
	f.mu.Unlock()
	now := f.cfg.Now()
	if !at.IsZero() && now.Sub(at) < within {
		return slices.Clone(images), nil
	}
	images, err := imager.Images(ctx)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.listed, f.read = slices.Clone(images), now
	f.mu.Unlock()
	return images, nil
}

// imageReady is how long after its order the image of a row's disk is checked for the first time: half of those before it
// were ready so long after the word to sleep.
func (f *Fleet) imageReady(ctx context.Context, row state.VMRow) time.Duration {
	times, err := f.rows.Times(ctx)
	if usual := state.Percentile(times.Image, 50); err == nil && usual > 0 {
		return max(row.Since.Add(usual).Sub(f.cfg.Now()), f.ticks(2))
	}
	return f.ticks(imageIn)
}

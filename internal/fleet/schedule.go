package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/errand-bot/errand/state/vm"
)

// A [Market]'s API has a rate limit and VMs need time to boot. So errand does not ask the provider at each tick. It
// dials VMs with a known address, which needs no request and is more informative. It asks the provider after the usual
// boot time has passed without success, and then ever more rarely.
//
// Times are in ticks (Config.Tick), which are five seconds in production.
const (
	// dialFrom is the time from the order to the first dial if no boot times were measured.
	dialFrom = 2
	// bootsIn is how long a VM is dialed before the provider is asked if no boot times were measured; restoresIn is the
	// same for a VM created from an image of a whole disk. Reported times are 22 s to create a server from a stock
	// image and 69 s to many minutes from a snapshot, plus the boot. bootsAtMost limits measured times, so that a
	// failed order is noticed in time.
	bootsIn, restoresIn, bootsAtMost = 18, 48, 60
	// imageIn is the time from the order of an image to its first check if no times were measured. Reported times are
	// one to five minutes. It is less than the rest of the VM's hour when its suspension starts ([Margin]).
	imageIn = 24
	// rarest is the longest interval of checks of VMs that do not come up.
	rarest = 12
	// growth: the next check is due after another third of the time that has passed.
	growth = 3
)

// ticks returns n times Config.Tick.
func (f *Fleet) ticks(n time.Duration) time.Duration { return n * f.cfg.Tick }

// checks is the state of the checks of VMs that are coming up.
type checks struct {
	last  time.Time     // time of the last check, zero for never
	vms   map[string]VM // VMs at the last check or order, by name
	times vm.Times
}

// due reports whether a check of a row is due.
func (f *Fleet) due(row vm.Row, c checks) bool {
	if _, ok := f.market(); !ok {
		return true
	}
	now := f.cfg.Now()
	server, known := c.vms[row.Name]
	first := f.cfg.Tick
	switch {
	case row.Phase == vm.Intended: // it is being ordered, or no candidate is available
		first *= 2
	case !known: // the process has restarted
		return true
	case f.dialable(server):
		if first = f.ticks(bootsIn); row.FromImage {
			first = f.ticks(restoresIn)
		}
		if usual := c.boots(row, 95); usual > 0 {
			first = min(usual+f.ticks(2), f.ticks(bootsAtMost))
		}
	}
	return !now.Before(f.nextCheck(row.Intended, c.last, first))
}

// nextCheck returns the time of the next check of something that started at began and is expected to take first.
func (f *Fleet) nextCheck(began, last time.Time, first time.Duration) time.Time {
	if last.Before(began.Add(first)) {
		return began.Add(first)
	}
	return last.Add(min(max(last.Sub(began)/growth, f.cfg.Tick), f.ticks(rarest)))
}

// boots returns a percentile of the measured boot times of VMs like the row's, 0 if there are none.
func (c checks) boots(row vm.Row, percent int) time.Duration {
	if row.FromImage {
		return vm.Percentile(c.times.Restore, percent)
	}
	return vm.Percentile(c.times.Boot, percent)
}

// dialable reports whether a first contact may be tried before the provider reports the VM as running.
func (f *Fleet) dialable(server VM) bool {
	return f.cfg.Contact != nil && server.Endpoint.Address != ""
}

// early reports whether it is too early to dial a VM, by measured times.
func (f *Fleet) early(row vm.Row, c checks) bool {
	from := f.ticks(dialFrom)
	if quickest := c.boots(row, 1); quickest > 0 {
		from = quickest - f.ticks(2)
	}
	return row.Phase == vm.Creating && f.cfg.Now().Before(row.Intended.Add(from))
}

// dial tries the first contact with a VM between two checks, whether or not the provider has reported it as running.
func (f *Fleet) dial(ctx context.Context, row vm.Row, server VM, known bool, c checks) error {
	if !known || row.Phase == vm.Intended || isAnother(row, server.ID) || row.Phase == vm.Creating && !f.dialable(server) {
		return nil
	}
	if f.early(row, c) {
		return nil
	}
	return f.greet(ctx, row, server)
}

// checks returns the known state of the VMs that are coming up, without asking the provider.
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

// check asks the provider about the VMs of some rows and updates c.
func (f *Fleet) check(ctx context.Context, rows []vm.Row, c checks) error {
	list, err := f.List(ctx)
	if err != nil {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.recheck = retry{f.cfg.Now().Add(min(f.cfg.Tick<<min(f.recheck.n, 10), f.ticks(rarest))), f.recheck.n + 1}
		return err
	}
	clear(c.vms)
	for _, row := range rows {
		if server, ok := findListed(list, row); ok {
			c.vms[row.Name] = server
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.checked, f.coming, f.recheck = f.cfg.Now(), maps.Clone(c.vms), retry{}
	return nil
}

// mayCheck reports whether the last check succeeded or a retry is due.
func (f *Fleet) mayCheck() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.cfg.Now().Before(f.recheck.at)
}

// Images lists this deployment's images completely, or returns an error. The list may be up to within old, so that
// concurrent callers share one request.
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

// imageReady returns the time from the order to the first check of an image: the measured median.
func (f *Fleet) imageReady(ctx context.Context, row vm.Row) time.Duration {
	times, err := f.rows.Times(ctx)
	if usual := vm.Percentile(times.Image, 50); err == nil && usual > 0 {
		return max(row.Since.Add(usual).Sub(f.cfg.Now()), f.ticks(2))
	}
	return f.ticks(imageIn)
}

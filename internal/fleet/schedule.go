package fleet

import (
	"context"
	"maps"
	"time"

	"github.com/errand-bot/errand/state/vm"
)

// A [Market]'s API has a rate limit and VMs need time to boot. So errand does not ask the provider at each tick. It
// dials VMs with a known address, which needs no request and is more informative. It asks the provider after the usual
// boot time has passed without success, and then ever more rarely.
//
// Times are in ticks (Config.Tick), which are five seconds in production.
const (
	// dialAfterTicks is the time from the order to the first dial if no boot times were measured.
	dialAfterTicks = 2
	// bootTicks is how long a VM is dialed before the provider is asked if no boot times were measured; restoreTicks is
	// the same for a VM created from an image of a whole disk. Reported times are 22 s to create a server from a stock
	// image and 69 s to many minutes from a snapshot, plus the boot. maxBootTicks limits measured times, so that a
	// failed order is noticed in time.
	bootTicks, restoreTicks, maxBootTicks = 18, 48, 60
	// imageTicks is the time from the order of an image to its first check if no times were measured. Reported times
	// are one to five minutes. It is less than the rest of the VM's hour when its suspension starts ([Margin]).
	imageTicks = 24
	// maxCheckTicks is the longest interval of checks of VMs that do not come up.
	maxCheckTicks = 12
	// checkGrowth: the next check is due after another third of the time that has passed.
	checkGrowth = 3
)

// checks is the state of the checks of VMs that are coming up.
type checks struct {
	last  time.Time     // time of the last check, zero for never
	vms   map[string]VM // VMs at the last check or order, by name
	times vm.Times
}

// isDue reports whether a check of a row is due.
func (s *starter) isDue(row vm.Row, c checks) bool {
	if _, ok := s.asMarket(); !ok {
		return true
	}
	now := s.cfg.Now()
	server, known := c.vms[row.Name]
	first := s.cfg.Tick
	switch {
	case row.Phase == vm.Intended: // it is being ordered, or no candidate is available
		first *= 2
	case !known: // the process has restarted
		return true
	case s.isDialable(server):
		if first = s.ticks(bootTicks); row.FromImage {
			first = s.ticks(restoreTicks)
		}
		if usual := c.bootPercentile(row, 95); usual > 0 {
			first = min(usual+s.ticks(2), s.ticks(maxBootTicks))
		}
	}
	return !now.Before(s.nextCheck(row.Intended, c.last, first))
}

// nextCheck returns the time of the next check of something that started at began and is expected to take first.
func (s *starter) nextCheck(began, last time.Time, first time.Duration) time.Time {
	if last.Before(began.Add(first)) {
		return began.Add(first)
	}
	return last.Add(min(max(last.Sub(began)/checkGrowth, s.cfg.Tick), s.ticks(maxCheckTicks)))
}

// bootPercentile returns a percentile of the measured boot times of VMs like the row's, 0 if there are none.
func (c checks) bootPercentile(row vm.Row, percent int) time.Duration {
	if row.FromImage {
		return vm.Percentile(c.times.Restore, percent)
	}
	return vm.Percentile(c.times.Boot, percent)
}

// isDialable reports whether a first contact may be tried before the provider reports the VM as running.
func (s *starter) isDialable(server VM) bool {
	return s.cfg.Contact != nil && server.Endpoint.Address != ""
}

// isTooEarlyToDial reports whether it is too early to dial a VM, by measured times.
func (s *starter) isTooEarlyToDial(row vm.Row, c checks) bool {
	from := s.ticks(dialAfterTicks)
	if quickest := c.bootPercentile(row, 1); quickest > 0 {
		from = quickest - s.ticks(2)
	}
	return row.Phase == vm.Creating && s.cfg.Now().Before(row.Intended.Add(from))
}

// dial tries the first contact with a VM between two checks, whether or not the provider has reported it as running.
func (s *starter) dial(ctx context.Context, row vm.Row, server VM, known bool, c checks) error {
	if !known || row.Phase == vm.Intended || isDifferentVM(row, server.ID) || row.Phase == vm.Creating && !s.isDialable(server) {
		return nil
	}
	if s.isTooEarlyToDial(row, c) {
		return nil
	}
	return s.makeFirstContact(ctx, row, server)
}

// knownStates returns the known state of the VMs that are coming up, without asking the provider.
func (s *starter) knownStates(ctx context.Context) (checks, error) {
	times, err := s.rows.Times(ctx)
	if err != nil {
		return checks{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c := checks{last: s.checked, vms: map[string]VM{}, times: times}
	maps.Copy(c.vms, s.starting)
	return c, nil
}

// queryProvider asks the provider about the VMs of some rows and updates c.
func (s *starter) queryProvider(ctx context.Context, rows []vm.Row, c checks) error {
	list, err := s.inventory.list(ctx)
	if err != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.recheck = retry{s.cfg.Now().Add(min(s.cfg.Tick<<min(s.recheck.attempts, 10), s.ticks(maxCheckTicks))), s.recheck.attempts + 1}
		return err
	}
	clear(c.vms)
	for _, row := range rows {
		if server, ok := findListed(list, row); ok {
			c.vms[row.Name] = server
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checked, s.starting, s.recheck = s.cfg.Now(), maps.Clone(c.vms), retry{}
	return nil
}

// mayCheck reports whether the last check succeeded or a retry is due.
func (s *starter) mayCheck() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.cfg.Now().Before(s.recheck.at)
}

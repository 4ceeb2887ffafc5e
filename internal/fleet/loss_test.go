package fleet_test

import (
	"errors"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/vm"
)

// TestLossNeedsTwoChecks: a VM that is not found by ID is missing, and lost if a check a minute later does not find it
// either and none in between did.
func TestLossNeedsTwoChecks(t *testing.T) {
	t.Parallel()
	type check struct {
		after  time.Duration
		missed bool
		want   error
	}
	for name, checks := range map[string][]check{
		"missed twice":        {{20 * time.Minute, true, fleet.ErrMissing}, {time.Minute, true, fleet.ErrNotFound}},
		"missed immediately":  {{20 * time.Minute, true, fleet.ErrMissing}, {0, true, fleet.ErrMissing}, {59 * time.Second, true, fleet.ErrMissing}},
		"found":               {{20 * time.Minute, true, fleet.ErrMissing}, {time.Minute, false, nil}},
		"found in between":    {{20 * time.Minute, true, fleet.ErrMissing}, {time.Second, false, nil}, {20 * time.Minute, true, fleet.ErrMissing}},
		"missed for a second": {{20 * time.Minute, true, fleet.ErrMissing}, {time.Second, true, fleet.ErrMissing}, {time.Second, false, nil}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, s, c, store := newShopFleet(t, nil)
			server := get(t, f, fleet.AcquireSpec{Task: shopTask})
			for i, check := range checks {
				c.pass(check.after)
				s.missing = map[bool]int{true: 1}[check.missed]
				if _, err := f.Get(t.Context(), server.Name); !errors.Is(err, check.want) || (err == nil) != (check.want == nil) {
					t.Errorf("check %d: got error %v, want %v", i, err, check.want)
				}
			}
			if row := rowOf(t, store, server.Name); row.Phase.Over() {
				t.Errorf("checking alone has ended the row: got %+v", row)
			}
		})
	}
}

// TestOneEndedReportFreesNoSlot: a single report that a VM has ended frees no slot.
func TestOneEndedReportFreesNoSlot(t *testing.T) {
	t.Parallel()
	f, s, c, store := newShopFleet(t, func(c *fleet.Config) { c.Caps.VMs = 1 })
	server := get(t, f, fleet.AcquireSpec{Task: shopTask})
	s.end(server.Name)
	other := fleet.AcquireSpec{Task: state.TaskKey{Repo: 6, Issue: 1}}
	if _, err := f.Acquire(t.Context(), other); !errors.Is(err, fleet.ErrNoCapacity) || rowOf(t, store, server.Name).Phase.Over() {
		t.Fatalf("first check: got error %v, row %+v", err, rowOf(t, store, server.Name))
	}
	c.pass(time.Minute)
	_, err := f.Acquire(t.Context(), other) // it counts until it is deleted
	if row := rowOf(t, store, server.Name); !errors.Is(err, fleet.ErrNoCapacity) || row.Phase != vm.Failed || row.EndReason != fleet.ReasonCrashed {
		t.Errorf("a minute later: got error %v, row %+v", err, row)
	}
}

package hetzner_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/hetzner"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
	"github.com/errand-bot/errand/state"
)

// TestFailedBootsAreNoticed: a VM is dialed before Hetzner reports it as running. A VM that never boots is still given
// up in time, with few calls.
func TestFailedBootsAreNoticed(t *testing.T) {
	t.Parallel()
	took := simhetzner.Took{Create: 21 * time.Second, Start: 8 * time.Second}
	tests := map[string]struct {
		faults  []simhetzner.Fault
		noLogin bool
		why     fleet.Reason
		within  time.Duration // until it is given up
		calls   int           // until then
	}{
		"the order fails":           {faults: []simhetzner.Fault{{Method: http.MethodPost, Path: "^/servers$", ActionCode: "server_error", Count: 1}}, why: fleet.ReasonCreateFailed, within: 2 * time.Minute, calls: 15},
		"no login is possible":      {noLogin: true, why: fleet.ReasonUnusable, within: 8 * time.Minute, calls: 20},
		"the order takes very long": {faults: []simhetzner.Fault{{Method: http.MethodPost, Path: "^/servers$", Slow: time.Hour, Count: 1}}, why: fleet.ReasonCreateFailed, within: 7 * time.Minute, calls: 25},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := newAccount(t, took, false, hetzner.EgressOpen)
				a.noLogin = test.noLogin
				for _, f := range test.faults {
					noErr(t, "set a fault", a.sim.Fault(f))
				}
				began := time.Now()
				go func() { _, _ = a.fleet.Acquire(t.Context(), fleet.AcquireSpec{Task: state.TaskKey{Repo: 7, Issue: 1}}) }()
				name := fleet.VMName("calls", "7-1", 1)
				for {
					time.Sleep(time.Second)
					row, err := a.store.VMs.Get(t.Context(), name)
					noErr(t, "read the row", err)
					if row.Phase.Over() {
						if row.EndReason != test.why {
							t.Errorf("it ended as %s (%s), want %s", row.EndReason, row.Detail, test.why)
						}
						break
					}
					if time.Since(began) > time.Hour {
						t.Fatalf("got state %s after an hour", row.Phase)
					}
				}
				_, calls := a.calls(nil)
				t.Logf("given up after %s and %d calls", time.Since(began), calls)
				if after := time.Since(began); after > test.within || calls > test.calls {
					t.Errorf("given up after %s and %d calls, want %s and %d at most", after, calls, test.within, test.calls)
				}
			})
		})
	}
}

// TestFirstOrder: an order marked as the first of its name is made without a lookup, and nothing is ordered twice even
// if the mark is wrong.
func TestFirstOrder(t *testing.T) {
	t.Parallel()
	first := func(owner string) fleet.Spec {
		s := spec("vm-1")
		s.First, s.Labels[fleet.LabelOwner] = true, owner
		return s
	}
	tests := map[string]struct {
		before []fleet.Spec
		fault  *simhetzner.Fault
		want   error
		again  bool
		looks  int
	}{
		"it is the first":          {},
		"it is there already":      {before: []fleet.Spec{first("me")}, looks: 1},
		"the name is another's":    {before: []fleet.Spec{first("you")}, want: fleet.ErrNameTaken, looks: 1},
		"its answer was lost":      {fault: &simhetzner.Fault{Method: http.MethodPost, Path: "^/servers$", After: true, Cut: true, Count: 1}, want: fleet.ErrUnknownOutcome, again: true, looks: 1},
		"it was carried out later": {fault: &simhetzner.Fault{Method: http.MethodPost, Path: "^/servers$", Late: 3 * time.Second, Count: 1}, want: fleet.ErrUnknownOutcome, again: true, looks: 1},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProject(t, nil)
			provider := p.provider(nil)
			noErr(t, "set up", provider.Setup(t.Context()))
			for _, s := range test.before {
				_, err := provider.Create(t.Context(), s)
				noErr(t, "create", err)
			}
			if test.fault != nil {
				p.fault(*test.fault)
			}
			before, _ := p.sim.Counts()
			_, err := provider.Create(t.Context(), first("me"))
			if test.want == nil {
				noErr(t, "create", err)
			} else {
				wantErr(t, "create", err, test.want)
			}
			if test.again {
				p.clock.Advance(5 * time.Second)
				_, err = provider.Create(t.Context(), first("me"))
				noErr(t, "create again", err)
			}
			p.wantCount("server", 1)
			after, _ := p.sim.Counts()
			if looks := after["GET /servers"] - before["GET /servers"]; looks != test.looks {
				t.Errorf("%d look-ups, want %d", looks, test.looks)
			}
		})
	}
}

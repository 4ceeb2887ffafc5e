package fleet_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/state/store"
	"github.com/errand-bot/errand/state/vm"
)

// TestRestoredStoreReapsNothingUnknown: VMs that were created between a backup and its restoration are never deleted, not even if a row
// has their name; each is an alarm. Later orphans are deleted, and the operator can delete all.
func TestRestoredStoreReapsNothingUnknown(t *testing.T) {
	t.Parallel()
	c := newClock()
	m := newMemory(c.now)
	st := newStore(t, c.now)
	f := fleet.New(m, fleet.Config{Deployment: "demo", Rows: st.VMs, Store: st, Caps: vm.Caps{VMs: 5}, Now: c.now, Sleep: c.sleep})
	t.Cleanup(f.Close)
	known := acquire(t, f, "known", 1)
	released := acquire(t, f, "released", 1)
	if err := f.Release(t.Context(), released.Name, fleet.ReasonDone); err != nil {
		t.Fatal(err)
	}
	c.pass(time.Hour)
	lost := createUnmanagedVM(m, c, "lost", nil)                                           // no row has it
	again := createUnmanagedVM(m, c, released.Name, nil)                                   // its row belongs to an earlier VM, which was deleted
	if err := st.VMs.Distrust(t.Context(), c.now().Add(time.Second), 0, 100); err != nil { // the restoration
		t.Fatal(err)
	}
	c.pass(2 * time.Second)
	late := createUnmanagedVM(m, c, "late", nil)
	for range 4 {
		c.pass(20 * time.Minute)
		if got := reap(t, f, fleet.ReapOptions{}); got != "" && got != "vm "+late {
			t.Errorf("reaped %q", got)
		}
	}
	if _, ok := m.vms[late]; ok {
		t.Error("an orphan of the restored errand is still there")
	}
	alarms := map[string]bool{}
	for _, a := range f.Alarms() {
		alarms[a.ID] = true
	}
	for _, name := range []string{lost, again} {
		if _, ok := m.vms[name]; !ok || !alarms[name] {
			t.Errorf("%s: kept %v, alarm %v", name, ok, alarms[name])
		}
	}
	if alarms[known.Name] {
		t.Error("alarm for a known VM")
	}
	if got := reap(t, f, fleet.ReapOptions{Reviewed: true}); got != "" {
		t.Errorf("a manual pass reaped %q", got)
	}
	reap(t, f, fleet.ReapOptions{Reviewed: true, All: true})
	if _, ok := m.vms[lost]; ok {
		t.Error("--all has not deleted it")
	}
}

// TestRestoredStoreTakesNoUnknownVM: after a restoration, a task never gets a VM that was created since the backup: new VMs have other
// names, and a VM that has a row's name nevertheless, or was given to another task, is left alone with an alarm.
func TestRestoredStoreTakesNoUnknownVM(t *testing.T) {
	t.Parallel()
	// lostName is the name of the VM that the lost errand created for the owner next.
	lostName := func(gen int) string { return fleet.VMName("demo", "owner", gen) }
	lost := func(s *shop, c *clock, gen int) {
		in, name := of("owner", gen), lostName(gen)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.vms[name] = fleet.VM{Name: name, ID: "lost", State: fleet.StateRunning, CreatedAt: c.now(), Labels: map[string]string{
			fleet.LabelDeployment: "demo", fleet.LabelOwner: in.Owner, fleet.LabelGeneration: fmt.Sprint(gen),
		}}
	}
	tests := map[string]struct {
		backup  func(t *testing.T, f *fleet.Fleet, st *store.Store) // until the backup
		missed  func(t *testing.T, s *shop, c *clock)               // what the lost errand did
		resumed func(t *testing.T, f *fleet.Fleet, st *store.Store) // instead of acquiring the owner's VM
		kept    string                                              // the VM that stays
		wantGen int
	}{
		"the first VM of a task": {
			missed: func(_ *testing.T, s *shop, c *clock) { lost(s, c, 1) }, kept: lostName(1), wantGen: 102,
		},
		"the next VM of a task": {
			backup: func(t *testing.T, f *fleet.Fleet, _ *store.Store) {
				if err := f.Release(t.Context(), acquire(t, f, "owner", 1).Name, fleet.ReasonFailed); err != nil {
					t.Fatal(err)
				}
			},
			missed: func(_ *testing.T, s *shop, c *clock) { lost(s, c, 2) }, kept: lostName(2), wantGen: 102,
		},
		"an intended VM": {
			backup: func(t *testing.T, _ *fleet.Fleet, st *store.Store) {
				if _, err := st.VMs.Intend(t.Context(), vm.Intent{Name: lostName(1), Owner: "owner", Gen: 1}, vm.Caps{}); err != nil {
					t.Fatal(err)
				}
			},
			missed: func(_ *testing.T, s *shop, c *clock) { lost(s, c, 1) }, kept: lostName(1), wantGen: 102,
		},
		"a name that was used nevertheless": {
			missed: func(_ *testing.T, s *shop, c *clock) { lost(s, c, 102) }, kept: lostName(102), wantGen: 103,
		},
		"a VM that another task got": {
			backup: func(t *testing.T, f *fleet.Fleet, _ *store.Store) { acquire(t, f, "owner", 1) },
			missed: func(_ *testing.T, s *shop, _ *clock) {
				s.mu.Lock()
				defer s.mu.Unlock()
				server := s.vms[lostName(1)]
				delete(s.vms, server.Name)
				server.Name = "another"
				s.vms[server.Name] = server
			},
			resumed: func(t *testing.T, f *fleet.Fleet, _ *store.Store) {
				if err := f.Release(t.Context(), lostName(1), fleet.ReasonFailed); err != nil {
					t.Fatal(err)
				}
			},
			kept: "another",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClock()
			s, st := newShop(c), newStore(t, c.now)
			f := fleet.New(s, fleet.Config{
				Deployment: "demo", Rows: st.VMs, Store: st, Now: c.now, Sleep: c.sleep, Candidates: []fleet.Candidate{{Type: "small", Location: "here"}},
			})
			t.Cleanup(f.Close)
			acquire(t, f, "before", 1)
			if test.backup != nil {
				test.backup(t, f, st)
			}
			c.pass(time.Hour)
			test.missed(t, s, c)
			c.pass(time.Hour)
			if err := st.VMs.Distrust(t.Context(), c.now(), 0, 100); err != nil {
				t.Fatal(err)
			}
			c.pass(time.Minute)
			if test.resumed != nil {
				test.resumed(t, f, st)
			} else if got := acquire(t, f, "owner", 1); got.Gen != test.wantGen {
				t.Errorf("got generation %d, want %d", got.Gen, test.wantGen)
			}
			for range 4 {
				c.pass(20 * time.Minute)
				reap(t, f, fleet.ReapOptions{})
			}
			if _, err := s.Get(context.Background(), test.kept); err != nil {
				t.Errorf("%s was deleted: %v", test.kept, err)
			}
			if !slices.ContainsFunc(f.Alarms(), func(a fleet.Alarm) bool { return a.ID == test.kept }) {
				t.Errorf("got alarms %v, want one for %s", f.Alarms(), test.kept)
			}
		})
	}
}

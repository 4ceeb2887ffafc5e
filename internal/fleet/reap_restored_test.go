package fleet_test

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
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
	lost := createUnmanagedVM(m, c, "lost", nil)                                   // no row has it
	again := createUnmanagedVM(m, c, released.Name, nil)                           // its row belongs to an earlier VM, which was deleted
	if err := st.VMs.Distrust(t.Context(), c.now().Add(time.Second)); err != nil { // the restoration
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

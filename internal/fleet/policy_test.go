package fleet_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/store"
	"github.com/errand-bot/errand/state/vm"
)

func newFleet(t *testing.T, maxVMs int) (*fleet.Fleet, *memory, *clock) {
	t.Helper()
	c := newClock()
	m := newMemory(c.now)
	store := newStore(t, c.now)
	f := fleet.New(m, fleet.Config{Deployment: "demo", Rows: store.VMs, Store: store, Caps: vm.Caps{VMs: maxVMs}, Now: c.now, Sleep: c.sleep})
	t.Cleanup(f.Close)
	return f, m, c
}

// newStore is a store on a file, whose soundness is checked at the end.
func newStore(t *testing.T, now func() time.Time) *store.Store {
	t.Helper()
	db, err := boltkv.Open(filepath.Join(t.TempDir(), "errand.db"), boltkv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(context.Background(), db, store.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if problems, err := s.Check(context.Background()); err != nil || len(problems) > 0 {
			t.Errorf("store: got error %v, problems %q", err, problems)
		}
		_ = db.Close()
	})
	return s
}

func of(owner string, gen int) fleet.AcquireSpec { return fleet.AcquireSpec{Owner: owner, Gen: gen} }

func acquire(t *testing.T, f *fleet.Fleet, owner string, gen int) fleet.VM {
	t.Helper()
	vm, err := f.Acquire(t.Context(), of(owner, gen))
	if err != nil {
		t.Fatal(err)
	}
	return vm
}

func TestVMName(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		deployment, owner string
		gen               int
		prefix            string
	}{
		"plain":       {"demo", "42-7", 1, "errand-demo-42-7-"},
		"odd letters": {"My Org", "12#7/ä", 2, "errand-my-org-12-7-"},
		"long":        {"demo", strings.Repeat("x", 200), 12, "errand-demo-xxx"},
		"empty":       {"", "", 0, "errand-"},
	}
	seen := map[string]string{}
	for what, test := range tests {
		name := fleet.VMName(test.deployment, test.owner, test.gen)
		if err := fleet.ValidName(name); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if !strings.HasPrefix(name, test.prefix) {
			t.Errorf("%s: %s does not begin with %s", what, name, test.prefix)
		}
		if name != fleet.VMName(test.deployment, test.owner, test.gen) {
			t.Errorf("%s: got another name the second time", what)
		}
		seen[name] = what
	}
	// Arguments that look alike still give different names.
	for _, alike := range [][2]string{{"demo", "1#2"}, {"demo", "1-2"}, {"demo-1", "2"}, {"demo", "1/2"}} {
		name := fleet.VMName(alike[0], alike[1], 1)
		if other, ok := seen[name]; ok {
			t.Errorf("%v and %s have the same name %s", alike, other, name)
		}
		seen[name] = strings.Join(alike[:], " ")
	}
}

func FuzzVMName(f *testing.F) {
	f.Add("demo", "1#2", 1)
	f.Add("", "---", -1)
	f.Add(strings.Repeat("-", 99), "ß", 1<<62)
	f.Fuzz(func(t *testing.T, deployment, owner string, gen int) {
		if gen < 0 {
			gen = 0
		}
		if err := fleet.ValidName(fleet.VMName(deployment, owner, gen)); err != nil {
			t.Error(err)
		}
	})
}

func TestAcquireAgainReturnsTheSameVM(t *testing.T) {
	t.Parallel()
	f, m, _ := newFleet(t, 1)
	first, second := acquire(t, f, "1#2", 1), acquire(t, f, "1#2", 1)
	if first.Name != second.Name || len(m.vms) != 1 {
		t.Errorf("got VMs %s and %s of %d", first.Name, second.Name, len(m.vms))
	}
	if got := first.Labels[fleet.LabelOwner]; got != "1-2" {
		t.Errorf("got owner label %q", got)
	}
	if got := first.Labels[fleet.LabelDeployment]; got != "demo" {
		t.Errorf("got deployment label %q", got)
	}
}

func TestVMCapDeniesVMs(t *testing.T) {
	t.Parallel()
	f, m, _ := newFleet(t, 2)
	one := acquire(t, f, "one", 1)
	two := acquire(t, f, "two", 1)
	_, err := f.Acquire(t.Context(), of("three", 1))
	var full *fleet.NoCapacityError
	if !errors.Is(err, fleet.ErrNoCapacity) || !errors.As(err, &full) || full.Reason != "2 of 2 VMs are in use" || full.Hint() == "" {
		t.Errorf("got error %v", err)
	}
	acquire(t, f, "one", 1) // has its place
	m.end(two.Name)         // takes none any more
	acquire(t, f, "three", 1)
	if err := f.Release(t.Context(), one.Name, fleet.ReasonDone); err != nil {
		t.Fatal(err)
	}
	acquire(t, f, "four", 1)
	if err := f.Release(t.Context(), fleet.VMName("demo", "four", 1), fleet.ReasonDone); err != nil {
		t.Fatal(err)
	}
	if next := acquire(t, f, "two", 1); next.Name == two.Name || next.Gen != 2 {
		t.Errorf("acquired the ended VM %s", next.Name)
	}
}

// TestOthersComeFirst: the last free VM is for the owner that has waited longest. An owner that has a VM keeps it.
func TestOthersComeFirst(t *testing.T) {
	t.Parallel()
	f, _, _ := newFleet(t, 2)
	acquire(t, f, "one", 1)
	behind := of("two", 1)
	behind.Behind = 1
	if _, err := f.Acquire(t.Context(), behind); !errors.Is(err, fleet.ErrNoCapacity) {
		t.Errorf("got error %v, want no capacity", err)
	}
	acquire(t, f, "first in the queue", 1)
	one := of("one", 1)
	one.Behind = 1
	if _, err := f.Acquire(t.Context(), one); err != nil {
		t.Errorf("an owner with a VM: %v", err)
	}
}

// TestVMCapLimitsConcurrentAcquires lets many ask while no creation has finished yet.
func TestVMCapLimitsConcurrentAcquires(t *testing.T) {
	t.Parallel()
	f, m, _ := newFleet(t, 2)
	m.gate = make(chan struct{})
	var wg sync.WaitGroup
	results := make(chan error, 6)
	for i := range 6 {
		wg.Go(func() {
			_, err := f.Acquire(t.Context(), of(string(rune('a'+i)), 1))
			results <- err
		})
	}
	for range 4 { // those that are refused return before any creation does
		if err := <-results; !errors.Is(err, fleet.ErrNoCapacity) {
			t.Errorf("got error %v", err)
		}
	}
	close(m.gate)
	wg.Wait()
	for range 2 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if len(m.vms) != 2 {
		t.Errorf("got %d VMs", len(m.vms))
	}
}

func TestRelease(t *testing.T) {
	t.Parallel()
	f, m, _ := newFleet(t, 1)
	vm := acquire(t, f, "one", 1)
	if err := f.Release(t.Context(), vm.Name, "because"); err == nil || len(m.vms) != 1 {
		t.Errorf("a reason that is not in the list was accepted: error %v", err)
	}
	for range 2 {
		if err := f.Release(t.Context(), vm.Name, fleet.ReasonCancelled); err != nil {
			t.Error(err)
		}
	}
	if m.reasons[vm.Name] != fleet.ReasonCancelled || len(m.vms) != 0 {
		t.Errorf("got reason %q and %d remaining VMs", m.reasons[vm.Name], len(m.vms))
	}
}

func TestReasonsAreWords(t *testing.T) {
	t.Parallel()
	seen := map[fleet.Reason]bool{}
	for _, r := range fleet.Reasons() {
		if r == "" || seen[r] || strings.Trim(string(r), "abcdefghijklmnopqrstuvwxyz_") != "" {
			t.Errorf("got reason %q", r)
		}
		seen[r] = true
	}
}

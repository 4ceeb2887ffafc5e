package fleet_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/store"
	"github.com/errand-bot/errand/state/vm"
)

// slowShop takes its time for deletions and counts them.
type slowShop struct {
	*shop
	takes   time.Duration
	deletes atomic.Int32
}

func (s *slowShop) Delete(ctx context.Context, name string, why fleet.Reason) error {
	s.deletes.Add(1)
	time.Sleep(s.takes)
	return s.shop.Delete(ctx, name, why)
}

func (s *slowShop) DeleteByID(ctx context.Context, id string, why fleet.Reason) error {
	s.deletes.Add(1)
	time.Sleep(s.takes)
	return s.shop.DeleteByID(ctx, id, why)
}

// inSlowShop is a fleet at the tick of production that runs until the test's end, on the clock of a synctest bubble.
func inSlowShop(t *testing.T, takes time.Duration, change func(*fleet.Config)) (*fleet.Fleet, *slowShop, *store.Store) {
	t.Helper()
	s, st := &slowShop{shop: newShop(&clock{}), takes: takes}, newStore(t, time.Now)
	s.now = time.Now
	cfg := fleet.Config{Deployment: "demo", Rows: st.VMs, Store: st, Candidates: []fleet.Candidate{{Type: "small", Location: "here"}}}
	if change != nil {
		change(&cfg)
	}
	f := fleet.New(s, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		f.Close()
	})
	return f, s, st
}

// TestVMIsDeletedByOneCallerAtATime: the poller, which deletes ended VMs, skips a VM that a task is deleting, and a
// task waits for the poller.
func TestVMIsDeletedByOneCallerAtATime(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(f *fleet.Fleet, s *store.Store, server string) error{
		"a release": func(f *fleet.Fleet, _ *store.Store, server string) error {
			return f.Release(context.Background(), server, fleet.ReasonDone)
		},
		"a release after the poller has begun": func(f *fleet.Fleet, s *store.Store, server string) error {
			_, _, err := s.VMs.Apply(context.Background(), server, vm.Event{Kind: vm.Fail, EndReason: fleet.ReasonVanished})
			time.Sleep(6 * time.Second)
			if err == nil {
				err = f.Release(context.Background(), server, fleet.ReasonDone)
			}
			return err
		},
		"two releases at once": func(f *fleet.Fleet, _ *store.Store, server string) error {
			other := make(chan error)
			go func() { other <- f.Release(context.Background(), server, fleet.ReasonDone) }()
			err := f.Release(context.Background(), server, fleet.ReasonDone)
			if otherErr := <-other; err == nil {
				err = otherErr
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, s, st := inSlowShop(t, 20*time.Second, nil)
				server := get(t, f, fleet.AcquireSpec{Task: shopTask})
				if err := end(f, st, server.Name); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				if n := s.deletes.Load(); n != 1 {
					t.Errorf("got %d deletions, want 1", n)
				}
				if row := rowOf(t, st, server.Name); row.Phase != vm.Gone {
					t.Errorf("got VM %s", row.Phase)
				}
			})
		})
	}
}

// lateRows returns a list of rows late if a VM is being deleted: by then the list is out of date.
type lateRows struct{ fleet.Rows }

func (r lateRows) List(ctx context.Context) ([]vm.Row, error) {
	rows, err := r.Rows.List(ctx)
	if slices.ContainsFunc(rows, func(row vm.Row) bool { return row.Phase == vm.Deleting }) {
		time.Sleep(30 * time.Second)
	}
	return rows, err
}

// TestVMThatWasDeletedSinceItWasListedIsLeftAlone: the poller does not delete a VM a second time whose deletion ended
// between its list of rows and its turn.
func TestVMThatWasDeletedSinceItWasListedIsLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, s, st := inSlowShop(t, 20*time.Second, func(c *fleet.Config) { c.Rows = lateRows{c.Rows} })
		server := get(t, f, fleet.AcquireSpec{Task: shopTask})
		if err := f.Release(t.Context(), server.Name, fleet.ReasonDone); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if n := s.deletes.Load(); n != 1 {
			t.Errorf("got %d deletions, want 1", n)
		}
		if row := rowOf(t, st, server.Name); row.Phase != vm.Gone {
			t.Errorf("got VM %s, want it gone", row.Phase)
		}
	})
}

// TestDeletionsDoNotDelayNewVMs: a VM that comes up is reached as soon as usual while many others are being deleted,
// which takes long.
func TestDeletionsDoNotDelayNewVMs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f, s, st := inSlowShop(t, 19*time.Second, func(c *fleet.Config) { c.Caps = vm.Caps{VMs: 50, PerHour: 50} })
		var failed []string
		for i := range 12 {
			server := get(t, f, fleet.AcquireSpec{Task: state.TaskKey{Repo: 5, Issue: 100 + i}})
			failed = append(failed, server.Name)
		}
		for _, name := range failed {
			if _, _, err := st.VMs.Apply(t.Context(), name, vm.Event{Kind: vm.Fail, EndReason: fleet.ReasonVanished}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(6 * time.Second)
		if n := s.deletes.Load(); n < 1 || n > 4 {
			t.Errorf("got %d deletions were begun at once", n)
		}
		began := time.Now()
		get(t, f, fleet.AcquireSpec{Task: shopTask})
		if took := time.Since(began); took > s.boot+20*time.Second {
			t.Errorf("got a start time of %s", took)
		}
		time.Sleep(time.Minute)
		for _, name := range failed {
			if row := rowOf(t, st, name); row.Phase != vm.Gone {
				t.Errorf("VM %s: got phase %s", name, row.Phase)
			}
		}
	})
}

// brokenLists is a shop whose lists cannot be read while it is broken.
type brokenLists struct {
	*shop
	broken atomic.Bool
	asked  atomic.Int32
}

func (s *brokenLists) List(ctx context.Context) ([]fleet.VM, error) {
	if s.broken.Load() {
		s.asked.Add(1)
		return nil, errors.New("502 Bad Gateway")
	}
	return s.shop.List(ctx)
}

// Create says where the VM is, as a cloud does.
func (s *brokenLists) Create(ctx context.Context, spec fleet.Spec) (fleet.VM, error) {
	server, err := s.shop.Create(ctx, spec)
	server.Endpoint.Address = "192.0.2.1:22"
	return server, err
}

// bootContact reaches VMs from their boot on.
type bootContact struct{ after time.Duration }

func (bootContact) HostKey(row vm.Row) (string, error)          { return "first " + row.Name, nil }
func (bootContact) Sync(context.Context, remote.Endpoint) error { return nil }

func (c bootContact) Greet(ctx context.Context, row vm.Row, _ remote.Endpoint, pin func(context.Context, []string) error) ([]string, error) {
	if time.Since(row.CreatedAt) < c.after {
		return nil, remote.ErrUnreachable
	}
	return []string{"new"}, pin(ctx, []string{"new"})
}

// TestVMsAreDialedWhileTheProviderFails: VMs whose address is known come up although the provider's lists fail from
// their order on, also while an order that waits for capacity makes a list due at each tick; and the provider is not
// asked at each tick.
func TestVMsAreDialedWhileTheProviderFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := newStore(t, time.Now)
		s := &brokenLists{shop: newShop(&clock{})}
		s.now = time.Now
		f := fleet.New(s, fleet.Config{
			Deployment: "demo", Rows: st.VMs, Store: st, Contact: bootContact{10 * time.Minute}, BootWithin: time.Hour,
			Candidates: []fleet.Candidate{{Type: "small", Location: "here"}},
		})
		defer f.Close()
		s.answers["large/here"] = fleet.ErrUnknownOutcome
		ctx, cancel := context.WithCancel(t.Context())
		waits := make(chan error)
		go func() {
			_, err := f.Acquire(ctx, fleet.AcquireSpec{Task: otherTask, Candidates: []fleet.Candidate{{Type: "large", Location: "here"}}})
			waits <- err
		}()
		s.broken.Store(true)
		began := time.Now()
		within, done := context.WithTimeout(t.Context(), time.Hour)
		defer done()
		if _, err := f.Acquire(within, fleet.AcquireSpec{Task: shopTask}); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 10*time.Minute+10*time.Second {
			t.Errorf("got a start time of %s", took)
		}
		if n := s.asked.Load(); n > 20 {
			t.Errorf("got %d list requests in 10 minutes", n)
		}
		cancel()
		<-waits
	})
}

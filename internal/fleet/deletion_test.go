package fleet_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/state"
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
func inSlowShop(t *testing.T, takes time.Duration, change func(*fleet.Config)) (*fleet.Fleet, *slowShop, *state.Store) {
	t.Helper()
	s, store := &slowShop{shop: newShop(&clock{}), takes: takes}, newStore(t, time.Now)
	s.now = time.Now
	cfg := fleet.Config{Deployment: "demo", Store: store, Candidates: []fleet.Candidate{{Type: "small", Location: "here"}}}
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
	return f, s, store
}

// TestVMIsDeletedByOneCallerAtATime: the poller, which deletes whatever has ended, leaves alone a VM that a task is
// deleting at the moment, and a task waits for the poller.
func TestVMIsDeletedByOneCallerAtATime(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(f *fleet.Fleet, s *state.Store, vm string) error{
		"a release": func(f *fleet.Fleet, _ *state.Store, vm string) error {
			return f.Release(context.Background(), vm, fleet.ReasonDone)
		},
		"a release after the poller has begun": func(f *fleet.Fleet, s *state.Store, vm string) error {
			_, _, err := s.ApplyVM(context.Background(), vm, state.VMEvent{Kind: state.VMFail, Why: string(fleet.ReasonVanished)})
			time.Sleep(6 * time.Second)
			if err == nil {
				err = f.Release(context.Background(), vm, fleet.ReasonDone)
			}
			return err
		},
		"two releases at once": func(f *fleet.Fleet, _ *state.Store, vm string) error {
			other := make(chan error)
			go func() { other <- f.Release(context.Background(), vm, fleet.ReasonDone) }()
			err := f.Release(context.Background(), vm, fleet.ReasonDone)
			if otherErr := <-other; err == nil {
				err = otherErr
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f, s, store := inSlowShop(t, 20*time.Second, nil)
				vm := get(t, f, fleet.AcquireSpec{Task: shopTask})
				if err := end(f, store, vm.Name); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				if n := s.deletes.Load(); n != 1 {
					t.Errorf("deleted %d times", n)
				}
				if row := rowOf(t, store, vm.Name); row.Phase != state.VMGone {
					t.Errorf("the VM is %s", row.Phase)
				}
			})
		})
	}
}

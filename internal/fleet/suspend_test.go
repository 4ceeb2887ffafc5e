package fleet_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/vm"
)

// TestSnapshotAndRestore suspends a VM as an image and restores it to another one.
func TestSnapshotAndRestore(t *testing.T) {
	t.Parallel()
	f, s, _, store := newShopFleet(t, nil)
	server := get(t, f, fleet.AcquireSpec{Task: shopTask})
	img, err := f.Snapshot(t.Context(), server.Name)
	if err != nil {
		t.Fatal(err)
	}
	ref := img.ID
	if img.StoredMB == 0 {
		t.Error("got an image without a size")
	}
	if again, err := f.Snapshot(t.Context(), server.Name); err != nil || again.ID != ref || again.StoredMB != img.StoredMB || len(s.images) != 1 {
		t.Errorf("second snapshot: got %+v, error %v", again, err)
	}
	if err := f.Release(t.Context(), server.Name, fleet.ReasonAsleep); err != nil {
		t.Fatal(err)
	}
	if row := rowOf(t, store, server.Name); row.Phase != vm.Asleep || row.EndedAt.IsZero() || len(s.vms) != 0 || len(s.images) != 1 {
		t.Errorf("suspended: got %+v, %d VMs and %d images", row, len(s.vms), len(s.images))
	}
	next := get(t, f, fleet.AcquireSpec{Task: shopTask, Gen: 2, Image: ref, FromSleep: server.Name, FromImage: true})
	if row := rowOf(t, store, next.Name); row.Phase != vm.Waking || row.Kind != "large" || row.Location != "there" {
		t.Errorf("restored: got %+v", row) // with a large enough disk, at the image's location
	}
	for range 2 {
		if err := f.ForgetImage(t.Context(), ref); err != nil {
			t.Fatal(err)
		}
	}
	if row := rowOf(t, store, server.Name); row.Phase != vm.Gone || len(s.images) != 0 {
		t.Errorf("at the end: got %s with %d images", row.Phase, len(s.images))
	}
	if _, err := f.Acquire(t.Context(), fleet.AcquireSpec{Task: otherTask, Image: ref, FromImage: true}); !errors.Is(err, fleet.ErrNotFound) {
		t.Errorf("restoring from nothing: got error %v", err)
	}
}

// TestSuspensionFailsIfTheImageIsNeverReady: a VM is turned on again if its image does not become available.
func TestSuspensionFailsIfTheImageIsNeverReady(t *testing.T) {
	t.Parallel()
	f, s, c, store := newShopFleet(t, nil)
	server := get(t, f, fleet.AcquireSpec{Task: shopTask})
	began := c.now()
	s.images["image-of-"+server.Name] = fleet.Image{ID: "image-of-" + server.Name, CreatedAt: began.Add(1000 * time.Hour)}
	if _, err := f.Snapshot(t.Context(), server.Name); !errors.Is(err, fleet.ErrInvalid) {
		t.Errorf("got error %v", err)
	}
	if took := c.now().Sub(began); took > 2*time.Hour {
		t.Errorf("got a duration of %s", took)
	}
	if row := rowOf(t, store, server.Name); row.Phase != vm.Parked || len(s.images) != 0 || s.off[server.Name] {
		t.Errorf("got row %s, %d images, off: %v", row.Phase, len(s.images), s.off[server.Name])
	}
}

// TestVMIsUsableAfterAFailedSnapshot: a VM is usable again after the creation of its image has failed.
func TestVMIsUsableAfterAFailedSnapshot(t *testing.T) {
	t.Parallel()
	f, s, _, store := newShopFleet(t, nil)
	server := get(t, f, fleet.AcquireSpec{Task: shopTask})
	s.images["image-of-"+server.Name] = fleet.Image{ID: "image-of-" + server.Name, Failed: true}
	if _, err := f.Snapshot(t.Context(), server.Name); !errors.Is(err, fleet.ErrInvalid) {
		t.Errorf("got error %v", err)
	}
	if row := rowOf(t, store, server.Name); row.Phase != vm.Parked || len(s.images) != 0 || s.off[server.Name] {
		t.Errorf("got row %s, %d images, off: %v", row.Phase, len(s.images), s.off[server.Name])
	}
	if err := s.PowerOff(t.Context(), server.Name); err != nil { // errand was killed before it was on again
		t.Fatal(err)
	}
	f.Close()
	if again := get(t, f, fleet.AcquireSpec{Task: shopTask}); again.Name != server.Name || again.State != fleet.StateRunning {
		t.Errorf("then got %+v", again)
	}
}

func TestStandbyVMIsReused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		after time.Duration
		spec  fleet.AcquireSpec
		opens bool // the first boot on the default image needs an open network
		want  string
	}{
		"the same repository":  {10 * time.Minute, fleet.AcquireSpec{Task: otherTask}, false, "small/here rebuild"},
		"another repository":   {10 * time.Minute, fleet.AcquireSpec{Task: state.TaskKey{Repo: 6, Issue: 1}}, false, "small/here small/here"},
		"it needs a large one": {10 * time.Minute, fleet.AcquireSpec{Task: otherTask, Needs: fleet.Needs{VCPU: 8}}, false, "small/here large/here"},
		"too late":             {50 * time.Minute, fleet.AcquireSpec{Task: otherTask}, false, "small/here small/here"},
		"its network is shut":  {10 * time.Minute, fleet.AcquireSpec{Task: otherTask}, true, "small/here small/here"},
		"a baked image":        {10 * time.Minute, fleet.AcquireSpec{Task: otherTask, Image: "baked"}, true, "small/here rebuild"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, s, c, store := newShopFleet(t, func(c *fleet.Config) { c.Pool.Reuse = true })
			s.opens = test.opens
			first := get(t, f, fleet.AcquireSpec{Task: shopTask})
			c.pass(test.after)
			if err := f.Release(t.Context(), first.Name, fleet.ReasonDone); err != nil {
				t.Fatal(err)
			}
			second := get(t, f, test.spec)
			if got := s.ordered(); got != test.want && got != test.want+" "+first.Name {
				t.Errorf("ordered %q, want %q", got, test.want)
			}
			if row := rowOf(t, store, second.Name); row.Phase != vm.Ready || row.Task != test.spec.Task {
				t.Errorf("got row %+v", row)
			}
			ctx, stop := c.until(t, c.now().Add(70*time.Minute))
			defer stop()
			if err := f.Run(ctx); err != nil { // deletes the remains of the first VM, and standby VMs whose time is over
				t.Error(err)
			}
			if row := rowOf(t, store, first.Name); row.Phase != vm.Gone || row.EndReason != fleet.ReasonDone {
				t.Errorf("got first row %s, %s", row.Phase, row.EndReason)
			}
		})
	}
}

// TestStandbyVMGivesWayToAnOrder: a standby VM is deleted if an order needs its place.
func TestStandbyVMGivesWayToAnOrder(t *testing.T) {
	t.Parallel()
	f, s, _, _ := newShopFleet(t, func(c *fleet.Config) { c.Pool.Reuse, c.Caps.VMs = true, 1 })
	first := get(t, f, fleet.AcquireSpec{Task: shopTask})
	if err := f.Release(t.Context(), first.Name, fleet.ReasonDone); err != nil || len(s.vms) != 1 {
		t.Fatalf("got %d VMs, error %v", len(s.vms), err)
	}
	get(t, f, fleet.AcquireSpec{Task: state.TaskKey{Repo: 6, Issue: 1}})
	if len(s.vms) != 1 || s.reasons[first.Name] != fleet.ReasonDone {
		t.Errorf("got %d VMs, the first ended as %q", len(s.vms), s.reasons[first.Name])
	}
}

func TestInsurance(t *testing.T) {
	t.Parallel()
	f, s, c, store := newShopFleet(t, func(c *fleet.Config) { c.Pool.Insurance, c.Caps.PerTask = 1, 2*time.Hour })
	first := get(t, f, fleet.AcquireSpec{Task: shopTask})
	c.pass(time.Minute)
	second := get(t, f, fleet.AcquireSpec{Task: otherTask})
	for _, name := range []string{first.Name, second.Name} {
		if _, _, err := store.VMs.Apply(t.Context(), name, vm.Event{Kind: vm.Rest}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(what, name string, want bool) {
		t.Helper()
		if got, err := f.Outlives(t.Context(), name); err != nil || got != want {
			t.Errorf("%s: %v, %v", what, got, err)
		}
	}
	want("capacity is there", first.Name, false)
	s.answers["small/here"] = fleet.ErrNoCapacity
	get(t, f, fleet.AcquireSpec{Task: state.TaskKey{Repo: 6, Issue: 1}})
	want("the oldest", first.Name, true)
	want("one more than insured", second.Name, false)
	c.pass(time.Hour)
	want("its hours are used up", first.Name, false)
	c.pass(24 * time.Hour)
	want("it was long ago", first.Name, false)
}

// moreHours is a store whose tasks were given more VM hours, except for those that do not exist.
type moreHours struct {
	fleet.Store
	hours   int
	missing state.TaskKey
}

func (s moreHours) Task(_ context.Context, key state.TaskKey) (*state.Task, error) {
	if key == s.missing {
		return nil, nil
	}
	return &state.Task{Key: key, TaskOrders: state.TaskOrders{MoreVMHours: s.hours}}, nil
}

// TestHoursOfATaskCanBeRaised: a task that people gave more VM hours may use them for its VM's next hours and for its
// next VM; other tasks may not.
func TestHoursOfATaskCanBeRaised(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		task  state.TaskKey
		hours int
		want  bool
	}{
		"no more":        {shopTask, 0, false},
		"one more":       {shopTask, 1, true},
		"another task's": {otherTask, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, _, c, _ := newShopFleet(t, func(c *fleet.Config) {
				c.Caps.PerTask, c.Store = time.Hour, moreHours{c.Store, test.hours, otherTask}
			})
			first := get(t, f, fleet.AcquireSpec{Task: test.task, Owner: "a"})
			c.pass(50 * time.Minute)
			if err := f.SpanAllowed(t.Context(), first.Name); (err == nil) != test.want {
				t.Errorf("another hour: got %v, want it allowed: %v", err, test.want)
			}
			_, err := f.Acquire(t.Context(), fleet.AcquireSpec{Task: test.task, Owner: "b"})
			var limit *vm.LimitError
			if errors.As(err, &limit) == test.want || test.want && err != nil || !test.want && limit.Limit != vm.LimitVMHours {
				t.Errorf("another VM: got %v, want it allowed: %v", err, test.want)
			}
		})
	}
}

func TestMarginCoversCheckAndImage(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ paid, tick, image, want time.Duration }{
		"an hour":         {time.Hour, 5 * time.Second, 0, 3*time.Minute + 5*time.Second},
		"with an image":   {time.Hour, 5 * time.Second, 10 * time.Minute, 13*time.Minute + 5*time.Second},
		"a slow image":    {time.Hour, 5 * time.Second, time.Hour, 30 * time.Minute},
		"a demo's period": {20 * time.Second, time.Second, 0, 5 * time.Second},
	}
	for name, test := range tests {
		if got := fleet.Margin(test.paid, test.tick, test.image); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestInsuredVMIsSuspendedBeforeItsMaximumAge: a VM that is kept beyond its paid hour is suspended half a day before it
// is deleted for its age.
func TestInsuredVMIsSuspendedBeforeItsMaximumAge(t *testing.T) {
	t.Parallel()
	f, s, c, store := newShopFleet(t, func(c *fleet.Config) { c.Pool.Insurance, c.MaxAge = 1, 30*time.Hour })
	server := get(t, f, fleet.AcquireSpec{Task: shopTask})
	if _, _, err := store.VMs.Apply(t.Context(), server.Name, vm.Event{Kind: vm.Rest}); err != nil {
		t.Fatal(err)
	}
	s.answers["small/here"] = fleet.ErrNoCapacity
	get(t, f, fleet.AcquireSpec{Task: state.TaskKey{Repo: 6, Issue: 1}})
	for _, step := range []struct {
		after time.Duration
		want  bool
	}{{22 * time.Hour, true}, {30 * time.Minute, false}, {time.Hour, false}} {
		c.pass(step.after)
		if got, err := f.Outlives(t.Context(), server.Name); err != nil || got != step.want {
			t.Errorf("after %s more: %v, %v", step.after, got, err)
		}
	}
}

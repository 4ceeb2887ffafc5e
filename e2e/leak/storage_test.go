package leak_test

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
)

// suspendTask plays one task until its VM's disk is saved as an image.
func (w *world) suspendTask(key state.TaskKey) *state.Task {
	w.t.Helper()
	task := &state.Task{Key: key, TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing}}
	w.store.tasks[key] = task
	w.launch(w.contextFor(time.Hour), task)
	if task.VM == nil {
		w.t.Fatal("the task has no VM")
	}
	w.sleeps(w.contextFor(time.Hour), task)
	if task.Suspended == nil {
		w.t.Fatal("the task is not suspended")
	}
	return task
}

// TestStorageIsOnTheBill: the booked cost of images is at least the cloud's charge, and at most an hour of each image
// more, because an image is counted from the start of its creation. The cost stays on the bill after the image is
// deleted and after restarts.
func TestStorageIsOnTheBill(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, chances{})
	w.start()
	first := w.suspendTask(state.TaskKey{Repo: 1, Issue: 1})
	w.suspendTask(state.TaskKey{Repo: 1, Issue: 2})
	check := func(what string) {
		t.Helper()
		_, month, err := w.store.VMs.Spent(t.Context(), w.clock.Now())
		if err != nil {
			t.Fatal(err)
		}
		var charged, hours, more int64
		for _, l := range w.sim.Bill().Lines {
			if l.Kind == "image" {
				charged, hours, more = charged+l.Micro, hours+l.Periods, more+l.Micro/l.Periods+1
			}
		}
		if hours == 0 || month.Images < charged || month.Images > charged+hours+more || month.Images >= month.Micro {
			t.Errorf("%s: images cost %d of %d on errand's bill, %d on the cloud's", what, month.Images, month.Micro, charged)
		}
	}
	for _, d := range []time.Duration{time.Minute, 59 * time.Minute, 30 * time.Hour} {
		if err := w.fleet.Run(w.contextFor(d)); err != nil {
			t.Fatal(err)
		}
		check("after " + d.String())
	}
	w.start()
	if err := w.fleet.Run(w.contextFor(time.Hour)); err != nil {
		t.Fatal(err)
	}
	check("after a restart")
	w.launch(w.contextFor(time.Hour), first) // is restored, and its image is deleted
	if first.VM == nil || first.Suspended != nil {
		t.Fatalf("the task was not restored: %+v", first)
	}
	if err := w.fleet.Run(w.contextFor(10 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	check("after one is deleted")
}

// TestShortStorageIsOnTheBill: an image is billed even if no pass of the reapers has ever listed it.
func TestShortStorageIsOnTheBill(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, chances{})
	w.start()
	task := w.suspendTask(state.TaskKey{Repo: 1, Issue: 1})
	w.launch(w.contextFor(time.Hour), task)
	if n := len(w.sim.Objects("image")); n != 0 || task.VM == nil {
		t.Fatalf("%d images, VM %+v", n, task.VM)
	}
	day, _, err := w.store.VMs.Spent(t.Context(), w.clock.Now())
	if err != nil || day.Images <= 0 || day.Images < w.sim.Bill().Of("image") {
		t.Errorf("errand's bill has %+v, the cloud's %d, %v", day, w.sim.Bill().Of("image"), err)
	}
}

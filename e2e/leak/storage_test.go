package leak_test

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
)

// asleep plays one task until its VM's disk is an image.
func (w *world) asleep(key state.TaskKey) *state.Task {
	w.t.Helper()
	task := &state.Task{Key: key, TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing}}
	w.store.tasks[key] = task
	w.launch(w.within(time.Hour), task)
	if task.VM == nil {
		w.t.Fatal("the task has no VM")
	}
	w.sleeps(w.within(time.Hour), task)
	if task.Asleep == nil {
		w.t.Fatal("the task is not asleep")
	}
	return task
}

// TestStorageIsOnTheBill wants what the images cost to be what the cloud charges: no less, and at most an hour of each
// more, since an image is counted from when it was begun. It stays on the bill when the image is gone, and over restarts.
func TestStorageIsOnTheBill(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, chances{})
	w.start()
	first := w.asleep(state.TaskKey{Repo: 1, Issue: 1})
	w.asleep(state.TaskKey{Repo: 1, Issue: 2})
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
			t.Errorf("%s: images are %d of %d on our bill, %d on the cloud's", what, month.Images, month.Micro, charged)
		}
	}
	for _, d := range []time.Duration{time.Minute, 59 * time.Minute, 30 * time.Hour} {
		if err := w.fleet.Run(w.within(d)); err != nil {
			t.Fatal(err)
		}
		check("after " + d.String())
	}
	w.start()
	if err := w.fleet.Run(w.within(time.Hour)); err != nil {
		t.Fatal(err)
	}
	check("after a restart")
	w.launch(w.within(time.Hour), first) // wakes, and its image is deleted
	if first.VM == nil || first.Asleep != nil {
		t.Fatalf("the task has not woken: %+v", first)
	}
	if err := w.fleet.Run(w.within(10 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	check("when one is gone")
}

// TestShortStorageIsOnTheBill wants an image to be counted that no pass of the reapers has ever listed.
func TestShortStorageIsOnTheBill(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, chances{})
	w.start()
	task := w.asleep(state.TaskKey{Repo: 1, Issue: 1})
	w.launch(w.within(time.Hour), task)
	if n := len(w.sim.Objects("image")); n != 0 || task.VM == nil {
		t.Fatalf("%d images, VM %+v", n, task.VM)
	}
	day, _, err := w.store.VMs.Spent(t.Context(), w.clock.Now())
	if err != nil || day.Images <= 0 || day.Images < w.sim.Bill().Of("image") {
		t.Errorf("our bill says %+v, the cloud's %d, %v", day, w.sim.Bill().Of("image"), err)
	}
}

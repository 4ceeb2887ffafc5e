package leak_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/sim/simhetzner"
)

// TestStaleSnapshotIsNotAdopted: an image of an earlier suspension, whose creation got no answer, is not mistaken for
// the image of the next suspension.
func TestStaleSnapshotIsNotAdopted(t *testing.T) {
	t.Parallel()
	for name, lie := range map[string]simhetzner.Fault{
		"answer lost":                     {Status: http.StatusBadGateway, After: true},
		"late":                            {Status: http.StatusBadGateway, Late: 10 * time.Second},
		"answer lost, next order as well": {Status: http.StatusBadGateway, After: true, Nth: -1}, // which has no effect
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, task, _ := newTruthfulWorld(t)
			w.rest(w.process, task)
			lie.Method, lie.Path, lie.Count = http.MethodPost, "/actions/create_image$", 1
			w.lie(lie)
			if ref, err := w.fleet.Snapshot(w.contextFor(time.Hour), task.VM.Name); err == nil {
				t.Fatalf("suspended as %s", ref.ID)
			}
			w.clock.Advance(10 * time.Minute)
			vm := task.VM.Name
			w.launch(w.contextFor(time.Hour), task) // it is needed again: it continues on its VM
			if task.VM.Name != vm {
				t.Fatalf("VM was %s, now %s", vm, task.VM.Name)
			}
			w.clock.Advance(10 * time.Minute)
			worked := w.clock.Now()
			if lie.Nth < 0 {
				w.lie(simhetzner.Fault{Method: http.MethodPost, Path: "/actions/create_image$", Status: http.StatusBadGateway, Count: 1})
				w.sleeps(w.contextFor(time.Hour), task)
			}
			w.sleeps(w.contextFor(time.Hour), task)
			if task.Suspended == nil {
				t.Fatal("the task is not suspended")
			}
			for _, o := range w.sim.Objects("image") {
				if fmt.Sprint(o.ID) == task.Suspended.Ref && o.Created.Before(worked) {
					t.Errorf("suspended as an image of %s, but its last work was at %s", o.Created, worked)
				}
			}
			w.runs(2 * time.Hour)
			if images := w.sim.Objects("image"); len(images) != 1 || fmt.Sprint(images[0].ID) != task.Suspended.Ref {
				t.Errorf("images %+v; suspended as %s", images, task.Suspended.Ref)
			}
		})
	}
}

package leak_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
	"github.com/errand-bot/errand/state"
)

// TestTwinIsNobodys: a server that came late, with the name of one that a row has, is deleted and never used.
func TestTwinIsNobodys(t *testing.T) {
	t.Parallel()
	for name, lie := range map[string]simhetzner.Fault{
		"both are listed":         {},
		"only the twin is listed": {Method: http.MethodGet, Path: "^/servers$", For: time.Hour}, // and hides the other
		"volumes are not listed":  {Method: http.MethodGet, Path: "^/volumes$", Status: 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, task, server := truthful(t)
			twin := w.sim.Twin(server.ID)
			w.clock.Advance(2 * time.Minute)
			if lie.Path == "^/servers$" {
				lie.Hide = fmt.Sprintf("^%d ", server.ID)
			}
			if lie.Path != "" {
				w.lie(lie)
			}
			for range 2 { // the second time after a list, of which something is remembered
				if vm, err := w.fleet.Get(w.process, task.VM.Name); err != nil || vm.ID != fmt.Sprint(server.ID) {
					t.Errorf("it is %+v, %v", vm, err)
				}
				if _, err := w.fleet.List(w.process); err != nil {
					t.Fatal(err)
				}
			}
			w.runs(10 * time.Minute)
			if row := w.row(task.VM.Name); row.Phase.Over() || row.ID != fmt.Sprint(server.ID) {
				t.Errorf("the row is %+v", row)
			}
			w.rest(w.process, task)
			img, err := w.fleet.Snapshot(w.within(time.Hour), task.VM.Name)
			if err != nil {
				t.Fatal(err)
			}
			if images := w.sim.Objects("image"); len(images) != 1 || images[0].Server != server.ID || fmt.Sprint(images[0].ID) != img.ID {
				t.Errorf("images: %+v", images)
			}
			if o, _ := w.server(twin); o.Status != "running" {
				t.Errorf("the twin is %q", o.Status)
			}
			w.sleeps(w.within(time.Hour), task)
			w.runs(time.Hour)
			if all := w.sim.Objects("server"); len(all) != 0 {
				t.Errorf("left are %+v", all)
			}
			if images := w.sim.Objects("image"); len(images) != 1 {
				t.Errorf("images: %+v", images)
			}
		})
	}
}

// TestTwinWhileItComesUp: the twin of a VM that is on its way up does not end its row, and goes.
func TestTwinWhileItComesUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, chances{})
	w.start()
	defer w.fleet.Close()
	twin := int64(0)
	w.greet = func(remote.Endpoint) {
		if twin == 0 {
			twin = w.sim.Twin(w.sim.Objects("server")[0].ID)
		}
	}
	key := state.TaskKey{Repo: 1, Issue: 1}
	task := &state.Task{Key: key, TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing}}
	w.store.tasks[key] = task
	w.launch(w.within(time.Hour), task)
	if task.VM == nil || task.VM.Gen != 1 || twin == 0 {
		t.Fatalf("the task has %+v, the twin is %d", task.VM, twin)
	}
	w.runs(time.Hour)
	if all := w.sim.Objects("server"); len(all) != 1 || all[0].ID == twin {
		t.Errorf("left are %+v, the twin is %d", all, twin)
	}
}

// TestTwinIsNotGreeted: while only the twin is listed, it is not taken for the VM that comes up.
func TestTwinIsNotGreeted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, chances{})
	w.start()
	defer w.fleet.Close()
	key := state.TaskKey{Repo: 1, Issue: 1}
	task := &state.Task{Key: key, TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing}}
	w.store.tasks[key] = task
	w.launch(w.within(time.Second), task) // it is made, and not up
	servers := w.sim.Objects("server")
	if len(servers) != 1 || task.VM != nil {
		t.Fatalf("there are %+v, the task has %+v", servers, task.VM)
	}
	w.greet = func(e remote.Endpoint) {
		if want := servers[0].IP + ":22"; e.Address != want {
			t.Errorf("%s is greeted instead of %s", e.Address, want)
		}
	}
	w.sim.Twin(servers[0].ID)
	w.clock.Advance(time.Minute)
	w.lie(simhetzner.Fault{Method: http.MethodGet, Path: "^/servers$", Hide: fmt.Sprintf("^%d ", servers[0].ID), For: time.Minute})
	w.launch(w.within(time.Hour), task)
	if task.VM == nil || w.row(task.VM.Name).ID != fmt.Sprint(servers[0].ID) {
		t.Errorf("the task has %+v", task.VM)
	}
}

// TestSpareIsNotDeletedBeforeItsHeirHasIt: a spare VM stays while the row that takes it over has not got it yet.
func TestSpareIsNotDeletedBeforeItsHeirHasIt(t *testing.T) {
	t.Parallel()
	w, task, server := truthful(t)
	w.end(w.process, task) // it is kept for the next task of the repository
	w.lie(simhetzner.Fault{Method: http.MethodPut, Path: "^/servers/", Status: 500, For: 3 * time.Minute})
	heir := &state.Task{Key: state.TaskKey{Repo: task.Key.Repo, Issue: 2}, TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing}}
	w.store.tasks[heir.Key] = heir
	w.launch(w.within(time.Minute), heir)
	w.runs(5 * time.Minute)
	w.launch(w.within(time.Hour), heir)
	if heir.VM == nil || w.row(heir.VM.Name).ID != fmt.Sprint(server.ID) {
		t.Errorf("the heir has %+v, the spare VM was server %d", heir.VM, server.ID)
	}
}

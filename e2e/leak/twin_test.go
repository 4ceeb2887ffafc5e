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

// TestTwinIsDeleted: a late second server with the name of a row's server is deleted and never used.
func TestTwinIsDeleted(t *testing.T) {
	t.Parallel()
	for name, lie := range map[string]simhetzner.Fault{
		"both are listed":         {},
		"only the twin is listed": {Method: http.MethodGet, Path: "^/servers$", For: time.Hour}, // and hides the other
		"volumes are not listed":  {Method: http.MethodGet, Path: "^/volumes$", Status: 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, task, server := newTruthfulWorld(t)
			twin := w.sim.Twin(server.ID)
			w.clock.Advance(2 * time.Minute)
			if lie.Path == "^/servers$" {
				lie.Hide = fmt.Sprintf("^%d ", server.ID)
			}
			if lie.Path != "" {
				w.lie(lie)
			}
			for range 2 { // the second time with the result of a list in the cache
				if vm, err := w.fleet.Get(w.process, task.VM.Name); err != nil || vm.ID != fmt.Sprint(server.ID) {
					t.Errorf("got %+v, %v", vm, err)
				}
				if _, err := w.fleet.List(w.process); err != nil {
					t.Fatal(err)
				}
			}
			w.runs(10 * time.Minute)
			if row := w.row(task.VM.Name); row.Phase.Over() || row.ID != fmt.Sprint(server.ID) {
				t.Errorf("unexpected row %+v", row)
			}
			w.rest(w.process, task)
			img, err := w.fleet.Snapshot(w.contextFor(time.Hour), task.VM.Name)
			if err != nil {
				t.Fatal(err)
			}
			if images := w.sim.Objects("image"); len(images) != 1 || images[0].Server != server.ID || fmt.Sprint(images[0].ID) != img.ID {
				t.Errorf("got images %+v", images)
			}
			if o, _ := w.server(twin); o.Status != "running" {
				t.Errorf("unexpected state of the twin: %q", o.Status)
			}
			w.sleeps(w.contextFor(time.Hour), task)
			w.runs(time.Hour)
			if all := w.sim.Objects("server"); len(all) != 0 {
				t.Errorf("remaining servers: %+v", all)
			}
			if images := w.sim.Objects("image"); len(images) != 1 {
				t.Errorf("got images %+v", images)
			}
		})
	}
}

// TestTwinDuringCreation: the twin of a VM being created does not end the VM's row, and is deleted.
func TestTwinDuringCreation(t *testing.T) {
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
	w.launch(w.contextFor(time.Hour), task)
	if task.VM == nil || task.VM.Gen != 1 || twin == 0 {
		t.Fatalf("the task's VM is %+v, the twin is %d", task.VM, twin)
	}
	w.runs(time.Hour)
	if all := w.sim.Objects("server"); len(all) != 1 || all[0].ID == twin {
		t.Errorf("remaining servers: %+v, the twin is %d", all, twin)
	}
}

// TestTwinIsNotContacted: while only the twin is listed, it is not mistaken for the VM being created.
func TestTwinIsNotContacted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, chances{})
	w.start()
	defer w.fleet.Close()
	key := state.TaskKey{Repo: 1, Issue: 1}
	task := &state.Task{Key: key, TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing}}
	w.store.tasks[key] = task
	w.launch(w.contextFor(time.Second), task) // created, not yet running
	servers := w.sim.Objects("server")
	if len(servers) != 1 || task.VM != nil {
		t.Fatalf("servers %+v, task's VM %+v", servers, task.VM)
	}
	w.greet = func(e remote.Endpoint) {
		if want := servers[0].IP + ":22"; e.Address != want {
			t.Errorf("first contact with %s, want %s", e.Address, want)
		}
	}
	w.sim.Twin(servers[0].ID)
	w.clock.Advance(time.Minute)
	w.lie(simhetzner.Fault{Method: http.MethodGet, Path: "^/servers$", Hide: fmt.Sprintf("^%d ", servers[0].ID), For: time.Minute})
	w.launch(w.contextFor(time.Hour), task)
	if task.VM == nil || w.row(task.VM.Name).ID != fmt.Sprint(servers[0].ID) {
		t.Errorf("unexpected VM of the task: %+v", task.VM)
	}
}

// TestStandbyVMIsKeptUntilItsSuccessorHasIt: a standby VM is not deleted before the row that takes it over owns it.
func TestStandbyVMIsKeptUntilItsSuccessorHasIt(t *testing.T) {
	t.Parallel()
	w, task, server := newTruthfulWorld(t)
	w.end(w.process, task) // becomes a standby VM for the next task of the repository
	w.lie(simhetzner.Fault{Method: http.MethodPut, Path: "^/servers/", Status: 500, For: 3 * time.Minute})
	successor := &state.Task{Key: state.TaskKey{Repo: task.Key.Repo, Issue: 2}, TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing}}
	w.store.tasks[successor.Key] = successor
	w.launch(w.contextFor(time.Minute), successor)
	w.runs(5 * time.Minute)
	w.launch(w.contextFor(time.Hour), successor)
	if successor.VM == nil || w.row(successor.VM.Name).ID != fmt.Sprint(server.ID) {
		t.Errorf("the successor has %+v, want the standby VM, server %d", successor.VM, server.ID)
	}
}

package leak_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/vm"
)

// newTruthfulWorld returns a world without random failures, with one task whose VM is in use.
func newTruthfulWorld(t *testing.T) (*world, *state.Task, simhetzner.Object) {
	t.Helper()
	w := newWorld(t, 1, chances{})
	w.start()
	t.Cleanup(func() {
		w.fleet.Close()
		for _, wrong := range w.wrongs {
			t.Error(wrong)
		}
	})
	key := state.TaskKey{Repo: 1, Issue: 1}
	task := &state.Task{Key: key, TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing}}
	w.store.tasks[key] = task
	w.launch(w.contextFor(time.Hour), task)
	if task.VM == nil {
		t.Fatal("the task has no VM")
	}
	return w, task, w.sim.Objects("server")[0]
}

func (w *world) lie(f simhetzner.Fault) {
	w.t.Helper()
	if err := w.sim.Fault(f); err != nil {
		w.t.Fatal(err)
	}
}

// runs runs the fleet's background work for a while.
func (w *world) runs(d time.Duration) { _ = w.fleet.Run(w.contextFor(d)) }

func (w *world) row(name string) vm.Row {
	w.t.Helper()
	row, err := w.store.VMs.Get(w.process, name)
	if err != nil {
		w.t.Fatal(err)
	}
	return row
}

// server finds a server by its id.
func (w *world) server(id int64) (simhetzner.Object, bool) {
	for _, o := range w.sim.Objects("server") {
		if o.ID == id {
			return o, true
		}
	}
	return simhetzner.Object{}, false
}

// TestDeletionIsConfirmed: a server counts as gone, and its bill is closed, only when the provider no longer finds its
// ID, whatever the provider answered to the deletion.
func TestDeletionIsConfirmed(t *testing.T) {
	t.Parallel()
	for name, lie := range map[string]simhetzner.Fault{
		"not found":                              {Method: http.MethodDelete, Path: "^/servers/", Code: "not_found", Count: 3},
		"action fails":                           {Method: http.MethodDelete, Path: "^/servers/", ActionCode: "action_failed", Count: 3},
		"action fails at once":                   {Method: http.MethodDelete, Path: "^/servers/", ActionCode: "action_failed", Claim: "error", Count: 3},
		"action succeeds at once, then fails":    {Method: http.MethodDelete, Path: "^/servers/", ActionCode: "action_failed", Claim: "success", Count: 3},
		"action succeeds at once, but continues": {Method: http.MethodDelete, Path: "^/servers/", Slow: 2 * time.Minute, Claim: "success", Count: 1},
		"missing in lists by name":               {Method: http.MethodGet, Path: "^/servers$", Query: "name=", Hide: ".", Count: 3},
		"not found once by ID":                   {Method: http.MethodGet, Path: "^/servers/[0-9]+$", Code: "not_found", Count: 1},
		"missing in lists by label":              {Method: http.MethodGet, Path: "^/servers$", Hide: ".", Count: 3},
	} {
		for how, leave := range map[string]func(*world, *state.Task){
			"asleep": func(w *world, task *state.Task) { w.sleeps(w.contextFor(time.Hour), task) },
			"done":   func(w *world, task *state.Task) { w.end(w.contextFor(time.Hour), task) },
		} {
			t.Run(how+", "+name, func(t *testing.T) {
				t.Parallel()
				w, task, server := newTruthfulWorld(t)
				w.reuse = false
				w.start()
				vm := task.VM.Name
				if how == "asleep" { // so that the false answer concerns the deletion
					w.rest(w.process, task)
					if _, err := w.fleet.Snapshot(w.contextFor(time.Hour), vm); err != nil {
						t.Fatal(err)
					}
				}
				w.lie(lie)
				leave(w, task)
				if _, there := w.server(server.ID); there && !w.row(vm).EndedAt.IsZero() {
					t.Errorf("the server exists, but its row's bill is closed: %+v", w.row(vm))
				}
				for range 20 {
					w.runs(time.Minute)
					if _, there := w.server(server.ID); there && !w.row(vm).EndedAt.IsZero() {
						t.Fatalf("the server exists, but its row's bill is closed: %+v", w.row(vm))
					}
				}
				if o, there := w.server(server.ID); there {
					t.Errorf("the server still exists after 20 minutes: %+v", o)
				}
				if row := w.row(vm); row.EndedAt.IsZero() {
					t.Errorf("the bill is still open: %+v", row)
				}
			})
		}
	}
}

// TestLossNeedsTwoAnswers: one answer does not make errand give up a running VM, but it does give up a VM that is
// really gone.
func TestLossNeedsTwoAnswers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lies []simhetzner.Fault
		gone bool
	}{
		"missing by name":             {lies: []simhetzner.Fault{{Path: "^/servers$", Query: "name=", Hide: ".", Count: 1}}},
		"missing by name forever":     {lies: []simhetzner.Fault{{Path: "^/servers$", Query: "name=", Hide: "."}}},
		"missing in lists":            {lies: []simhetzner.Fault{{Path: "^/servers$", Hide: "."}}},
		"missing by ID":               {lies: []simhetzner.Fault{{Path: "^/servers/[0-9]+$", Code: "not_found", Count: 1}}},
		"missing by ID and in a list": {lies: []simhetzner.Fault{{Path: "^/servers$", Hide: ".", Count: 1}, {Path: "^/servers/[0-9]+$", Code: "not_found", Count: 1}}},
		"reported as off":             {lies: []simhetzner.Fault{{Path: "^/servers", Claim: "off", For: 30 * time.Second}}},
		"reported as being deleted":   {lies: []simhetzner.Fault{{Path: "^/servers", Claim: "deleting", For: 30 * time.Second}}},
		"missing for half a minute":   {lies: []simhetzner.Fault{{Path: "^/servers$", Hide: ".", For: 30 * time.Second}, {Path: "^/servers/[0-9]+$", Code: "not_found", For: 30 * time.Second}}},
		"gone":                        {gone: true},
	} {
		for when, busy := range map[string]bool{"busy": true, "parked": false} {
			t.Run(when+", "+name, func(t *testing.T) {
				t.Parallel()
				w, task, server := newTruthfulWorld(t)
				if !busy {
					w.rest(w.process, task)
				}
				w.clock.Advance(20 * time.Minute) // the cache is old
				for _, lie := range test.lies {
					lie.Method = http.MethodGet
					w.lie(lie)
				}
				if test.gone {
					w.sim.Vanish(server.ID)
				}
				vm := task.VM.Name
				if got, err := w.fleet.Get(w.process, vm); fleetSaysGone(got, err) {
					t.Errorf("first check: got %+v, %v", got, err)
				}
				w.runs(12 * time.Minute) // for two passes of the reapers
				if got := w.row(vm).Phase.Over(); got != test.gone {
					t.Errorf("unexpected row: %+v", w.row(vm))
				}
				w.launch(w.contextFor(time.Hour), task)
				if got := task.VM.Name != vm; got != test.gone {
					t.Errorf("VM was %s, now %s", vm, task.VM.Name)
				}
				if _, there := w.server(server.ID); there == test.gone {
					t.Errorf("the server exists: %v", there)
				}
			})
		}
	}
}

// TestAcquireConfirmsLoss: acquiring a task's VM waits until it is certain whether the VM is gone.
func TestAcquireConfirmsLoss(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]bool{"missed once": false, "gone": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, task, server := newTruthfulWorld(t)
			w.clock.Advance(2 * time.Minute)
			if gone {
				w.sim.Vanish(server.ID)
			} else {
				w.lie(simhetzner.Fault{Method: http.MethodGet, Path: "^/servers/[0-9]+$", Code: "not_found", Count: 1})
				w.lie(simhetzner.Fault{Method: http.MethodGet, Path: "^/servers$", Query: "name=", Hide: ".", Count: 1})
			}
			vm := task.VM.Name
			w.launch(w.contextFor(time.Hour), task)
			if (task.VM.Name != vm) != gone {
				t.Errorf("VM was %s, now %s", vm, task.VM.Name)
			}
		})
	}
}

// TestSnapshotLossNeedsTwoAnswers: work saved as an image is given up when two answers report the image as missing, not
// one.
func TestSnapshotLossNeedsTwoAnswers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lie  simhetzner.Fault
		gone bool
	}{
		"not found":               {lie: simhetzner.Fault{Path: "^/images/", Code: "not_found", Count: 1}},
		"missing in lists":        {lie: simhetzner.Fault{Path: "^/images", Hide: ".", Count: 1}},
		"reported as unavailable": {lie: simhetzner.Fault{Path: "^/images", Claim: "unavailable", Count: 1}},
		"reported as creating":    {lie: simhetzner.Fault{Path: "^/images", Claim: "creating", Count: 1}},
		"not found for 30 s":      {lie: simhetzner.Fault{Path: "^/images/", Code: "not_found", For: 30 * time.Second}},
		"creating for 5 min":      {lie: simhetzner.Fault{Path: "^/images", Claim: "creating", For: 5 * time.Minute}},
		"gone":                    {lie: simhetzner.Fault{Path: "^/images/", Code: "not_found"}, gone: true},
		"unavailable":             {lie: simhetzner.Fault{Path: "^/images", Claim: "unavailable"}, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, task, _ := newTruthfulWorld(t)
			w.sleeps(w.contextFor(time.Hour), task)
			if task.Suspended == nil || task.VM != nil {
				t.Fatalf("the task is not suspended: %+v", task)
			}
			w.lie(test.lie)
			_, err := w.acquireSuspended(task)
			if gone := isGone(err); gone != test.gone {
				t.Fatalf("restore: %v", err)
			}
			if test.gone {
				return
			}
			if err != nil { // retried like a job
				w.clock.Advance(10 * time.Minute)
				_, err = w.acquireSuspended(task)
			}
			if err != nil {
				t.Errorf("second restore: %v", err)
			}
		})
	}
}

// TestImageInCreationIsNotLost: one answer that an image is missing during its creation does not mean that the VM is
// gone.
func TestImageInCreationIsNotLost(t *testing.T) {
	t.Parallel()
	for name, lie := range map[string]simhetzner.Fault{
		"not found":               {Method: http.MethodGet, Path: "^/images/", Code: "not_found", Count: 1},
		"missing in lists":        {Method: http.MethodGet, Path: "^/images$", Hide: ".", Nth: 2, Count: 1},
		"reported as unavailable": {Method: http.MethodGet, Path: "^/images", Claim: "unavailable", Nth: 2, Count: 1},
		"VM not found":            {Method: http.MethodGet, Path: "^/servers/[0-9]+$", Code: "not_found", Count: 1},
		"VM missing in lists":     {Method: http.MethodGet, Path: "^/servers$", Hide: ".", Count: 1},
		"power off finds no VM": {
			Method: http.MethodPost, Path: "/actions/shutdown$", Code: "not_found", Count: 1,
		},
		"create image finds no VM": {
			Method: http.MethodPost, Path: "/actions/create_image$", Code: "not_found", Count: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, task, server := newTruthfulWorld(t)
			w.rest(w.process, task)
			w.lie(lie)
			var err error
			for range 3 { // retried like a job
				if _, err = w.fleet.Snapshot(w.contextFor(time.Hour), task.VM.Name); err == nil || isGone(err) {
					break
				}
			}
			if err != nil {
				t.Fatalf("save snapshot: %v", err)
			}
			images := w.sim.Objects("image")
			if len(images) != 1 || images[0].Server != server.ID || images[0].Inconsistent {
				t.Errorf("got images %+v", images)
			}
		})
	}
}

// TestSuspendedTaskKeepsItsImage: the image of a suspended task is kept as long as the task needs it, however old the
// VM was.
func TestSuspendedTaskKeepsItsImage(t *testing.T) {
	t.Parallel()
	w, task, _ := newTruthfulWorld(t)
	w.sleeps(w.contextFor(time.Hour), task)
	for range 2 * 20 {
		w.clock.Advance(12 * time.Hour)
		w.runs(15 * time.Minute)
	}
	if images := w.sim.Objects("image"); len(images) != 1 || w.row(task.Suspended.VM).Phase != vm.Asleep {
		t.Fatalf("after 20 days: images %+v, row %+v", images, w.row(task.Suspended.VM))
	}
	task.Phase, task.Suspended = state.PhaseDone, nil
	w.runs(time.Hour)
	if images := w.sim.Objects("image"); len(images) != 0 {
		t.Errorf("the task has ended, but images remain: %+v", images)
	}
}

// TestLossIsForgottenWhenTheVMIsFound: answers that report a VM as missing add up only if no answer between them found
// it.
func TestLossIsForgottenWhenTheVMIsFound(t *testing.T) {
	t.Parallel()
	w, task, server := newTruthfulWorld(t)
	for range 3 {
		w.clock.Advance(20 * time.Minute) // the cache is old
		w.lie(simhetzner.Fault{Method: http.MethodGet, Path: "^/servers/[0-9]+$", Code: "not_found", Count: 1})
		_, missed := w.fleet.Get(w.process, task.VM.Name)
		if missed == nil || isGone(missed) {
			t.Errorf("first answer: got %v, want an error that does not mean gone", missed)
		}
		if vm, err := w.fleet.Get(w.process, task.VM.Name); err != nil || vm.ID != fmt.Sprint(server.ID) {
			t.Errorf("second answer: got %+v, %v, want the server", vm, err)
		}
	}
}

// TestMissingDuringCreation: a VM being created is not given up because lists omit it.
func TestMissingDuringCreation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, chances{})
	w.start()
	key := state.TaskKey{Repo: 1, Issue: 1}
	task := &state.Task{Key: key, TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing}}
	w.store.tasks[key] = task
	w.launch(w.contextFor(time.Second), task) // created, not yet running
	w.clock.Advance(2 * time.Minute)
	w.start() // with an empty cache
	defer w.fleet.Close()
	w.lie(simhetzner.Fault{Method: http.MethodGet, Path: "^/servers$", Hide: ".", For: time.Minute})
	w.launch(w.contextFor(time.Hour), task)
	if all := w.sim.Objects("server"); task.VM == nil || task.VM.Gen != 1 || len(all) != 1 || len(w.wrongs) > 0 {
		t.Errorf("task's VM %+v, servers %+v, complaints %v", task.VM, all, w.wrongs)
	}
}

// TestExpiredVMWithWorkIsKept: a VM whose time has expired is not deleted at once while it has its task's work, so that
// there is time to archive it; it is deleted when the task releases it.
func TestExpiredVMWithWorkIsKept(t *testing.T) {
	t.Parallel()
	w, task, server := newTruthfulWorld(t)
	w.rest(w.process, task)
	row := w.row(task.VM.Name)
	w.clock.Advance(row.NotAfter.Sub(w.clock.Now()))
	for range 20 {
		w.runs(15 * time.Minute)
		w.clock.Advance(45 * time.Minute)
	}
	if _, there := w.server(server.ID); !there || w.row(task.VM.Name).Phase != vm.Parked {
		t.Errorf("20 hours later: row %+v", w.row(task.VM.Name))
	}
	w.end(w.contextFor(time.Hour), task)
	w.runs(time.Hour)
	if o, there := w.server(server.ID); there {
		t.Errorf("the task has ended, but the server remains: %+v", o)
	}
}

// fleetSaysGone reports whether the fleet's answer tells its caller to give up the VM.
func fleetSaysGone(vm fleet.VM, err error) bool {
	return isGone(err) || err == nil && vm.State == fleet.StateEnded
}

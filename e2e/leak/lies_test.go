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

// truthful is a world without dice, with one task whose VM is in use.
func truthful(t *testing.T) (*world, *state.Task, simhetzner.Object) {
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
	w.launch(w.within(time.Hour), task)
	if task.VM == nil {
		t.Fatal("no VM")
	}
	return w, task, w.sim.Objects("server")[0]
}

func (w *world) lie(f simhetzner.Fault) {
	w.t.Helper()
	if err := w.sim.Fault(f); err != nil {
		w.t.Fatal(err)
	}
}

// runs lets the fleet run by itself.
func (w *world) runs(d time.Duration) { _ = w.fleet.Run(w.within(d)) }

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

// TestDeletionIsConfirmed: a server is gone, and its bill closed, when the provider has it no more by its id, whatever
// it answered when it was told to delete it.
func TestDeletionIsConfirmed(t *testing.T) {
	t.Parallel()
	for name, lie := range map[string]simhetzner.Fault{
		"it is not found":                   {Method: http.MethodDelete, Path: "^/servers/", Code: "not_found", Count: 3},
		"its action fails":                  {Method: http.MethodDelete, Path: "^/servers/", ActionCode: "action_failed", Count: 3},
		"its action fails at once":          {Method: http.MethodDelete, Path: "^/servers/", ActionCode: "action_failed", Claim: "error", Count: 3},
		"its action has ended and fails":    {Method: http.MethodDelete, Path: "^/servers/", ActionCode: "action_failed", Claim: "success", Count: 3},
		"its action has ended and goes on":  {Method: http.MethodDelete, Path: "^/servers/", Slow: 2 * time.Minute, Claim: "success", Count: 1},
		"lists of its name do not have it":  {Method: http.MethodGet, Path: "^/servers$", Query: "name=", Hide: ".", Count: 3},
		"it is not found once by its id":    {Method: http.MethodGet, Path: "^/servers/[0-9]+$", Code: "not_found", Count: 1},
		"it is not found in a list of ours": {Method: http.MethodGet, Path: "^/servers$", Hide: ".", Count: 3},
	} {
		for how, leave := range map[string]func(*world, *state.Task){
			"asleep": func(w *world, task *state.Task) { w.sleeps(w.within(time.Hour), task) },
			"done":   func(w *world, task *state.Task) { w.end(w.within(time.Hour), task) },
		} {
			t.Run(how+", "+name, func(t *testing.T) {
				t.Parallel()
				w, task, server := truthful(t)
				w.reuse = false
				w.start()
				vm := task.VM.Name
				if how == "asleep" { // the lie is about the deletion
					w.rest(w.process, task)
					if _, err := w.fleet.Snapshot(w.within(time.Hour), vm); err != nil {
						t.Fatal(err)
					}
				}
				w.lie(lie)
				leave(w, task)
				if _, there := w.server(server.ID); there && !w.row(vm).EndedAt.IsZero() {
					t.Errorf("the server is there, and the bill of its row is closed: %+v", w.row(vm))
				}
				for range 20 {
					w.runs(time.Minute)
					if _, there := w.server(server.ID); there && !w.row(vm).EndedAt.IsZero() {
						t.Fatalf("the server is there, and the bill of its row is closed: %+v", w.row(vm))
					}
				}
				if o, there := w.server(server.ID); there {
					t.Errorf("after 20 minutes it is there: %+v", o)
				}
				if row := w.row(vm); row.EndedAt.IsZero() {
					t.Errorf("its bill is open: %+v", row)
				}
			})
		}
	}
}

// TestLossIsSeenTwice: a VM that runs is not given up for one answer, and one that is really gone is.
func TestLossIsSeenTwice(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lies []simhetzner.Fault
		gone bool
	}{
		"missing by its name":           {lies: []simhetzner.Fault{{Path: "^/servers$", Query: "name=", Hide: ".", Count: 1}}},
		"missing by its name for ever":  {lies: []simhetzner.Fault{{Path: "^/servers$", Query: "name=", Hide: "."}}},
		"missing in lists":              {lies: []simhetzner.Fault{{Path: "^/servers$", Hide: "."}}},
		"missing by its id":             {lies: []simhetzner.Fault{{Path: "^/servers/[0-9]+$", Code: "not_found", Count: 1}}},
		"missing by its id and in list": {lies: []simhetzner.Fault{{Path: "^/servers$", Hide: ".", Count: 1}, {Path: "^/servers/[0-9]+$", Code: "not_found", Count: 1}}},
		"said to be off":                {lies: []simhetzner.Fault{{Path: "^/servers", Claim: "off", For: 30 * time.Second}}},
		"said to be deleted":            {lies: []simhetzner.Fault{{Path: "^/servers", Claim: "deleting", For: 30 * time.Second}}},
		"missing for half a minute":     {lies: []simhetzner.Fault{{Path: "^/servers$", Hide: ".", For: 30 * time.Second}, {Path: "^/servers/[0-9]+$", Code: "not_found", For: 30 * time.Second}}},
		"gone":                          {gone: true},
	} {
		for when, busy := range map[string]bool{"busy": true, "parked": false} {
			t.Run(when+", "+name, func(t *testing.T) {
				t.Parallel()
				w, task, server := truthful(t)
				if !busy {
					w.rest(w.process, task)
				}
				w.clock.Advance(20 * time.Minute) // what is remembered is old
				for _, lie := range test.lies {
					lie.Method = http.MethodGet
					w.lie(lie)
				}
				if test.gone {
					w.sim.Vanish(server.ID)
				}
				vm := task.VM.Name
				if got, err := w.fleet.Get(w.process, vm); fleetSaysGone(got, err) {
					t.Errorf("at the first look it is %+v, %v", got, err)
				}
				w.runs(12 * time.Minute) // two passes of the reapers
				if got := w.row(vm).Phase.Over(); got != test.gone {
					t.Errorf("its row: %+v", w.row(vm))
				}
				w.launch(w.within(time.Hour), task)
				if got := task.VM.Name != vm; got != test.gone {
					t.Errorf("it had %s, it has %s", vm, task.VM.Name)
				}
				if _, there := w.server(server.ID); there == test.gone {
					t.Errorf("the server is there: %v", there)
				}
			})
		}
	}
}

// TestAcquireSeesALossTwice: whoever wants the VM of a task waits until it is known whether that is gone.
func TestAcquireSeesALossTwice(t *testing.T) {
	t.Parallel()
	for name, gone := range map[string]bool{"missed once": false, "gone": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, task, server := truthful(t)
			w.clock.Advance(2 * time.Minute)
			if gone {
				w.sim.Vanish(server.ID)
			} else {
				w.lie(simhetzner.Fault{Method: http.MethodGet, Path: "^/servers/[0-9]+$", Code: "not_found", Count: 1})
				w.lie(simhetzner.Fault{Method: http.MethodGet, Path: "^/servers$", Query: "name=", Hide: ".", Count: 1})
			}
			vm := task.VM.Name
			w.launch(w.within(time.Hour), task)
			if (task.VM.Name != vm) != gone {
				t.Errorf("it had %s, it has %s", vm, task.VM.Name)
			}
		})
	}
}

// TestSnapshotIsNotLostByOneAnswer: work that sleeps as an image is dropped when two looks miss the image, not one.
func TestSnapshotIsNotLostByOneAnswer(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		lie  simhetzner.Fault
		gone bool
	}{
		"not found":      {lie: simhetzner.Fault{Path: "^/images/", Code: "not_found", Count: 1}},
		"in no list":     {lie: simhetzner.Fault{Path: "^/images", Hide: ".", Count: 1}},
		"said to be bad": {lie: simhetzner.Fault{Path: "^/images", Claim: "unavailable", Count: 1}},
		"being made":     {lie: simhetzner.Fault{Path: "^/images", Claim: "creating", Count: 1}},
		"for a while":    {lie: simhetzner.Fault{Path: "^/images/", Code: "not_found", For: 30 * time.Second}},
		"made for long":  {lie: simhetzner.Fault{Path: "^/images", Claim: "creating", For: 5 * time.Minute}},
		"really gone":    {lie: simhetzner.Fault{Path: "^/images/", Code: "not_found"}, gone: true},
		"really bad":     {lie: simhetzner.Fault{Path: "^/images", Claim: "unavailable"}, gone: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, task, _ := truthful(t)
			w.sleeps(w.within(time.Hour), task)
			if task.Asleep == nil || task.VM != nil {
				t.Fatalf("it does not sleep: %+v", task)
			}
			w.lie(test.lie)
			_, err := w.wakes(task)
			if gone := isGone(err); gone != test.gone {
				t.Fatalf("waking: %v", err)
			}
			if test.gone {
				return
			}
			if err != nil { // it is tried again, as a job is
				w.clock.Advance(10 * time.Minute)
				_, err = w.wakes(task)
			}
			if err != nil {
				t.Errorf("waking again: %v", err)
			}
		})
	}
}

// TestImageBeingMadeIsNotLost: that an image is missed once while it is made does not mean that the VM is gone.
func TestImageBeingMadeIsNotLost(t *testing.T) {
	t.Parallel()
	for name, lie := range map[string]simhetzner.Fault{
		"not found":       {Method: http.MethodGet, Path: "^/images/", Code: "not_found", Count: 1},
		"in no list":      {Method: http.MethodGet, Path: "^/images$", Hide: ".", Nth: 2, Count: 1},
		"said to be bad":  {Method: http.MethodGet, Path: "^/images", Claim: "unavailable", Nth: 2, Count: 1},
		"VM is not found": {Method: http.MethodGet, Path: "^/servers/[0-9]+$", Code: "not_found", Count: 1},
		"VM in no list":   {Method: http.MethodGet, Path: "^/servers$", Hide: ".", Count: 1},
		"power off finds no VM": {
			Method: http.MethodPost, Path: "/actions/shutdown$", Code: "not_found", Count: 1,
		},
		"create image finds no VM": {
			Method: http.MethodPost, Path: "/actions/create_image$", Code: "not_found", Count: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, task, server := truthful(t)
			w.rest(w.process, task)
			w.lie(lie)
			var err error
			for range 3 { // as a job is tried again
				if _, err = w.fleet.Snapshot(w.within(time.Hour), task.VM.Name); err == nil || isGone(err) {
					break
				}
			}
			if err != nil {
				t.Fatalf("put away: %v", err)
			}
			images := w.sim.Objects("image")
			if len(images) != 1 || images[0].Server != server.ID || images[0].Inconsistent {
				t.Errorf("images: %+v", images)
			}
		})
	}
}

// TestSleepKeepsItsImage: what sleeps stays for as long as its task wants it, however old the VM was.
func TestSleepKeepsItsImage(t *testing.T) {
	t.Parallel()
	w, task, _ := truthful(t)
	w.sleeps(w.within(time.Hour), task)
	for range 2 * 20 {
		w.clock.Advance(12 * time.Hour)
		w.runs(15 * time.Minute)
	}
	if images := w.sim.Objects("image"); len(images) != 1 || w.row(task.Asleep.VM).Phase != vm.Asleep {
		t.Fatalf("after 20 days there are %+v, the row is %+v", images, w.row(task.Asleep.VM))
	}
	task.Phase, task.Asleep = state.PhaseDone, nil
	w.runs(time.Hour)
	if images := w.sim.Objects("image"); len(images) != 0 {
		t.Errorf("its task is over, and there are %+v", images)
	}
}

// TestALossIsForgottenWhenTheVMIsFound: answers that miss a VM count together only if none between them has found it.
func TestALossIsForgottenWhenTheVMIsFound(t *testing.T) {
	t.Parallel()
	w, task, server := truthful(t)
	for range 3 {
		w.clock.Advance(20 * time.Minute) // what is remembered is old
		w.lie(simhetzner.Fault{Method: http.MethodGet, Path: "^/servers/[0-9]+$", Code: "not_found", Count: 1})
		_, missed := w.fleet.Get(w.process, task.VM.Name)
		if missed == nil || isGone(missed) {
			t.Errorf("it is missed: %v", missed)
		}
		if vm, err := w.fleet.Get(w.process, task.VM.Name); err != nil || vm.ID != fmt.Sprint(server.ID) {
			t.Errorf("it is there: %+v, %v", vm, err)
		}
	}
}

// TestMissingWhileItComesUp: a VM on its way up that lists leave out is not given up for that.
func TestMissingWhileItComesUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1, chances{})
	w.start()
	key := state.TaskKey{Repo: 1, Issue: 1}
	task := &state.Task{Key: key, TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing}}
	w.store.tasks[key] = task
	w.launch(w.within(time.Second), task) // it is made, and not up
	w.clock.Advance(2 * time.Minute)
	w.start() // nothing is remembered
	defer w.fleet.Close()
	w.lie(simhetzner.Fault{Method: http.MethodGet, Path: "^/servers$", Hide: ".", For: time.Minute})
	w.launch(w.within(time.Hour), task)
	if all := w.sim.Objects("server"); task.VM == nil || task.VM.Gen != 1 || len(all) != 1 || len(w.wrongs) > 0 {
		t.Errorf("the task has %+v, the servers are %+v, %v", task.VM, all, w.wrongs)
	}
}

// TestWorkOutlivesTheTimeOfItsVM: a VM that has had its time is not deleted at once while its task's work is on it, so
// that there is time to archive it, and when the task has let it go it is.
func TestWorkOutlivesTheTimeOfItsVM(t *testing.T) {
	t.Parallel()
	w, task, server := truthful(t)
	w.rest(w.process, task)
	row := w.row(task.VM.Name)
	w.clock.Advance(row.NotAfter.Sub(w.clock.Now()))
	for range 20 {
		w.runs(15 * time.Minute)
		w.clock.Advance(45 * time.Minute)
	}
	if _, there := w.server(server.ID); !there || w.row(task.VM.Name).Phase != vm.Parked {
		t.Errorf("20 hours later its row is %+v", w.row(task.VM.Name))
	}
	w.end(w.within(time.Hour), task)
	w.runs(time.Hour)
	if o, there := w.server(server.ID); there {
		t.Errorf("its task is over, and there is %+v", o)
	}
}

// fleetSaysGone reports whether whoever asks for a VM would give it up.
func fleetSaysGone(vm fleet.VM, err error) bool {
	return isGone(err) || err == nil && vm.State == fleet.StateEnded
}

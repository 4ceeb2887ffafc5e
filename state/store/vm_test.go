package store

import (
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/machine"
	"github.com/errand-bot/errand/state/vm"
)

// The row records whether a run is on the VM in the same transaction.
func TestRowFollowsTask(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	for _, name := range []string{"a", "b"} {
		if _, err := s.VMs.Intend(t.Context(), vm.Intent{Name: name, Task: task1, Owner: "o", Provider: "p"}, vm.Caps{}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.VMs.Apply(t.Context(), name, vm.Event{Kind: vm.Made, ID: name, Usable: true}); err != nil {
			t.Fatal(err)
		}
	}
	var next *state.Task
	s.next = func(*state.Task, event.Event, machine.Policy) machine.Change { return machine.Change{Task: next} }
	step := func(task state.Task, want string) {
		t.Helper()
		next = &task
		s.mustApply(t, event.Event{Task: task1, Payload: event.ConditionChanged{}}, Ack{})
		got := ""
		for _, name := range []string{"a", "b"} {
			row, err := s.VMs.Get(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			got += " " + string(row.Phase)
		}
		if got != " "+want {
			t.Errorf("got rows%s, want %s", got, want)
		}
	}
	a, b := &state.VM{Name: "a"}, &state.VM{Name: "b"}
	step(state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseQueued}}, "ready ready")
	step(state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseQueued}, TaskRuns: state.TaskRuns{Run: &state.Run{}}}, "ready ready")
	step(state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseQueued}, TaskRuns: state.TaskRuns{Run: &state.Run{RunLaunch: state.RunLaunch{VM: "a"}}}, TaskVMs: state.TaskVMs{VM: a}}, "busy ready")
	step(state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseQueued}, TaskVMs: state.TaskVMs{VM: a}}, "parked ready")
	step(state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseQueued}, TaskRuns: state.TaskRuns{Run: &state.Run{RunLaunch: state.RunLaunch{VM: "a"}}}, TaskVMs: state.TaskVMs{VM: a}}, "busy ready")
	step(state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseQueued}, TaskRuns: state.TaskRuns{Run: &state.Run{RunLaunch: state.RunLaunch{VM: "b"}}}, TaskVMs: state.TaskVMs{VM: b}}, "parked busy")
	step(state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseQueued}}, "parked parked")
	step(state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseQueued}, TaskVMs: state.TaskVMs{VM: &state.VM{Name: "unknown"}}}, "parked parked")
}

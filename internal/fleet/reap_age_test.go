package fleet_test

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

// TestAgedVMsAreReaped: a VM beyond its maximum age is deleted, 22 hours later and after an alarm if it has a task's
// work; the image of a suspended one is deleted only with its task.
func TestAgedVMsAreReaped(t *testing.T) {
	t.Parallel()
	const maxAge = 7 * 24 * time.Hour
	for name, test := range map[string]struct {
		task  func(vm string) *state.Task
		sleep bool
		late  time.Duration // after MaxAge
		want  string        // "" if it is kept
		alarm bool
	}{
		"its task has it":               {task: taskWithVM, late: time.Minute, alarm: true},
		"its task has it for long":      {task: taskWithVM, late: 21 * time.Hour, alarm: true},
		"its task has had its delay":    {task: taskWithVM, late: 22 * time.Hour, want: "row"},
		"its task is over":              {task: endedTask, late: time.Minute, want: "row"},
		"it is suspended":               {task: suspendedTask, sleep: true, late: 6 * 24 * time.Hour},
		"it is suspended and has ended": {task: endedTask, sleep: true, late: time.Minute, want: "row"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClock()
			s, store := newShop(c), &tasks{Store: newStore(t, c.now)}
			f := fleet.New(s, fleet.Config{Deployment: "demo", Rows: store.VMs, Store: store, Now: c.now, Sleep: c.sleep, MaxAge: maxAge, Candidates: []fleet.Candidate{{Type: "small"}}})
			t.Cleanup(f.Close)
			vm := get(t, f, fleet.AcquireSpec{Task: shopTask})
			if test.sleep {
				if _, err := f.Snapshot(t.Context(), vm.Name); err != nil {
					t.Fatal(err)
				}
				if err := f.Release(t.Context(), vm.Name, fleet.ReasonAsleep); err != nil {
					t.Fatal(err)
				}
			}
			store.task = test.task(vm.Name)
			c.pass(maxAge + test.late)
			reap(t, f, fleet.ReapOptions{})
			c.pass(20 * time.Minute)
			got := reap(t, f, fleet.ReapOptions{})
			if test.want == "" && got != "" || !strings.HasPrefix(got, test.want) {
				t.Errorf("reaped %q, want %q", got, test.want)
			}
			alarms := f.Alarms()
			if (len(alarms) == 1) != test.alarm || test.alarm && alarms[0].ID != vm.Name {
				t.Errorf("got alarms %+v", alarms)
			}
		})
	}
}

func taskWithVM(vm string) *state.Task {
	return &state.Task{TaskPhase: state.TaskPhase{Phase: state.PhasePROpen}, TaskVMs: state.TaskVMs{VM: &state.VM{Name: vm}}}
}

func endedTask(string) *state.Task {
	return &state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseDone}}
}

func suspendedTask(vm string) *state.Task {
	return &state.Task{TaskPhase: state.TaskPhase{Phase: state.PhasePROpen}, TaskVMs: state.TaskVMs{Suspended: &state.SuspendedWork{Mode: settings.SleepSnapshot, Ref: "image-of-" + vm, VM: vm}}}
}

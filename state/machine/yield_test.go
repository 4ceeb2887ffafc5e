package machine

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// vmWanted says that another task waits for a VM.
func vmWanted(vm string) event.Event { return event.Event{Payload: event.VMWanted{VM: vm}} }

// TestOnlyIdleVMsAreGivenUp: a task gives its VM up while it waits for people, or for another VM; never while a run is on
// it or about to be, while comments are gathered, or if it continues automatically.
func TestOnlyIdleVMsAreGivenUp(t *testing.T) {
	t.Parallel()
	writer := state.Waiting{Kind: state.WaitEdit}
	for name, c := range map[string]struct {
		change func(*state.Task)
		event  func(*event.Event)
		want   bool
	}{
		"a plan waits":             {func(t *state.Task) { t.Phase = state.PhaseAwaitingPlanApproval }, nil, true},
		"changes wait":             {func(t *state.Task) { t.Phase = state.PhaseAwaitingPublishApproval }, nil, true},
		"a question":               {func(t *state.Task) { t.Phase = state.PhaseAwaitingAnswer }, nil, true},
		"a pull request":           {func(t *state.Task) { t.Phase = state.PhasePROpen }, nil, true},
		"a failure":                {func(t *state.Task) { t.Phase = state.PhaseFailed }, nil, true},
		"a decision on an edit":    {func(t *state.Task) { t.Phase, t.Waiting = state.PhasePlanning, &writer }, nil, true},
		"its own next VM":          {func(t *state.Task) { queued(t); t.Fresh = true }, nil, true},
		"a VM that it has by now":  {queued, nil, false},
		"comments are gathered":    {func(t *state.Task) { t.Phase, t.Gathering = state.PhaseAwaitingPlanApproval, &state.Gathering{} }, nil, false},
		"a run is active":          {func(t *state.Task) { t.Phase, t.Run = state.PhaseImplementing, &state.Run{State: state.RunActive} }, nil, false},
		"a run is stopping":        {func(t *state.Task) { t.Phase, t.Run = state.PhaseAwaitingAnswer, &state.Run{State: state.RunStopping} }, nil, false},
		"a run is launching":       {func(t *state.Task) { t.Phase, t.Run = state.PhaseImplementing, &state.Run{State: state.RunLaunching} }, nil, false},
		"its repository is paused": {func(t *state.Task) { queued(t); t.Waiting = &state.Waiting{Kind: state.WaitPaused} }, nil, true},
		"a launch waits":           {func(t *state.Task) { queued(t); t.Waiting.Place = 0 }, nil, false},
		"it continues by itself": {func(t *state.Task) {
			t.Phase, t.Waiting = state.PhaseInterrupted, &state.Waiting{Kind: state.WaitLimit}
		}, nil, false},
		"somebody has answered":   {func(t *state.Task) { t.Phase = state.PhasePROpen }, func(e *event.Event) { e.VMNeeded = true }, false},
		"another VM by now":       {func(t *state.Task) { t.Phase = state.PhasePROpen }, func(e *event.Event) { e.Payload = event.VMWanted{VM: "vm0"} }, false},
		"the task has ended":      {func(t *state.Task) { t.Phase = state.PhaseDone }, nil, false},
		"its VM is gone":          {func(t *state.Task) { t.Phase, t.VM = state.PhasePROpen, nil }, nil, false},
		"the VM is paid for long": {func(t *state.Task) { t.Phase, t.VM.Paid = state.PhasePROpen, time.Hour }, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := &state.Task{Key: state.TaskKey{Repo: 1, Issue: 2}, Gen: 1, TaskVMs: state.TaskVMs{VM: &state.VM{Name: "vm1"}}}
			c.change(task)
			e := vmWanted("vm1")
			e.Now = t0
			if c.event != nil {
				c.event(&e)
			}
			ch := Next(task, e, DefaultPolicy())
			j := jobOf(ch.Jobs, state.JobSuspend)
			if (j.Kind != "") != c.want || c.want && (j.Args.VM != "vm1" || !ch.Task.VM.WantedAt.Equal(t0) || ch.Task.Visible != task.Visible) {
				t.Errorf("got job %+v, task %+v", j, ch.Task)
			}
		})
	}
}

// queued makes a task wait in the queue for a VM.
func queued(t *state.Task) {
	t.Phase, t.Step, t.Run = state.PhaseImplementing, state.JobLaunch, &state.Run{ID: "r", State: state.RunLaunching}
	t.Waiting = &state.Waiting{Kind: state.WaitVM, Place: 2, Since: t0}
}

// TestPromisedVMIsReleased: a person who answers while the work is being saved for another task waits for the next VM; without
// such a task the VM stays.
func TestPromisedVMIsReleased(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		wanted   bool
		mode     settings.SleepMode
		released bool
	}{
		"for another task": {true, settings.SleepArchive, true},
		"because of time":  {false, settings.SleepArchive, false},
		"it is off":        {false, settings.SleepSnapshot, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.toPreliminary()
			if c.wanted {
				l.do(vmWanted("vm1"))
			}
			l.comment(state.VerbMessage)
			l.gathered()
			if l.task.Run == nil || l.task.Run.State != state.RunLaunching {
				t.Fatalf("got run %+v", l.task.Run)
			}
			e := suspendedOn("vm1", "a1")
			work := *event.Of[event.Suspended](e).Work
			work.Mode = c.mode
			e.VMNeeded, e.Payload = true, event.Suspended{VM: "vm1", Work: &work}
			l.do(e)
			if (l.task.VM == nil) != c.released || (jobOf(l.jobs, state.JobRelease).Kind != "") != c.released || l.task.Suspended == nil {
				t.Errorf("got VM %+v, saved %+v, jobs %v", l.task.VM, l.task.Suspended, kindsOf(l.jobs))
			}
			if l.task.WorkToRestore() == nil {
				t.Errorf("the work is not restored")
			}
			if !c.released {
				return
			}
			l.launchOn(state.VM{Name: "vm2", Gen: 2, RestoredFrom: []string{"vm1"}})
			if l.task.VM == nil || !l.task.VM.WantedAt.IsZero() || l.task.Run.State != state.RunActive {
				t.Errorf("got VM %+v, run %+v", l.task.VM, l.task.Run)
			}
		})
	}
}

// TestPlaceInTheQueue: a new place is shown; it means nothing to a task that no longer waits for a VM.
func TestPlaceInTheQueue(t *testing.T) {
	t.Parallel()
	task := &state.Task{Key: state.TaskKey{Repo: 1, Issue: 2}, Gen: 1}
	queued(task)
	e := event.Event{Now: t0, Payload: event.QueueMoved{Place: 1}}
	ch := Next(task, e, DefaultPolicy())
	if ch.Task == nil || ch.Task.Waiting.Place != 1 || jobOf(ch.Jobs, state.JobStatus).Kind == "" {
		t.Errorf("got %+v, jobs %v", ch.Task, kindsOf(ch.Jobs))
	}
	task.Waiting = &state.Waiting{Kind: state.WaitMoney}
	if ch := Next(task, e, DefaultPolicy()); ch.Task != nil {
		t.Errorf("got %+v", ch.Task.Waiting)
	}
}

// TestRestoredTaskWaitsNoLonger: a step that waited for a VM continues when the work is on one, and the task neither stays in
// the queue nor gives that VM up.
func TestRestoredTaskWaitsNoLonger(t *testing.T) {
	t.Parallel()
	for kind, stays := range map[state.WaitKind]bool{state.WaitVM: false, state.WaitMoney: false, state.WaitEdit: true} {
		task := &state.Task{Key: state.TaskKey{Repo: 1, Issue: 2}, Gen: 1}
		task.Phase, task.Step = state.PhaseImplementing, state.JobCollect
		task.Waiting = &state.Waiting{Kind: kind, Since: t0}
		if kind == state.WaitVM {
			task.Waiting.Place = 1
		}
		ch := Next(task, event.Event{Now: t0, Payload: event.Restored{For: state.JobCollect, Launch: state.Launch{VM: state.VM{Name: "vm2"}}}}, DefaultPolicy())
		if (ch.Task.Waiting != nil) != stays || ch.Task.IsQueuedForVM() || jobOf(ch.Jobs, state.JobCollect).Kind == "" {
			t.Errorf("%s: got %+v, jobs %v", kind, ch.Task.Waiting, kindsOf(ch.Jobs))
		}
	}
}

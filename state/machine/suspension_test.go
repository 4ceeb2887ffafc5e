package machine

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

func idleOf(vm string) event.Event {
	return event.Event{Payload: event.NewDue(state.DueIdle, vm)}
}

// suspendedOn is the report of the job sleep for a VM.
func suspendedOn(vm, ref string) event.Event {
	return event.Event{Payload: event.Suspended{VM: vm, Work: &state.SuspendedWork{Mode: settings.SleepArchive, Ref: ref, Bytes: 3_200_000, VM: vm, Base: "b0", Head: "b1"}}}
}

// launchOn begins a run on a VM, in the given session.
func (l *life) launchOn(vm state.VM) {
	l.do(event.Event{Run: l.task.Run.ID, Payload: event.Launched{Launch: state.Launch{Run: l.task.Run.ID, VM: vm, Started: l.now, Resumed: true, FeedbackIDs: ids(l.task.Feedback)}}})
}

// The work of an idle VM is saved and the VM is deleted, but never while a run is on it: plans may wait for weeks, and
// VMs are scarce.
func TestIdleVM(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	l.do(idleOf("vm1"))
	if j := jobOf(l.jobs, state.JobDue); l.task.VM == nil || !j.NotBefore.Equal(l.task.Since.Add(DefaultPolicy().IdleVM)) {
		t.Errorf("too early: got VM %v, checked again at %s", l.task.VM, j.NotBefore)
	}
	l.comment(state.VerbMessage)
	l.gathered()
	l.now = l.now.Add(time.Hour)
	l.do(idleOf("vm1"))
	l.launch()
	l.do(idleOf("vm1"))
	if len(l.jobs) != 0 {
		t.Fatalf("got suspending of a busy VM: %v", kindsOf(l.jobs))
	}
	l.end(state.RunResult{Text: "Another plan.", Outcome: "build", Session: "s1"})
	if j := jobOf(l.jobs, state.JobDue); j.Args.Due != state.DueIdle {
		t.Errorf("got jobs %v, want a check of the idle VM", kindsOf(l.jobs))
	}
	l.now = l.now.Add(time.Hour)
	l.do(idleOf("vm1"))
	if j := jobOf(l.jobs, state.JobSuspend); j.Lane != state.LaneWork || j.Args.VM != "vm1" || l.task.VM == nil {
		t.Fatalf("got VM %v, jobs %v", l.task.VM, kindsOf(l.jobs))
	}
	l.do(suspendedOn("vm1", "a1"))
	if l.task.VM != nil || len(l.task.VMs) != 1 || l.task.VMs[0].EndReason != "asleep" || jobOf(l.jobs, state.JobRelease).Args.Reason != "asleep" {
		t.Errorf("got VM %v, earlier ones %v, jobs %v", l.task.VM, l.task.VMs, kindsOf(l.jobs))
	}
	if a := l.task.Suspended; a == nil || a.Session != "s1" || !a.At.Equal(l.now) || l.task.WorkToRestore() == nil {
		t.Errorf("got asleep %+v, wakes %v", a, l.task.WorkToRestore())
	}
	l.do(event.Event{Payload: event.Released{VM: "vm1", Reason: "asleep"}})
	if len(l.task.VMs) != 1 {
		t.Errorf("got %d records of its end, want 1", len(l.task.VMs))
	}
}

// A VM that costs money is kept until just before the end of its paid hour, however long it is idle.
func TestPaidHour(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		rests time.Duration // after the VM was made
		want  time.Duration
	}{
		"early in the hour": {10 * time.Minute, 55 * time.Minute},
		"late in the hour":  {57 * time.Minute, 55 * time.Minute},
		"in the third hour": {125 * time.Minute, 175 * time.Minute},
	} {
		l := newLife(t)
		l.trigger()
		l.start()
		made := l.now
		l.launchOn(state.VM{Name: "vm1", CreatedAt: made, Paid: time.Hour, MicroHour: 20_000, Currency: "EUR"})
		l.now = made.Add(test.rests)
		l.end(state.RunResult{Text: "A plan.", Outcome: "build"})
		due := slices.IndexFunc(l.jobs, func(j state.Job) bool { return j.Args.Due == state.DueIdle })
		if due < 0 || !l.jobs[due].NotBefore.Equal(made.Add(test.want)) {
			t.Errorf("%s: got jobs %v", name, l.jobs)
		}
		l.now = made.Add(test.want)
		l.do(idleOf("vm1"))
		if test.rests < test.want && jobOf(l.jobs, state.JobSuspend).Kind == "" {
			t.Errorf("%s: got no suspending: %v", name, l.jobs)
		}
	}
}

// The phases in which a VM is suspended.
func TestPhasesWithIdleVM(t *testing.T) {
	t.Parallel()
	waits := &state.Waiting{Kind: state.WaitMoney}
	launching := &state.Run{State: state.RunLaunching}
	for name, test := range map[string]struct {
		task state.Task
		want bool
	}{
		"waits for an approval":      {state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseAwaitingPlanApproval}}, true},
		"changes wait":               {state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseAwaitingPublishApproval}}, true},
		"pull request":               {state.Task{TaskPhase: state.TaskPhase{Phase: state.PhasePROpen}}, true},
		"question":                   {state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseAwaitingAnswer}}, true},
		"failed":                     {state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseFailed}}, true},
		"interrupted":                {state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseInterrupted}}, true},
		"at work":                    {state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing}}, false},
		"run":                        {state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing, Waiting: waits}, TaskRuns: state.TaskRuns{Run: &state.Run{State: state.RunActive}}}, false},
		"a run about to be launched": {state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing}, TaskRuns: state.TaskRuns{Run: launching}}, false},
		"a run waits for money":      {state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing, Waiting: waits}, TaskRuns: state.TaskRuns{Run: launching}}, true},
		"a run is being stopped":     {state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseFailed}, TaskRuns: state.TaskRuns{Run: &state.Run{State: state.RunStopping}}}, false},
		"comments are gathered":      {state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseAwaitingPlanApproval}, TaskPlans: state.TaskPlans{Gathering: &state.Gathering{}}}, false},
		"ended":                      {state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseDone}}, false},
	} {
		test.task.VM = &state.VM{Name: "vm1"}
		if got := test.task.HasIdleVM(); got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
		test.task.VM = nil
		if test.task.HasIdleVM() {
			t.Errorf("%s: got a resting task without a VM", name)
		}
	}
}

// A request that arrives while the work is being saved keeps the VM.
func TestRequestDuringSuspensionKeepsVM(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	l.now = l.now.Add(time.Hour)
	l.do(idleOf("vm1"))
	l.comment(state.VerbMessage)
	l.do(suspendedOn("vm1", "a1"))
	if l.task.VM == nil || l.task.Suspended == nil || jobOf(l.jobs, state.JobRelease).Kind != "" {
		t.Fatalf("got VM %v, asleep %v, jobs %v", l.task.VM, l.task.Suspended, kindsOf(l.jobs))
	}
	l.gathered()
	l.launchOn(state.VM{Name: "vm1"})
	if l.task.WorkToRestore() != nil {
		t.Error("got saved work from before the run to restore after it, want none")
	}
	l.end(state.RunResult{Text: "A plan.", Outcome: "build"})
	l.do(suspendedOn("vm1", "a2"))
	if j := jobOf(l.jobs, state.JobForget); j.Args.Ref != "a1" || l.task.Suspended.Ref != "a2" || l.task.VM != nil {
		t.Errorf("got older work %v, VM %v", j.Args, l.task.VM)
	}
	// A disk that became an image is off: the VM is deleted even if it is needed, and the run is restored from the image.
	l.comment(state.VerbMessage)
	l.gathered()
	l.launchOn(state.VM{Name: "vm2", RestoredFrom: l.task.WorkToRestore().VMNames()})
	l.end(state.RunResult{Text: "A plan.", Outcome: "build"})
	l.comment(state.VerbMessage)
	e := suspendedOn("vm2", "image")
	event.Of[event.Suspended](e).Work.Mode = settings.SleepSnapshot
	l.do(e)
	if a := l.task.WorkToRestore(); l.task.VM != nil || a == nil || !cmp.Equal(a.VMNames(), []string{"vm1", "vm2"}) {
		t.Errorf("got VM %v, wakes %+v", l.task.VM, a)
	}
}

// A comment that is being vetted keeps the VM, too; if it requests nothing the VM is checked again.
func TestUnvettedCommentKeepsVM(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	e := suspendedOn("vm1", "a1")
	e.VMNeeded = true
	l.do(e)
	if j := jobOf(l.jobs, state.JobDue); l.task.VM == nil || l.task.Suspended == nil || !slices.ContainsFunc(l.jobs, func(j state.Job) bool { return j.Args.Due == state.DueIdle && j.NotBefore.After(l.now) }) {
		t.Errorf("got VM %v, due %v", l.task.VM, j)
	}
	l.now = l.now.Add(time.Hour)
	early := idleOf("vm1")
	early.VMNeeded = true
	l.do(early)
	if j := jobOf(l.jobs, state.JobSuspend); j.Kind != "" {
		t.Errorf("got saving of the work while a request waits for the VM")
	}
	l.do(event.Event{Payload: event.StepFailed{Failure: state.Failure{Job: state.JobSuspend, Reason: "no"}}})
	if j := jobOf(l.jobs, state.JobDue); l.task.VM == nil || j.Args.Due != state.DueIdle {
		t.Errorf("got jobs %v, want another check of the VM", kindsOf(l.jobs))
	}
}

// Saved work is restored only if it is the newest.
func TestOnlyNewestWorkIsRestored(t *testing.T) {
	t.Parallel()
	begun := t0
	asleep := state.SuspendedWork{Mode: settings.SleepArchive, Ref: "a", VM: "vm2", RestoredFrom: []string{"vm1"}, At: begun.Add(time.Hour)}
	run := func(kind state.RunKind, vm string, at time.Time) state.Run {
		return state.Run{Kind: kind, RunLaunch: state.RunLaunch{VM: vm}, Started: at}
	}
	stale := asleep
	stale.Stale = true
	for name, test := range map[string]struct {
		task state.Task
		want bool
	}{
		"its own":          {state.Task{TaskVMs: state.TaskVMs{Suspended: &asleep}, TaskRuns: state.TaskRuns{Runs: []state.Run{run(state.RunPlan, "vm2", begun)}}}, true},
		"handed down":      {state.Task{TaskVMs: state.TaskVMs{Suspended: &asleep}, TaskRuns: state.TaskRuns{Runs: []state.Run{run(state.RunPlan, "vm1", begun), run(state.RunCheck, "vm9", begun)}}}, true},
		"never started":    {state.Task{TaskVMs: state.TaskVMs{Suspended: &asleep}, TaskRuns: state.TaskRuns{Runs: []state.Run{run(state.RunPlan, "vm1", begun), run(state.RunPlan, "", time.Time{})}}}, true},
		"later work":       {state.Task{TaskVMs: state.TaskVMs{Suspended: &asleep}, TaskRuns: state.TaskRuns{Runs: []state.Run{run(state.RunPlan, "vm2", begun.Add(2*time.Hour))}}}, false},
		"work elsewhere":   {state.Task{TaskVMs: state.TaskVMs{Suspended: &asleep}, TaskRuns: state.TaskRuns{Runs: []state.Run{run(state.RunPlan, "vm2", begun), run(state.RunPlan, "vm3", begun)}}}, false},
		"no work":          {state.Task{TaskVMs: state.TaskVMs{Suspended: &asleep}}, false},
		"a fresh start":    {state.Task{TaskVMs: state.TaskVMs{Suspended: &asleep}, TaskOrders: state.TaskOrders{Fresh: true}, TaskRuns: state.TaskRuns{Runs: []state.Run{run(state.RunPlan, "vm2", begun)}}}, false},
		"moved since":      {state.Task{TaskVMs: state.TaskVMs{Suspended: &stale}, TaskRuns: state.TaskRuns{Runs: []state.Run{run(state.RunPlan, "vm2", begun)}}}, false},
		"nothing put away": {state.Task{TaskRuns: state.TaskRuns{Runs: []state.Run{run(state.RunPlan, "vm2", begun)}}}, false},
	} {
		if got := test.task.WorkToRestore() != nil; got != test.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// A VM whose work cannot be saved is deleted, and a comment is posted.
func TestUnsavableVMIsDeleted(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	l.do(event.Event{Payload: event.Suspended{VM: "vm1", Failure: "the VM is gone"}})
	if p := jobOf(l.jobs, state.JobPost).Post; l.task.VM != nil || l.task.VMs[0].EndReason != "vanished" || p == nil || p.Reason != state.VMNotSaved || p.Text != "the VM is gone" {
		t.Errorf("got VM %v, earlier %v, post %+v", l.task.VM, l.task.VMs, p)
	}
	l.do(suspendedOn("vm1", "late"))
	if j := jobOf(l.jobs, state.JobForget); j.Args.Ref != "late" {
		t.Errorf("got late saved work kept: %v", kindsOf(l.jobs))
	}
}

// Unusable saved work is reported once and deleted.
func TestUnusableSavedWorkIsReported(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	l.do(suspendedOn("vm1", "a1"))
	l.comment(state.VerbMessage)
	l.gathered()
	l.do(event.Event{Run: l.task.Run.ID, Payload: event.Launched{Launch: state.Launch{Run: l.task.Run.ID, VM: state.VM{Name: "vm2"}, Started: l.now, RestoreFailure: "the archive is damaged"}}})
	if p := jobOf(l.jobs, state.JobPost).Post; p == nil || p.Reason != state.VMNotRestored || jobOf(l.jobs, state.JobForget).Args.Ref != "a1" || l.task.Suspended != nil {
		t.Errorf("got post %+v, asleep %v", p, l.task.Suspended)
	}
}

// Saved work that was unused for long is deleted after one comment; that of an ended task is deleted a day later.
func TestUnusedSavedWorkIsDeleted(t *testing.T) {
	t.Parallel()
	keep := DefaultPolicy().KeepAsleep
	l := newLife(t)
	l.toPreliminary()
	l.do(suspendedOn("vm1", "a1"))
	put := l.now
	due := event.Event{Payload: event.NewDue(state.DueUnused, "")}
	l.now = put.Add(keep - time.Hour)
	l.do(due)
	if j := jobOf(l.jobs, state.JobDue); l.task.Suspended == nil || !j.NotBefore.Equal(put.Add(keep)) {
		t.Fatalf("too early: got %v, checked again at %s", l.task.Suspended, j.NotBefore)
	}
	l.now = put.Add(keep)
	l.do(due)
	if p := jobOf(l.jobs, state.JobPost).Post; l.task.Suspended != nil || p == nil || p.Reason != state.VMExpired || jobOf(l.jobs, state.JobForget).Args.Ref != "a1" {
		t.Errorf("got asleep %v, post %+v", l.task.Suspended, p)
	}
	l.do(due)
	if len(l.jobs) != 0 {
		t.Errorf("got a second comment: %v", kindsOf(l.jobs))
	}

	l = newLife(t)
	l.toPreliminary()
	l.do(suspendedOn("vm1", "a2"))
	l.comment(state.VerbCancel)
	var forget state.Job
	for _, j := range l.jobs {
		if j.Args.Due == state.DueForget {
			forget, l.now = j, j.NotBefore
		}
	}
	if !forget.NotBefore.Equal(l.task.End.At.Add(DefaultPolicy().KeepAfterEnd)) || (Change{DropDue: true}).Drops(&forget) {
		t.Fatalf("got the deletion of saved work at %s", forget.NotBefore)
	}
	shown := l.task.Visible
	l.do(event.Event{Payload: event.NewDue(forget.Args.Due, forget.Args.Key)})
	if j := jobOf(l.jobs, state.JobForget); j.Args.Ref != "a2" || j.Args.Mode != settings.SleepArchive || l.task.Suspended != nil || l.task.Visible != shown {
		t.Errorf("got jobs %v, asleep %v", l.jobs, l.task.Suspended)
	}
}

// A step that needs the work on a VM has it restored first.
func TestWorkIsRestoredForAStep(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPR()
	l.task.Phase, l.task.Step, l.task.VM = state.PhaseAddressingReview, state.JobRebase, nil
	l.task.Suspended = &state.SuspendedWork{Mode: settings.SleepArchive, Ref: "a1", VM: "vm1", At: l.now}
	woken := event.Restored{For: state.JobRebase, Launch: state.Launch{VM: state.VM{Name: "vm2", RestoredFrom: []string{"vm1"}}}}
	l.do(event.Event{Payload: woken})
	if j := jobOf(l.jobs, state.JobRebase); j.Kind == "" || l.task.VM.Name != "vm2" || !l.task.Suspended.Stale {
		t.Errorf("got jobs %v, VM %v", kindsOf(l.jobs), l.task.VM)
	}
	l.comment(state.VerbCancel)
	l.do(event.Event{Payload: event.Released{VM: "vm2"}})
	woken.Launch.VM.Name = "vm3"
	l.do(event.Event{Payload: woken})
	if jobOf(l.jobs, state.JobRelease).Args.VM != "vm3" {
		t.Errorf("got a VM kept by an ended task: %v", kindsOf(l.jobs))
	}
}

// A run is stopped before the task's VM hours end, and continues when the limit is raised.
func TestVMHours(t *testing.T) {
	t.Parallel()
	p := DefaultPolicy()
	p.VMHours = 2 * time.Hour
	l := newLife(t)
	l.trigger()
	l.start()
	made := l.now
	step := func(e event.Event) {
		l.now = l.now.Add(time.Second)
		e.Task, e.Now, e.At = state.TaskKey{Repo: 7, Issue: 1}, l.now, l.now
		ch := Next(l.task, e, p)
		ch.Task.Version++
		l.task, l.jobs = ch.Task, ch.Jobs
	}
	l.task.VMs = []state.VM{{Name: "vm0", CreatedAt: made.Add(-3 * time.Hour), EndedAt: made.Add(-150 * time.Minute), Paid: time.Hour, MicroHour: 7}}
	step(event.Event{Run: l.task.Run.ID, Payload: event.Launched{Launch: state.Launch{VM: state.VM{Name: "vm1", CreatedAt: made, Paid: time.Hour, MicroHour: 20}, Started: made}}})
	due := jobOf(l.jobs, state.JobDue)
	if due.Args.Due != state.DueSpan || !due.NotBefore.Equal(made.Add(50*time.Minute)) {
		t.Fatalf("got due job %+v", due)
	}
	l.now = due.NotBefore
	step(event.Event{Payload: event.NewDue(state.DueSpan, "vm1")})
	l.want(state.PhaseFailed, state.JobStop, state.JobPost, state.JobDue)
	if e := l.task.End; e.Class != state.ClassVMHours || e.Reason != "the task's VM hours are used up (2 h of 2 h)" || e.Hint != state.HintVMHours {
		t.Errorf("got end %+v", e)
	}
	if u := l.task.VMUse(l.now); u.Hours != 2*time.Hour || u.Micro != 27 || u.VMs != 2 {
		t.Errorf("got use %+v", u)
	}
	step(suspendedOn("vm1", "a1"))
	if l.task.VM != nil {
		t.Error("got no suspending, want it")
	}
	l.comment(state.VerbRetry)
	l.want(state.PhasePreliminaryPlanning, state.JobLaunch)
	if l.task.WorkToRestore() == nil {
		t.Error("got no continuation after retry, want one")
	}
}

// A run whose VM may not have another hour continues when there is money again; one that may is not stopped.
func TestMoneyForVMs(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	made := l.now
	l.launchOn(state.VM{Name: "vm1", CreatedAt: made, Paid: time.Hour, MicroHour: 20})
	l.now = made.Add(50 * time.Minute)
	span := event.NewDue(state.DueSpan, "vm1")
	l.do(event.Event{Payload: span})
	if j := jobOf(l.jobs, state.JobDue); l.task.Run == nil || !j.NotBefore.Equal(made.Add(110*time.Minute)) {
		t.Fatalf("got run %v, checked again at %s", l.task.Run, j.NotBefore)
	}
	tomorrow := made.Add(12 * time.Hour)
	span.Waiting = &state.Waiting{Kind: state.WaitMoney, Detail: "VMs have cost 5.00 EUR today", Until: tomorrow}
	l.do(event.Event{Payload: span})
	l.want(state.PhaseInterrupted, state.JobStop, state.JobDue)
	if w := l.task.Waiting; w.Kind != state.WaitMoney || !w.Until.Equal(tomorrow) || !l.task.HasIdleVM() {
		t.Errorf("got waiting %+v", w)
	}
}

// A VM that should outlive its paid hour is checked again just before the next one ends.
func TestInsuredVM(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	l.task.VM.Paid, l.task.VM.CreatedAt = time.Hour, l.now
	l.now = l.now.Add(56 * time.Minute)
	insured := event.NewDue(state.DueIdle, "vm1")
	insured.Insured = true
	l.do(event.Event{Payload: insured})
	if j := jobOf(l.jobs, state.JobDue); jobOf(l.jobs, state.JobSuspend).Kind != "" || j.Args.Due != state.DueIdle || !j.NotBefore.Equal(l.task.VM.CreatedAt.Add(115*time.Minute)) {
		t.Errorf("got jobs %v, next check at %s", kindsOf(l.jobs), j.NotBefore)
	}
	l.do(idleOf("vm1")) // not any more: the hour that is paid is used up first
	if j := jobOf(l.jobs, state.JobSuspend); j.Args.VM != "vm1" {
		t.Errorf("got jobs %v", kindsOf(l.jobs))
	}
}

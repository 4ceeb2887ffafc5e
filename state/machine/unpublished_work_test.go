package machine

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// TestEndSavesUnpublishedWork: in every phase in which a task can end, the agent's work is saved before the VM is
// deleted: by a job that reads it from the VM or, if it was already read, under its present name.
func TestEndSavesUnpublishedWork(t *testing.T) {
	t.Parallel()
	build := func(l *life) {
		l.trigger()
		s := settings.Default()
		s.Plan = settings.PlanNone
		l.do(event.Event{Payload: event.Started{Start: event.Start{Settings: s, Visible: true, Branch: state.Branch{Name: "errand/1-bug", Base: "main", BaseSHA: "b0"}}}})
		l.launch()
	}
	built := func(l *life) {
		build(l)
		l.end(state.RunResult{Outcome: "done"})
	}
	collected := func(l *life) {
		built(l)
		l.do(event.Event{Payload: event.Collected{Work: &state.Work{Run: l.task.Work.Run, Ref: "ref1", Paths: 1, LocalHead: "h", LocalTree: "t"}}})
		l.want(state.PhaseImplementing, state.JobCommit)
	}
	moved := func(l *life) {
		collected(l)
		l.do(event.Event{Payload: event.Committed{Work: &state.Work{Run: l.task.Work.Run, Head: "H", Tree: "t"}}})
		l.do(event.Event{Payload: event.BranchMoved{}})
		l.want(state.PhaseImplementing, state.JobOpenPR)
	}
	stopped := func(l *life) string {
		build(l)
		run := l.task.Run.ID
		l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 50, Mention: true, At: l.now}, Orders: []state.Order{{Verb: state.VerbStop}}}})
		l.want(state.PhaseAwaitingAnswer, state.JobStop)
		return run
	}
	for name, c := range map[string]struct {
		bring func(*life)
		packs bool   // a job saves it from the VM, for retry
		saved string // saved immediately under this name, as a changeset
	}{
		"an agent works":         {build, true, ""},
		"its work is to be read": {built, true, ""},
		"its work could not be read": {func(l *life) {
			built(l)
			l.do(event.Event{Payload: event.StepFailed{Failure: state.Failure{Job: state.JobCollect, Reason: "x"}}})
		}, true, ""},
		"a run was cut short": {func(l *life) {
			build(l)
			l.end(state.RunResult{Class: state.RunRetryable, Status: state.StatusRateLimited})
		}, true, ""},
		"an agent asked something":    {func(l *life) { build(l); l.end(state.RunResult{Outcome: "question", Question: "Which?"}) }, true, ""},
		"it is stopped and not saved": {func(l *life) { stopped(l) }, true, ""},
		"it was stopped and saved": {func(l *life) {
			run := stopped(l)
			l.do(event.Event{Run: run, Payload: event.WorkSaved{Work: state.SavedWork{Run: run, Ref: "stopped", At: l.now}}})
		}, true, "stopped"},
		"it is about to be published": {collected, true, "ref1"},
		"it could not be published": {func(l *life) {
			collected(l)
			l.do(event.Event{Payload: event.StepFailed{Failure: state.Failure{Job: state.JobCommit, Reason: "x"}}})
		}, true, "ref1"},
		"it is on its branch":      {moved, false, ""},
		"its pull request is open": {func(l *life) { l.toPR() }, false, ""},
		"its pull request was closed during a round, and reopened": {func(l *life) {
			l.toPR()
			l.beginRound()
			l.do(event.Event{By: writer, Payload: event.PRClosed{}})
			l.do(event.Event{By: writer, Payload: event.PRReopened{Number: 5}})
			l.want(state.PhasePROpen)
		}, true, ""},
		"an agent plans": {func(l *life) {
			l.trigger()
			l.start()
			l.launch()
			l.end(state.RunResult{Class: state.RunRetryable, Status: state.StatusRateLimited})
		}, false, ""},
	} {
		for how, e := range map[string]event.Event{
			"canceled": {By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 99, Mention: true}, Orders: []state.Order{{Verb: state.VerbCancel}}}},
			"closed":   {Via: event.ViaConfirmed, Payload: event.IssueClosed{}},
			"gone":     {Payload: event.AccessLost{}},
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				l, saved := newLife(t), c.saved
				c.bring(l)
				e.At = l.now.Add(time.Second)
				if p, ok := e.Payload.(event.Commented); ok {
					m := *p.Comment
					m.At, p.Comment = e.At, &m
					e.Payload = p
				}
				l.do(e)
				if !c.packs {
					l.want(state.PhaseCancelled, state.JobRelease)
				} else {
					l.want(state.PhaseCancelled, state.JobStop)
					stop := jobOf(l.jobs, state.JobStop)
					if jobOf(l.jobs, state.JobRelease).Kind != "" || stop.Args.VM != "vm1" {
						t.Fatalf("got jobs %v, stop of %v; want the work saved before the VM is deleted", kindsOf(l.jobs), stop.Args)
					}
					l.do(event.Event{Run: stop.Run, Payload: event.WorkSaved{Archive: &state.SuspendedWork{Mode: settings.SleepArchive, Ref: "packed", VM: "vm1"}}})
					l.want(state.PhaseCancelled, state.JobRelease)
					if a := l.task.Suspended; a == nil || a.Ref != "packed" || !l.task.KeepsWork() || l.task.End.Saving {
						t.Errorf("got archive %+v, end %+v", a, l.task.End)
					}
				}
				if s := l.task.Saved; saved == "" && len(s) > 0 || saved != "" && (len(s) != 1 || s[0].Ref != saved) {
					t.Errorf("got saved work %+v, want %q", s, saved)
				}
			})
		}
	}
}

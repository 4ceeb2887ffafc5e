package machine

import (
	"slices"
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// destroy applies the operator's order.
func (l *life) destroy(force bool) {
	l.do(event.Event{By: state.Person{Operator: true}, Permission: state.PermissionWrite, Payload: event.Destroyed{Force: force}})
}

// TestDestroy: the VM and the saved work are deleted at once, but not while an agent works, unless by force; then the task is stopped, and
// continues on a new VM.
func TestDestroy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bring  func(*life)
		force  bool
		refuse bool
		phase  state.Phase
		jobs   []state.JobKind
	}{
		"an agent works":           {bring: (*life).implementing, refuse: true, phase: state.PhaseImplementing},
		"an agent works, by force": {bring: (*life).implementing, force: true, phase: state.PhaseAwaitingAnswer, jobs: []state.JobKind{state.JobStop, state.JobRelease, state.JobPost}},
		"stopped": {
			bring: func(l *life) { l.implementing(); l.comment(state.VerbStop) }, phase: state.PhaseAwaitingAnswer,
			jobs: []state.JobKind{state.JobRelease, state.JobPost},
		},
		"suspended": {
			bring: func(l *life) {
				l.implementing()
				l.comment(state.VerbStop)
				l.do(event.Event{Payload: event.Suspended{VM: l.task.VM.Name, Work: &state.SuspendedWork{Mode: settings.SleepArchive, Ref: "saved", VM: l.task.VM.Name}}})
			}, phase: state.PhaseAwaitingAnswer, jobs: []state.JobKind{state.JobForget, state.JobPost},
		},
		"a plan waits, VM idle": {bring: func(l *life) { l.toPreliminary() }, phase: state.PhaseAwaitingPreliminaryApproval, jobs: []state.JobKind{state.JobRelease}},
		"nothing to delete":     {bring: (*life).trigger, force: true, refuse: true, phase: state.PhaseQueued},
		"canceled, work saved": {
			bring: func(l *life) {
				l.implementing()
				l.comment(state.VerbCancel)
				l.do(event.Event{Run: l.task.Run.ID, Payload: event.WorkSaved{Archive: &state.SuspendedWork{Mode: settings.SleepArchive, Ref: "saved", VM: l.task.VM.Name}}})
				l.do(event.Event{Payload: event.Released{VM: l.task.VM.Name, Reason: state.VMEndCancelled}})
			}, phase: state.PhaseCancelled, jobs: []state.JobKind{state.JobForget},
		},
		"canceled, being saved": {bring: func(l *life) { l.implementing(); l.comment(state.VerbCancel) }, refuse: true, phase: state.PhaseCancelled},
		"merged, being saved": {
			bring: func(l *life) {
				l.implementing()
				l.task.PR = &state.PR{Number: 5, State: state.PROpen}
				l.do(event.Event{Payload: event.PRClosed{Merged: true}})
			}, refuse: true, phase: state.PhaseDone,
		},
		"canceled, by force": {
			bring: func(l *life) { l.implementing(); l.comment(state.VerbCancel) }, force: true, phase: state.PhaseCancelled, jobs: []state.JobKind{state.JobRelease},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			c.bring(l)
			vm, vms, version := l.task.VM, len(l.task.VMs), l.task.Version
			l.jobs = nil
			l.destroy(c.force)
			if l.task.Phase != c.phase {
				t.Errorf("got phase %s, want %s", l.task.Phase, c.phase)
			}
			if c.refuse {
				if l.task.VM != vm && l.task.VM.Name != vm.Name || len(l.jobs) > 0 {
					t.Errorf("got version %d after %d, jobs %v; want no change", l.task.Version, version, kindsOf(l.jobs))
				}
				return
			}
			for _, kind := range c.jobs {
				if !slices.Contains(kindsOf(l.jobs), kind) {
					t.Errorf("got jobs %v, want %s", kindsOf(l.jobs), kind)
				}
			}
			if l.task.VM != nil || l.task.Suspended != nil || l.task.KeepsWork() {
				t.Errorf("got VM %v, saved work %v, kept %t; want none", l.task.VM, l.task.Suspended, l.task.KeepsWork())
			}
			if vm != nil && (len(l.task.VMs) != vms+1 || l.task.VMs[vms].EndReason != state.VMEndOperator) {
				t.Errorf("got ended VMs %+v", l.task.VMs)
			}
		})
	}
}

// TestDestroyedTaskContinues: after the deletion `retry` begins a run on a new VM, also where the commits of the last one were to be
// read or checked again.
func TestDestroyedTaskContinues(t *testing.T) {
	t.Parallel()
	for name, bring := range map[string]func(*life){
		"stopped": func(l *life) { l.implementing(); l.comment(state.VerbStop) },
		"its commits could not be read": func(l *life) {
			l.implementing()
			l.comment(state.VerbStop)
			l.task.Phase, l.task.Question, l.task.Step, l.task.Resume = state.PhaseFailed, nil, state.JobCollect, state.PhaseImplementing
			l.task.End = &state.End{}
		},
		"its commits were refused": func(l *life) {
			l.implementing()
			l.comment(state.VerbStop)
			l.task.Question.Kind = state.AskRefused
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			bring(l)
			l.destroy(false)
			l.jobs = nil
			l.comment(state.VerbRetry)
			if l.task.Phase != state.PhaseImplementing || l.task.Run == nil || !slices.Contains(kindsOf(l.jobs), state.JobLaunch) {
				t.Errorf("got phase %s, step %s, jobs %v; want a new run", l.task.Phase, l.task.Step, kindsOf(l.jobs))
			}
		})
	}
}

// TestDestroyedTaskThatWaits: a task that waits until the commits of a run can be read begins another run at once, because they are gone:
// nothing else would continue it.
func TestDestroyedTaskThatWaits(t *testing.T) {
	t.Parallel()
	for _, kind := range []state.WaitKind{state.WaitVM, state.WaitPaused} {
		for _, step := range []state.JobKind{state.JobCollect, state.JobRebase} {
			t.Run(string(kind)+", "+string(step), func(t *testing.T) {
				t.Parallel()
				l := newLife(t)
				l.implementing()
				l.end(state.RunResult{Outcome: "done"})
				l.want(state.PhaseImplementing, state.JobCollect)
				l.do(event.Event{Payload: event.Suspended{VM: l.task.VM.Name, Work: &state.SuspendedWork{Mode: settings.SleepArchive, Ref: "saved", VM: l.task.VM.Name}}})
				if step == state.JobRebase {
					l.task.Step, l.task.Work.Ref = step, "changeset"
				}
				l.do(event.Event{Payload: event.StepBlocked{Waiting: &state.Waiting{Kind: kind, Detail: "no VM"}}})
				l.destroy(false)
				l.want(state.PhaseImplementing, state.JobForget, state.JobLaunch, state.JobPost)
				l.do(event.Event{Payload: event.Due{For: state.DueRecheck}})
				if l.task.Run == nil || l.task.KeepsWork() || l.task.Waiting != nil || l.task.Step != state.JobLaunch {
					t.Errorf("got run %v, waiting %v, step %s; want a run that is being launched", l.task.Run, l.task.Waiting, l.task.Step)
				}
			})
		}
	}
}

// TestDestroySparesWorkThatIsBeingSaved: an ended task's VM is not deleted while a job saves the work on it, also if no run is left.
func TestDestroySparesWorkThatIsBeingSaved(t *testing.T) {
	t.Parallel()
	for _, stopping := range []bool{true, false} {
		l := newLife(t)
		l.implementing()
		vm := l.task.VM
		l.task.Phase, l.task.End, l.task.Run = state.PhaseDone, &state.End{At: l.now}, nil
		e := event.Event{By: state.Person{Operator: true}, Permission: state.PermissionWrite, Payload: event.Destroyed{}}
		e.Stopping = stopping
		if l.do(e); (l.task.VM == vm) != stopping {
			t.Errorf("with a job that saves %t: got VM %v, jobs %v", stopping, l.task.VM, kindsOf(l.jobs))
		}
	}
}

// TestDestroyByForceWhilePlanning: no comment says that the work of an agent is saved whose VM is deleted.
func TestDestroyByForceWhilePlanning(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	l.launch()
	l.jobs = nil
	l.destroy(true)
	l.want(state.PhaseAwaitingAnswer, state.JobPost, state.JobRelease)
	for _, j := range l.jobs {
		if j.Post != nil && (j.Post.Kind != state.PostVM || j.Post.Reason != state.VMNotSaved) {
			t.Errorf("got post %+v, want one that says that the VM is gone", j.Post)
		}
	}
}

// TestDestroyByForceWhileSaving: the last comment of a canceled task no longer waits for its work to be saved.
func TestDestroyByForceWhileSaving(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	l.comment(state.VerbCancel)
	l.destroy(true)
	l.want(state.PhaseCancelled, state.JobRelease, state.JobPost)
	if j := jobOf(l.jobs, state.JobPost); j.Post.Kind != state.PostEnded || j.Post.Reason != "" || !j.NotBefore.IsZero() {
		t.Errorf("got post %+v not before %s, want the last comment at once", j.Post, j.NotBefore)
	}
}

// TestDestroyByForceSaysWhatIsLost: the comment about the stop stays where errand has the work; otherwise another one says that it is lost.
func TestDestroyByForceSaysWhatIsLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bring func(*life)
		want  state.PostKind
		other state.PostKind
	}{
		"work on the VM": {func(l *life) { l.implementing() }, state.PostVM, state.PostQuestion},
		"work with errand": {func(l *life) {
			l.implementing()
			l.task.Work = &state.Work{Ref: "collected"}
		}, state.PostQuestion, state.PostVM},
		"a plan": {func(l *life) {
			l.implementing()
			l.task.Phase = state.PhasePlanning
		}, state.PostVM, state.PostQuestion},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			c.bring(l)
			l.jobs = nil
			l.destroy(true)
			var posts []state.PostKind
			for _, j := range l.jobs {
				if j.Kind == state.JobPost {
					posts = append(posts, j.Post.Kind)
				}
			}
			if !slices.Contains(posts, c.want) || slices.Contains(posts, c.other) {
				t.Errorf("got posts %v, want %s and not %s", posts, c.want, c.other)
			}
		})
	}
}

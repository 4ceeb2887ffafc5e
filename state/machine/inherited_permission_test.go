package machine

import (
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestJobsInheritPermissionOfTheirEvent: a sender's permission, as read from GitHub, is passed to the jobs of that
// event that depend on it, and to no later ones.
func TestJobsInheritPermissionOfTheirEvent(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	v := &state.Vetted{By: writer, Permission: state.PermissionWrite, At: t0}
	got := func(kind state.JobKind) *state.Vetted {
		t.Helper()
		for _, j := range l.jobs {
			if j.Kind == kind {
				return j.Vetted
			}
		}
		t.Fatalf("got jobs %v lack %s", kindsOf(l.jobs), kind)
		return nil
	}
	l.do(event.Event{By: writer, Permission: state.PermissionWrite, Vetted: v, Via: "assigned", Repo: &state.Repo{ID: 7, Owner: "o", Name: "r"}, Payload: event.Triggered{Issue: &state.Issue{Title: "Bug", Body: "It breaks."}}})
	if got(state.JobStart) != v {
		t.Error("got a job start without the permission, want it")
	}
	l.start()
	if got(state.JobLaunch) != nil {
		t.Error("got the permission in the next event, want none")
	}
	l.launch()
	l.end(state.RunResult{Text: "A plan.", Outcome: "build"})
	l.postPlan(11)
	p := l.task.NewestPlan()
	v = &state.Vetted{By: writer, Permission: state.PermissionWrite, At: t0, Hash: p.Hash}
	l.do(event.Event{Vetted: v, Payload: event.Approved{Candidate: state.Candidate{Approval: state.Approval{Kind: p.Kind, Hash: p.Hash, By: writer, Permission: state.PermissionWrite, Via: state.ViaReaction, Given: l.now}}}})
	if got(state.JobLaunch) != v {
		t.Error("got a launch of approved work without the permission, want it")
	}
	l.do(event.Event{Payload: event.StepBlocked{Waiting: &state.Waiting{Kind: state.WaitVM, Detail: "no VM"}}})
	l.do(event.Event{Payload: event.ConditionChanged{}})
	if got(state.JobLaunch) != nil {
		t.Error("got the permission in a later start, want none")
	}
}

func TestGatherInheritsPermissionOfReview(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPR()
	v := &state.Vetted{By: writer, Permission: state.PermissionWrite, At: t0}
	l.do(event.Event{By: writer, Permission: state.PermissionWrite, Vetted: v, Payload: event.Reviewed{Review: state.Review{ID: 1, State: "commented"}}})
	for _, j := range l.jobs {
		if want := j.Kind == state.JobGather; (j.Vetted == v) != want {
			t.Errorf("%s got %+v", j.Kind, j.Vetted)
		}
	}
}

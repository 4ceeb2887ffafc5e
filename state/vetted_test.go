package state

import (
	"testing"
)

// TestJobsGetTheAnswerOfTheirEvent: what GitHub said about a sender goes to the jobs of that one event that decide
// by it, and to nothing that comes later.
func TestJobsGetTheAnswerOfTheirEvent(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	v := &Vetted{By: writer, Permission: PermissionWrite, At: t0}
	got := func(kind JobKind) *Vetted {
		t.Helper()
		for _, j := range l.jobs {
			if j.Kind == kind {
				return j.Vetted
			}
		}
		t.Fatalf("jobs %v lack %s", kindsOf(l.jobs), kind)
		return nil
	}
	l.do(Event{Kind: EventTriggered, By: writer, Permission: PermissionWrite, Vetted: v, Via: "assigned", Repo: &Repo{ID: 7, Owner: "o", Name: "r"}, Issue: &Issue{Title: "Bug", Body: "It breaks."}})
	if got(JobStart) != v {
		t.Error("start does not get it")
	}
	l.start()
	if got(JobLaunch) != nil {
		t.Error("the next event has it, too")
	}
	l.launch()
	l.end(RunResult{Text: "A plan.", Outcome: "build"})
	l.postPlan(11)
	p := l.task.NewestPlan()
	v = &Vetted{By: writer, Permission: PermissionWrite, At: t0, Hash: p.Hash}
	l.do(Event{Kind: EventApproved, Vetted: v, Candidate: &Candidate{Approval: Approval{Kind: p.Kind, Hash: p.Hash, By: writer, Permission: PermissionWrite, Via: ViaReaction, Given: l.now}}})
	if got(JobLaunch) != v {
		t.Error("the start of what was approved does not get it")
	}
	l.do(Event{Kind: EventHeldUp, Waiting: &Waiting{Kind: WaitVM, Detail: "no VM"}})
	l.do(Event{Kind: EventPoked})
	if got(JobLaunch) != nil {
		t.Error("a later start relies on it, too")
	}
}

func TestGatheringGetsTheAnswerOfTheReview(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPR()
	v := &Vetted{By: writer, Permission: PermissionWrite, At: t0}
	l.do(Event{Kind: EventReviewed, By: writer, Permission: PermissionWrite, Vetted: v, Review: &Review{ID: 1, State: "commented"}})
	for _, j := range l.jobs {
		if want := j.Kind == JobGather; (j.Vetted == v) != want {
			t.Errorf("%s got %+v", j.Kind, j.Vetted)
		}
	}
}

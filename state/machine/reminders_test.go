package machine

import (
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestUnapprovedPlanIsRemindedAndExpires plays the reminders of a plan that nobody approves.
func TestUnapprovedPlanIsRemindedAndExpires(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	due := map[state.DueKind]state.Job{}
	for _, j := range l.jobs {
		if j.Kind == state.JobDue {
			due[j.Args.Due] = j
		}
	}
	limits := l.task.Settings.Limits
	for what, wait := range map[state.DueKind]int64{state.DueRemind: int64(limits.Remind), state.DueExpire: int64(limits.Expire)} {
		if j := due[what]; int64(j.NotBefore.Sub(l.now)) != wait {
			t.Errorf("%s: got a delay of %s", what, j.NotBefore.Sub(l.now))
		}
	}
	hash := l.task.NewestPlan().Hash
	l.do(event.Event{Payload: event.NewDue("remind", "another")})
	if len(l.jobs) != 0 {
		t.Errorf("got jobs %v for a reminder of another revision, want none", kindsOf(l.jobs))
	}
	for _, kind := range []state.DueKind{state.DueRemind, state.DueExpire} {
		for _, e := range []event.Event{{Context: event.Context{Approving: true}}, {Context: event.Context{Unvetted: true}}} { // somebody answers just then, or before an outage
			e.Payload = event.NewDue(kind, hash)
			l.do(e)
			l.want(state.PhaseAwaitingPreliminaryApproval, state.JobDue)
			if j := l.jobs[0]; j.Args.Due != kind || j.Args.Key != hash || !j.NotBefore.After(l.now) {
				t.Errorf("got job %+v", j)
			}
		}
	}
	l.do(event.Event{Payload: event.NewDue("remind", hash)})
	l.want(state.PhaseAwaitingPreliminaryApproval, state.JobPost)
	l.do(event.Event{Payload: event.NewDue("remind", hash)})
	if len(l.jobs) != 0 {
		t.Errorf("got jobs %v for a second reminder of the same revision, want none", kindsOf(l.jobs))
	}
	l.do(event.Event{Payload: event.NewDue("expire", hash)})
	l.want(state.PhaseCancelled, state.JobPost, state.JobRelease)
}

// TestCommentBeforePlanIsPosted: comments made before the plan is posted are handled once it is posted.
func TestCommentBeforePlanIsPosted(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	l.launch()
	l.task.Run.Attempt = 3 // people have kept talking
	l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 70, Body: "and smaller"}}})
	l.end(state.RunResult{Text: "A plan.", Outcome: "build"})
	l.want(state.PhaseAwaitingPreliminaryApproval, state.JobPost)
	l.postPlan(11)
	l.want(state.PhaseAwaitingPreliminaryApproval)
	l.gathered()
	l.want(state.PhasePreliminaryPlanning, state.JobLaunch)
	if p := l.task.NewestPlan(); !p.Posted() || l.task.ConsideredPlan() != p {
		t.Errorf("got plan posted %v, superseded %v", p.Posted(), p.Superseded)
	}
}

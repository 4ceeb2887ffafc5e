package state

import "testing"

// TestPlansAreBroughtToMindAndGivenUp plays the reminders of a plan that nobody approves.
func TestPlansAreBroughtToMindAndGivenUp(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	due := map[string]Job{}
	for _, j := range l.jobs {
		if j.Kind == JobDue {
			due[j.Args["what"]] = j
		}
	}
	limits := l.task.Settings.Limits
	for what, wait := range map[string]int64{"remind": int64(limits.Remind), "expire": int64(limits.Expire)} {
		if j := due[what]; int64(j.NotBefore.Sub(l.now)) != wait {
			t.Errorf("%s is due after %s", what, j.NotBefore.Sub(l.now))
		}
	}
	hash := l.task.NewestPlan().Hash
	l.do(Event{Kind: EventDue, Detail: "remind", Hash: "another"})
	if len(l.jobs) != 0 {
		t.Errorf("a reminder of another revision makes %v", kindsOf(l.jobs))
	}
	l.do(Event{Kind: EventDue, Detail: "remind", Hash: hash})
	l.want(PhaseAwaitingPreliminaryApproval, JobPost)
	l.do(Event{Kind: EventDue, Detail: "expire", Hash: hash})
	l.want(PhaseCancelled, JobPost, JobRelease)
}

// TestWordsBeforeAPlanIsPosted shows that they are not left lying once the plan is there.
func TestWordsBeforeAPlanIsPosted(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.start()
	l.launch()
	l.task.Run.Attempt = 3 // people have kept talking
	l.do(Event{Kind: EventCommented, By: writer, Permission: PermissionWrite, Comment: &Comment{ID: 70, Body: "and smaller"}})
	l.end(RunResult{Text: "A plan.", Outcome: "build"})
	l.want(PhaseAwaitingPreliminaryApproval, JobPost)
	l.postPlan(11)
	l.want(PhasePreliminaryPlanning, JobLaunch)
	if p := l.task.NewestPlan(); !p.Posted() || !p.Superseded {
		t.Errorf("the plan is posted %v, superseded %v", p.Posted(), p.Superseded)
	}
}

package state

import (
	"testing"
	"time"
)

// TestLateTriggers: what was done before the end begins no other life, however late its webhook comes; what
// was done after it does, also where we came to know of the end only later.
func TestLateTriggers(t *testing.T) {
	t.Parallel()
	at := func(sec int) time.Time { return t0.Add(time.Duration(sec) * time.Second) }
	closed := func(sec int) Event { return Event{Kind: EventIssueClosed, By: writer, At: at(sec)} }
	for name, c := range map[string]struct {
		end     Event
		heard   time.Time // when errand took the end in
		trigger time.Time
		want    bool // it begins anew
	}{
		"assigned before the close":                         {closed(100), at(101), at(97), false},
		"assigned in the second of the close":               {closed(100), at(101), at(100), true},
		"assigned after the close":                          {closed(100), at(101), at(102), true},
		"assigned after a close that we heard of later":     {closed(100), at(900), at(102), true},
		"assigned before a close that a sweep found":        {Event{Kind: EventIssueClosed}, at(900), at(500), false},
		"assigned just before it, by GitHub's clock":        {Event{Kind: EventIssueClosed}, at(900), at(880), true},
		"assigned before what began it":                     {Event{Kind: EventIssueClosed}, at(5), at(-1), false},
		"assigned after it":                                 {Event{Kind: EventIssueClosed}, at(900), at(901), true},
		"assigned before a cancel":                          {Event{Kind: EventUntriggered, Via: "assigned", By: writer, Permission: PermissionWrite, At: at(50)}, at(51), at(49), false},
		"taken back and assigned again while GitHub was up": {Event{Kind: EventUntriggered, Via: "assigned", By: writer, Permission: PermissionWrite, At: at(50)}, at(5000), at(4000), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, mention := range []bool{false, true} {
				l := newLife(t)
				l.trigger()
				e := c.end
				l.now = c.heard
				if e.At.IsZero() {
					e.Task, e.Now = TaskKey{Repo: 7, Issue: 1}, c.heard
					l.task = Next(l.task, e, DefaultPolicy()).Task
				} else {
					l.do(e)
				}
				l.want(PhaseCancelled)
				l.now = c.heard.Add(time.Hour)
				again := Event{Kind: EventTriggered, By: writer, Permission: PermissionWrite, Via: "assigned", At: c.trigger, Repo: &Repo{ID: 7, Owner: "o", Name: "r"}, Issue: &Issue{Title: "Bug"}}
				if mention {
					again.Kind, again.Comment, again.Orders = EventCommented, &Comment{ID: 9, At: c.trigger, Mention: true}, []Order{{Verb: VerbPlan}}
				}
				l.do(again)
				if got := l.task.Gen == 2; got != c.want {
					t.Errorf("mention %v: life %d, %s", mention, l.task.Gen, l.task.Phase)
				}
				if mention && !c.want {
					l.want(PhaseCancelled, JobPost, JobReact) // told so
				}
			}
		})
	}
}

// TestOver: the end is never before what began it, or a sweep would take that for something new.
func TestOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		acted, want time.Duration
	}{
		"a person's act":                {time.Minute, time.Minute},
		"nobody's":                      {0, time.Hour},
		"closed before it was assigned": {-time.Hour, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := Task{Phase: PhaseCancelled, Since: t0.Add(time.Hour), Trigger: Trigger{At: t0.Add(time.Second)}, End: &End{}}
			if c.acted != 0 {
				task.End.Acted = t0.Add(c.acted)
			}
			if got := task.Over().Sub(t0); got != c.want {
				t.Errorf("over after %s, want %s", got, c.want)
			}
		})
	}
}

// TestTheApprovalBefore: a thorough plan's approval that is taken back leaves the preliminary plan approved,
// of which the next revision is made, and takes its condition with it.
func TestTheApprovalBefore(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]func(l *life){
		"revoked before the start": func(l *life) {
			l.do(Event{Kind: EventNoApproval, Detail: NotRevoked, Run: l.task.Run.ID, Candidate: &Candidate{Approval: *l.task.Approval}})
			l.want(PhaseAwaitingPlanApproval)
		},
		"planned anew": func(l *life) {
			l.do(Event{Kind: EventStepFailed, Run: l.task.Run.ID, Failure: &Failure{Job: JobLaunch, Class: ClassVM, Reason: "No."}})
			l.want(PhaseFailed)
			l.comment(VerbReplan)
			l.want(PhasePlanning, JobStart)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.toPreliminary()
			l.approve()
			first := l.task.Approval.Hash
			l.launch()
			l.end(RunResult{Text: "Steps.", Outcome: "build"})
			l.postPlan(12)
			p := l.task.NewestPlan()
			l.do(Event{Kind: EventApproved, Candidate: &Candidate{Approval: Approval{Kind: p.Kind, Hash: p.Hash, By: writer, Permission: PermissionWrite, Via: ViaCommand, Given: l.now, With: "be quick"}}})
			l.want(PhaseImplementing, JobLaunch)
			back(l)
			if a := l.task.Approval; a == nil || a.Hash != first || a.Kind != PlanPreliminary {
				t.Errorf("what is approved now is %+v", a)
			}
			for _, f := range l.task.Feedback {
				if f.Kind == "condition" {
					t.Errorf("a condition of what is not approved stays: %+v", f)
				}
			}
		})
	}
}

// TestDoubt: a job that gave up not knowing whether its effect is there is looked after by the next of its kind.
func TestDoubt(t *testing.T) {
	t.Parallel()
	for name, doubt := range map[string]time.Time{"known not to be there": {}, "it may be there": t0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.trigger()
			l.do(Event{Kind: EventStepFailed, Failure: &Failure{Job: JobStatus, Key: "1.status", Doubt: doubt, Class: "github", Reason: "No."}})
			found := false
			for _, j := range l.jobs {
				if found = found || j.Kind == JobStatus; j.Kind == JobStatus && !j.Doubt.Equal(doubt) {
					t.Errorf("the next one looks from %v on, want %v", j.Doubt, doubt)
				}
			}
			if !found {
				t.Errorf("jobs %v", kindsOf(l.jobs))
			}
		})
	}
}

// TestLateEnds: what was done before a life began does not end it, however late its webhook comes.
func TestLateEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		e    Event
		ends bool
	}{
		"taken back before":                   {Event{Kind: EventUntriggered, Via: "assigned", By: writer, Permission: PermissionWrite, At: t0.Add(-time.Minute)}, false},
		"taken back after":                    {Event{Kind: EventUntriggered, Via: "assigned", By: writer, Permission: PermissionWrite, At: t0.Add(time.Minute)}, true},
		"taken back, as a sweep sees":         {Event{Kind: EventUntriggered, Via: "assigned"}, true},
		"closed before":                       {Event{Kind: EventIssueClosed, By: writer, At: t0.Add(-time.Minute)}, false},
		"closed in the second of the trigger": {Event{Kind: EventIssueClosed, By: writer, At: t0.Add(time.Second)}, true},
		"closed before, and still":            {Event{Kind: EventIssueClosed, Via: ViaStart, At: t0.Add(-time.Minute)}, true},
		"closed, as a sweep sees":             {Event{Kind: EventIssueClosed}, true},
		"cancelled before":                    {Event{Kind: EventCommented, Comment: &Comment{ID: 3, Mention: true}, Orders: []Order{{Verb: VerbCancel}}, By: writer, Permission: PermissionWrite, At: t0.Add(-time.Minute)}, false},
		"cancelled after":                     {Event{Kind: EventCommented, Comment: &Comment{ID: 3, Mention: true}, Orders: []Order{{Verb: VerbCancel}}, By: writer, Permission: PermissionWrite, At: t0.Add(time.Minute)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.trigger()
			c.e.Task, c.e.Now = TaskKey{Repo: 7, Issue: 1}, t0.Add(time.Hour)
			if ch := Next(l.task, c.e, DefaultPolicy()); ch.Task == nil || ch.Task.Ended() != c.ends {
				t.Errorf("after it: %+v", ch.Task)
			}
		})
	}
}

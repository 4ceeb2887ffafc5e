package machine

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
)

// An action before the end does not start another life, however late its webhook arrives; an action after it does, even
// if errand learned of the end later.
func TestLateTriggers(t *testing.T) {
	t.Parallel()
	at := func(sec int) time.Time { return t0.Add(time.Duration(sec) * time.Second) }
	closed := func(sec int) state.Event { return state.Event{Kind: state.EventIssueClosed, By: writer, At: at(sec)} }
	for name, c := range map[string]struct {
		end     state.Event
		heard   time.Time // when errand took the end in
		trigger time.Time
		want    bool // it begins anew
	}{
		"assigned before the close":                         {closed(100), at(101), at(97), false},
		"assigned in the second of the close":               {closed(100), at(101), at(100), true},
		"assigned after the close":                          {closed(100), at(101), at(102), true},
		"assigned after a close that we heard of later":     {closed(100), at(900), at(102), true},
		"assigned before a close that a sweep found":        {state.Event{Kind: state.EventIssueClosed}, at(900), at(500), false},
		"assigned just before it, by GitHub's clock":        {state.Event{Kind: state.EventIssueClosed}, at(900), at(880), true},
		"assigned before what began it":                     {state.Event{Kind: state.EventIssueClosed}, at(5), at(-1), false},
		"assigned after it":                                 {state.Event{Kind: state.EventIssueClosed}, at(900), at(901), true},
		"assigned before a cancel":                          {state.Event{Kind: state.EventUntriggered, Via: "assigned", By: writer, Permission: state.PermissionWrite, At: at(50)}, at(51), at(49), false},
		"taken back and assigned again while GitHub was up": {state.Event{Kind: state.EventUntriggered, Via: "assigned", By: writer, Permission: state.PermissionWrite, At: at(50)}, at(5000), at(4000), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, mention := range []bool{false, true} {
				l := newLife(t)
				l.trigger()
				e := c.end
				l.now = c.heard
				if e.At.IsZero() {
					e.Task, e.Now = state.TaskKey{Repo: 7, Issue: 1}, c.heard
					l.task = Next(l.task, e, DefaultPolicy()).Task
				} else {
					l.do(e)
				}
				l.want(state.PhaseCancelled)
				l.now = c.heard.Add(time.Hour)
				again := state.Event{Kind: state.EventTriggered, By: writer, Permission: state.PermissionWrite, Via: "assigned", At: c.trigger, Repo: &state.Repo{ID: 7, Owner: "o", Name: "r"}, Issue: &state.Issue{Title: "Bug"}}
				if mention {
					again.Kind, again.Comment, again.Orders = state.EventCommented, &state.Comment{ID: 9, At: c.trigger, Mention: true}, []state.Order{{Verb: state.VerbPlan}}
				}
				l.do(again)
				if got := l.task.Gen == 2; got != c.want {
					t.Errorf("mention %v: life %d, %s", mention, l.task.Gen, l.task.Phase)
				}
				if mention && !c.want {
					l.want(state.PhaseCancelled, state.JobPost, state.JobReact) // told so
				}
			}
		})
	}
}

// The end is never before the trigger, or a sweep would take the trigger for a new one.
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
			task := state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseCancelled, Since: t0.Add(time.Hour), End: &state.End{}}, TaskIssue: state.TaskIssue{Trigger: state.Trigger{At: t0.Add(time.Second)}}}
			if c.acted != 0 {
				task.End.Acted = t0.Add(c.acted)
			}
			if got := task.Over().Sub(t0); got != c.want {
				t.Errorf("got the end after %s, want %s", got, c.want)
			}
		})
	}
}

// A withdrawn approval of a detailed plan leaves the preliminary plan approved, on which the next revision is based,
// and its condition is removed.
func TestTheApprovalBefore(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]func(l *life){
		"revoked before the start": func(l *life) {
			l.do(state.Event{Kind: state.EventNoApproval, JobReport: state.JobReport{Rejection: state.NotRevoked}, Run: l.task.Run.ID, Candidate: &state.Candidate{Approval: *l.task.Approval}})
			l.want(state.PhaseAwaitingPlanApproval)
		},
		"planned anew": func(l *life) {
			l.do(state.Event{Kind: state.EventStepFailed, Run: l.task.Run.ID, JobReport: state.JobReport{Failure: &state.Failure{Job: state.JobLaunch, Class: state.ClassVM, Reason: "No."}}})
			l.want(state.PhaseFailed)
			l.comment(state.VerbReplan)
			l.want(state.PhasePlanning, state.JobStart)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.toPreliminary()
			l.approve()
			first := l.task.Approval.Hash
			l.launch()
			l.end(state.RunResult{Text: "Steps.", Outcome: "build"})
			l.postPlan(12)
			p := l.task.NewestPlan()
			l.do(state.Event{Kind: state.EventApproved, Candidate: &state.Candidate{Approval: state.Approval{Kind: p.Kind, Hash: p.Hash, By: writer, Permission: state.PermissionWrite, Via: state.ViaCommand, Given: l.now, With: "be quick"}}})
			l.want(state.PhaseImplementing, state.JobLaunch)
			back(l)
			if a := l.task.Approval; a == nil || a.Hash != first || a.Kind != state.PlanPreliminary {
				t.Errorf("what is approved now is %+v", a)
			}
			for _, f := range l.task.Feedback {
				if f.Kind == "condition" {
					t.Errorf("got a condition of a withdrawn approval: %+v", f)
				}
			}
		})
	}
}

// The next job of its kind checks for the effect of a job that failed with an unknown outcome.
func TestDoubt(t *testing.T) {
	t.Parallel()
	for name, doubt := range map[string]time.Time{"known not to be there": {}, "it may be there": t0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.trigger()
			l.do(state.Event{Kind: state.EventStepFailed, JobReport: state.JobReport{Failure: &state.Failure{Job: state.JobStatus, Key: "1.status", Doubt: doubt, Class: "github", Reason: "No."}}})
			found := false
			for _, j := range l.jobs {
				if found = found || j.Kind == state.JobStatus; j.Kind == state.JobStatus && !j.Doubt.Equal(doubt) {
					t.Errorf("got doubt %v of the next job, want %v", j.Doubt, doubt)
				}
			}
			if !found {
				t.Errorf("got jobs %v", kindsOf(l.jobs))
			}
		})
	}
}

// An action before a life began does not end it, however late its webhook arrives.
func TestLateEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		e    state.Event
		ends bool
	}{
		"taken back before":                   {state.Event{Kind: state.EventUntriggered, Via: "assigned", By: writer, Permission: state.PermissionWrite, At: t0.Add(-time.Minute)}, false},
		"taken back after":                    {state.Event{Kind: state.EventUntriggered, Via: "assigned", By: writer, Permission: state.PermissionWrite, At: t0.Add(time.Minute)}, true},
		"taken back, as a sweep sees":         {state.Event{Kind: state.EventUntriggered, Via: "assigned"}, true},
		"closed before":                       {state.Event{Kind: state.EventIssueClosed, By: writer, At: t0.Add(-time.Minute)}, false},
		"closed in the second of the trigger": {state.Event{Kind: state.EventIssueClosed, By: writer, At: t0.Add(time.Second)}, true},
		"closed before, and still":            {state.Event{Kind: state.EventIssueClosed, Via: state.ViaStart, At: t0.Add(-time.Minute)}, true},
		"closed, as a sweep sees":             {state.Event{Kind: state.EventIssueClosed}, true},
		"cancelled before":                    {state.Event{Kind: state.EventCommented, Comment: &state.Comment{ID: 3, Mention: true}, Orders: []state.Order{{Verb: state.VerbCancel}}, By: writer, Permission: state.PermissionWrite, At: t0.Add(-time.Minute)}, false},
		"cancelled after":                     {state.Event{Kind: state.EventCommented, Comment: &state.Comment{ID: 3, Mention: true}, Orders: []state.Order{{Verb: state.VerbCancel}}, By: writer, Permission: state.PermissionWrite, At: t0.Add(time.Minute)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.trigger()
			c.e.Task, c.e.Now = state.TaskKey{Repo: 7, Issue: 1}, t0.Add(time.Hour)
			if ch := Next(l.task, c.e, DefaultPolicy()); ch.Task == nil || ch.Task.Ended() != c.ends {
				t.Errorf("after it: %+v", ch.Task)
			}
		})
	}
}

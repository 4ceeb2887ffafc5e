package machine

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// An action before the end does not start another life, however late its webhook arrives; an action after it does, even
// if errand learned of the end later.
func TestLateTriggersStartNothing(t *testing.T) {
	t.Parallel()
	at := func(sec int) time.Time { return t0.Add(time.Duration(sec) * time.Second) }
	closed := func(sec int) event.Event { return event.Event{By: writer, At: at(sec), Payload: event.IssueClosed{}} }
	for name, c := range map[string]struct {
		end     event.Event
		heard   time.Time // when errand took the end in
		trigger time.Time
		want    bool // a new life begins
	}{
		"assigned before the close":                         {closed(100), at(101), at(97), false},
		"assigned in the second of the close":               {closed(100), at(101), at(100), true},
		"assigned after the close":                          {closed(100), at(101), at(102), true},
		"assigned after a close that we heard of later":     {closed(100), at(900), at(102), true},
		"assigned before a close that a sweep found":        {event.Event{Payload: event.IssueClosed{}}, at(900), at(500), false},
		"assigned just before it, by GitHub's clock":        {event.Event{Payload: event.IssueClosed{}}, at(900), at(880), true},
		"assigned before what began it":                     {event.Event{Payload: event.IssueClosed{}}, at(5), at(-1), false},
		"assigned after it":                                 {event.Event{Payload: event.IssueClosed{}}, at(900), at(901), true},
		"assigned before a cancel":                          {event.Event{Via: "assigned", By: writer, Permission: state.PermissionWrite, At: at(50), Payload: event.Untriggered{}}, at(51), at(49), false},
		"taken back and assigned again while GitHub was up": {event.Event{Via: "assigned", By: writer, Permission: state.PermissionWrite, At: at(50), Payload: event.Untriggered{}}, at(5000), at(4000), true},
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
				issue := &state.Issue{Title: "Bug"}
				again := event.Event{By: writer, Permission: state.PermissionWrite, Via: "assigned", At: c.trigger, Repo: &state.Repo{ID: 7, Owner: "o", Name: "r"}, Payload: event.Triggered{Issue: issue}}
				if mention {
					m := &state.Comment{ID: 9, At: c.trigger, Mention: true}
					again.Payload = event.Commented{Issue: issue, Comment: m, Orders: []state.Order{{Verb: state.VerbPlan}}}
				}
				l.do(again)
				if got := l.task.Gen == 2; got != c.want {
					t.Errorf("mention %v: got life %d, phase %s", mention, l.task.Gen, l.task.Phase)
				}
				if mention && !c.want {
					l.want(state.PhaseCancelled, state.JobPost, state.JobReact) // a reply says so
				}
			}
		})
	}
}

// The end is never before the trigger, or a sweep would take the trigger for a new one.
func TestEndIsNotBeforeTrigger(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		acted, want time.Duration
	}{
		"a person's act":                {time.Minute, time.Minute},
		"without an action":             {0, time.Hour},
		"closed before it was assigned": {-time.Hour, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := state.Task{TaskPhase: state.TaskPhase{Phase: state.PhaseCancelled, Since: t0.Add(time.Hour), End: &state.End{}}, TaskIssue: state.TaskIssue{Trigger: state.Trigger{At: t0.Add(time.Second)}}}
			if c.acted != 0 {
				task.End.Acted = t0.Add(c.acted)
			}
			if got := task.EndedAt().Sub(t0); got != c.want {
				t.Errorf("got the end after %s, want %s", got, c.want)
			}
		})
	}
}

// A withdrawn approval of a detailed plan leaves the preliminary plan approved, on which the next revision is based,
// and its condition is removed.
func TestWithdrawalRestoresEarlierApproval(t *testing.T) {
	t.Parallel()
	for name, back := range map[string]func(l *life){
		"revoked before the start": func(l *life) {
			l.do(event.Event{Run: l.task.Run.ID, Payload: event.ApprovalRejected{Rejection: state.RejectedRevoked, Candidate: state.Candidate{Approval: *l.task.Approval}}})
			l.want(state.PhaseAwaitingPlanApproval)
		},
		"replanned": func(l *life) {
			l.do(event.Event{Run: l.task.Run.ID, Payload: event.StepFailed{Failure: state.Failure{Job: state.JobLaunch, Class: state.ClassVM, Reason: "No."}}})
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
			l.do(event.Event{Payload: event.Approved{Candidate: state.Candidate{Approval: state.Approval{Kind: p.Kind, Hash: p.Hash, By: writer, Permission: state.PermissionWrite, Via: state.ViaCommand, Given: l.now, With: "be quick"}}}})
			l.want(state.PhaseImplementing, state.JobLaunch)
			back(l)
			if a := l.task.Approval; a == nil || a.Hash != first || a.Kind != state.PlanPreliminary {
				t.Errorf("got approval %+v", a)
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
func TestUnknownOutcomeReachesNextJob(t *testing.T) {
	t.Parallel()
	for name, doubt := range map[string]time.Time{"known not to be there": {}, "it may be there": t0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.trigger()
			l.do(event.Event{Payload: event.StepFailed{Failure: state.Failure{Job: state.JobStatus, Key: "1.status", UnknownSince: doubt, Class: state.ClassGitHub, Reason: "No."}}})
			found := false
			for _, j := range l.jobs {
				if found = found || j.Kind == state.JobStatus; j.Kind == state.JobStatus && !j.UnknownSince.Equal(doubt) {
					t.Errorf("got doubt %v of the next job, want %v", j.UnknownSince, doubt)
				}
			}
			if !found {
				t.Errorf("got jobs %v", kindsOf(l.jobs))
			}
		})
	}
}

// An action before a life began does not end it, however late its webhook arrives.
func TestLateEndsHaveNoEffect(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		e    event.Event
		ends bool
	}{
		"taken back before":                   {event.Event{Via: "assigned", By: writer, Permission: state.PermissionWrite, At: t0.Add(-time.Minute), Payload: event.Untriggered{}}, false},
		"taken back after":                    {event.Event{Via: "assigned", By: writer, Permission: state.PermissionWrite, At: t0.Add(time.Minute), Payload: event.Untriggered{}}, true},
		"taken back, as a sweep sees":         {event.Event{Via: "assigned", Payload: event.Untriggered{}}, true},
		"closed before":                       {event.Event{By: writer, At: t0.Add(-time.Minute), Payload: event.IssueClosed{}}, false},
		"closed in the second of the trigger": {event.Event{By: writer, At: t0.Add(time.Second), Payload: event.IssueClosed{}}, true},
		"closed before, and still":            {event.Event{Via: event.ViaStart, At: t0.Add(-time.Minute), Payload: event.IssueClosed{}}, true},
		"closed, as a sweep sees":             {event.Event{Payload: event.IssueClosed{}}, true},
		"canceled before":                     {event.Event{By: writer, Permission: state.PermissionWrite, At: t0.Add(-time.Minute), Payload: event.Commented{Comment: &state.Comment{ID: 3, Mention: true}, Orders: []state.Order{{Verb: state.VerbCancel}}}}, false},
		"canceled after":                      {event.Event{By: writer, Permission: state.PermissionWrite, At: t0.Add(time.Minute), Payload: event.Commented{Comment: &state.Comment{ID: 3, Mention: true}, Orders: []state.Order{{Verb: state.VerbCancel}}}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.trigger()
			c.e.Task, c.e.Now = state.TaskKey{Repo: 7, Issue: 1}, t0.Add(time.Hour)
			if ch := Next(l.task, c.e, DefaultPolicy()); ch.Task == nil || ch.Task.Ended() != c.ends {
				t.Errorf("after the trigger: got task %+v", ch.Task)
			}
		})
	}
}

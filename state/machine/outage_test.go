package machine

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// stepOutage is the report of a step that failed temporarily.
func stepOutage(kind state.JobKind, at time.Time) event.Event {
	return event.Event{Payload: event.StepFailed{Failure: state.Failure{Job: kind, Class: state.ClassGitHub, Reason: "GitHub is down.", Hint: "Comment `retry`.", RetryAt: at}}}
}

// resumeAt returns the time at which the task continues automatically.
func (l *life) resumeAt() time.Time {
	l.t.Helper()
	for _, j := range l.jobs {
		if j.Kind == state.JobDue && j.Args.Due == state.DueResume {
			return j.NotBefore
		}
	}
	l.t.Fatalf("got jobs %v, want one that resumes the task", kindsOf(l.jobs))
	return time.Time{}
}

// A task waits longer and longer for a failing step, and then fails. A successful step, or a person's command, resets
// the count.
func TestOutages(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	p := DefaultPolicy()
	want := p.Backoff
	for n := range p.MaxAttempts {
		l.do(stepOutage(state.JobStart, l.now))
		l.want(state.PhaseInterrupted, state.JobDue)
		if d := l.resumeAt().Sub(l.now); d != min(want, p.BackoffMax) {
			t.Errorf("outage %d: got a wait of %s, want %s", n+1, d, want)
		}
		want *= 2
		l.do(event.Event{Payload: event.NewDue("resume", "")})
		l.want(state.PhaseQueued, state.JobStart)
	}
	l.do(stepOutage(state.JobStart, l.now))
	l.want(state.PhaseFailed, state.JobPost)
	l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 9, Mention: true}, Orders: []state.Order{{Verb: state.VerbRetry}}}})
	l.want(state.PhaseQueued, state.JobStart)
	said := l.now.Add(time.Hour)
	l.do(stepOutage(state.JobStart, said))
	l.want(state.PhaseInterrupted, state.JobDue)
	if at := l.resumeAt(); !at.Equal(said) {
		t.Errorf("got a resumption at %s, want GitHub's time %s", at, said)
	}
	l.do(event.Event{Payload: event.NewDue("resume", "")})
	l.start()
	if l.task.Outages != 0 {
		t.Errorf("got %d outages after a successful step, want 0", l.task.Outages)
	}
}

// It is read again automatically.
func TestUnreadableReviewIsReadAgain(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPR()
	l.do(stepOutage(state.JobGather, l.now))
	l.want(state.PhaseInterrupted, state.JobDue)
	l.do(event.Event{Payload: event.NewDue("resume", "")})
	l.want(state.PhasePROpen, state.JobGather)
}

// Nothing is posted without access; afterwards one comment is posted.
func TestAccessLostAndRegained(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		gone event.Payload
		told bool
	}{
		"access": {event.AccessLost{Lost: "it was taken"}, true},
		"issue":  {event.IssueGone{Lost: "it was taken"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.toPreliminary()
			l.do(event.Event{Payload: c.gone})
			l.want(state.PhaseCancelled)
			if !strings.Contains(l.task.End.Reason, "it was taken") {
				t.Errorf("got reason %q", l.task.End.Reason)
			}
			for _, j := range l.jobs {
				if j.Kind == state.JobPost || j.Kind == state.JobStatus {
					t.Errorf("got a job %s, want none without access", j.Kind)
				}
			}
			posts := 0
			for range 2 {
				for _, j := range l.do(event.Event{Installation: 77, Payload: event.AccessRegained{}}) {
					if j.Kind == state.JobPost {
						posts++
					}
				}
			}
			if want := map[bool]int{true: 1}[c.told]; posts != want {
				t.Errorf("got %d comments, want %d", posts, want)
			}
			if c.told && l.task.Installation != 77 {
				t.Errorf("got installation %d", l.task.Installation)
			}
		})
	}
}

// A lock is shown in the status comment until it is removed.
func TestLocked(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	for _, c := range []struct {
		payload event.Payload
		want    bool
		jobs    int
	}{{event.Unlocked{}, false, 0}, {event.Locked{}, true, 1}, {event.Locked{}, true, 0}, {event.Unlocked{}, false, 1}} {
		if n := len(l.do(event.Event{Payload: c.payload})); n != c.jobs || l.task.Locked != c.want {
			t.Errorf("%s: got %d jobs, locked %t; want %d, %t", c.payload.Kind(), n, l.task.Locked, c.jobs, c.want)
		}
		if c.jobs > 0 { // it was shown
			s := state.StatusComment{Shown: l.task.Visible}
			l.do(event.Event{Payload: event.StatusSent{Status: s}})
		}
	}
}

// Commits without a pull request stay where they are, and a new branch is made.
func TestReplanStartsNewBranch(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	l.task.Branch.Head, l.task.Work = "c1", &state.Work{Run: "r"}
	l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 9, Mention: true}, Orders: []state.Order{{Verb: state.VerbReplan}}}})
	l.want(state.PhasePreliminaryPlanning, state.JobStart, state.JobRelease)
	if l.task.Branch.Head != "" || l.task.Work != nil || !l.task.Fresh {
		t.Errorf("got branch %+v, work %+v, fresh %t", l.task.Branch, l.task.Work, l.task.Fresh)
	}
}

package machine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// closedPR returns a task whose pull request was just closed.
func closedPR(t *testing.T) *life {
	l := newLife(t)
	l.toPR()
	l.do(event.Event{By: writer, Payload: event.PRClosed{}})
	l.want(state.PhasePRClosed, state.JobDue)
	return l
}

func order(by state.Person, p state.Permission, o state.Order) event.Event {
	return event.Event{By: by, Permission: p, Payload: event.Commented{Issue: &state.Issue{}, Comment: &state.Comment{ID: 60, Mention: true, Body: "words"}, Orders: []state.Order{o}}}
}

// Only people with write access let errand reopen a closed pull request, and only by what they do after it was closed.
func TestWhoReopens(t *testing.T) {
	t.Parallel()
	trigger := func(by state.Person, p state.Permission) event.Event {
		return event.Event{By: by, Permission: p, Via: "label", Repo: &state.Repo{}, Payload: event.Triggered{Issue: &state.Issue{}}}
	}
	write, read := state.PermissionWrite, state.PermissionRead
	early := func(e event.Event) event.Event { e.At = t0.Add(-time.Hour); return e }
	for name, c := range map[string]struct {
		e    event.Event
		want bool
	}{
		"retry":                        {order(writer, write, state.Order{Verb: state.VerbRetry}), true},
		"plan":                         {order(writer, write, state.Order{Verb: state.VerbPlan}), true},
		"a message":                    {order(writer, write, state.Order{Verb: state.VerbMessage}), true},
		"a label":                      {trigger(writer, write), true},
		"status":                       {order(writer, write, state.Order{Verb: state.VerbStatus}), false},
		"retry without write access":   {order(visitor, read, state.Order{Verb: state.VerbRetry}), false},
		"message without write access": {order(visitor, read, state.Order{Verb: state.VerbMessage}), false},
		"a label without write access": {trigger(visitor, read), false},
		"a late retry":                 {early(order(writer, write, state.Order{Verb: state.VerbRetry})), false},
		"a late message":               {early(order(writer, write, state.Order{Verb: state.VerbMessage})), false},
		"a late label":                 {early(trigger(writer, write)), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := closedPR(t)
			for n := range 2 {
				l.do(c.e)
				if got := slices.Contains(kindsOf(l.jobs), state.JobReopen); got != (c.want && n == 0) {
					t.Errorf("time %d: got jobs %v, want one that reopens: %v", n+1, kindsOf(l.jobs), c.want && n == 0)
				}
			}
			l.want(state.PhasePRClosed)
		})
	}
}

// A reopened pull request resumes its task at the head that it has now, and the round that was under way.
func TestReopenedPRResumes(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPR()
	l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Reviewed{Review: state.Review{ID: 3, State: "changes_requested", Body: "No."}}})
	l.do(event.Event{Payload: event.Gathered{}})
	l.launch()
	l.want(state.PhaseAddressingReview)
	l.do(event.Event{By: writer, Payload: event.PRClosed{}})
	l.want(state.PhasePRClosed, state.JobStop)
	if l.task.Run != nil || l.task.PR.State != "closed" || !l.task.PR.KeptUntil.Equal(l.now.Add(14*24*time.Hour)) {
		t.Errorf("got run %v and pull request %+v", l.task.Run, l.task.PR)
	}
	l.do(event.Event{Payload: event.PRReopened{Number: 5, Head: "pushed"}})
	l.want(state.PhasePROpen, state.JobGather)
	if l.task.Branch.Head != "pushed" || l.task.PR.State != "open" || !l.task.PR.KeptUntil.IsZero() {
		t.Errorf("got branch %+v and pull request %+v", l.task.Branch, l.task.PR)
	}
	l.do(event.Event{Payload: event.Gathered{}})
	l.want(state.PhaseAddressingReview, state.JobLaunch)
	if l.task.Round != 1 {
		t.Errorf("got round %d, want the first one to go on", l.task.Round)
	}
}

// beginRound starts the agent's run of a review round about one thread.
func (l *life) beginRound() {
	l.t.Helper()
	l.do(event.Event{Payload: event.Gathered{Feedback: []state.Feedback{{ID: fmt.Sprintf("thread:1:%d", l.now.Unix()), Kind: state.FeedbackThread, By: writer, At: l.now, Thread: 1}}}})
	l.want(state.PhaseAddressingReview, state.JobLaunch)
	l.launch()
}

// The work of a round that the closing interrupted is continued by the next run, however late, even if nothing more is asked when
// the pull request is reopened. Work that was published is not continued: the next round begins at the branch.
func TestInterruptedRoundKeepsItsWork(t *testing.T) {
	t.Parallel()
	work := func(l *life) *state.Work {
		return &state.Work{Run: l.task.Runs[len(l.task.Runs)-1].ID, Ref: "ref1", Paths: 1, LocalHead: "h", LocalTree: "t2"}
	}
	published := func(l *life) *state.Work { return &state.Work{Run: work(l).Run, Head: "H2", Tree: "t2"} }
	closed := event.Event{By: writer, Payload: event.PRClosed{}}
	for name, c := range map[string]struct {
		bring func(*life)
		round int
	}{
		"an agent works": {func(l *life) { l.do(closed) }, 1},
		"its work is shown first": {func(l *life) {
			l.end(state.RunResult{Outcome: "done"})
			l.do(event.Event{Payload: event.Collected{Work: work(l)}})
			l.do(closed)
		}, 1},
		"an agent asked something": {func(l *life) {
			l.end(state.RunResult{Outcome: "question", Question: "Which?"})
			l.want(state.PhaseAwaitingAnswer)
			l.do(closed)
		}, 1},
		"only the answers are missing": {func(l *life) {
			l.end(state.RunResult{Outcome: "done"})
			l.do(event.Event{Payload: event.Collected{Work: work(l)}})
			l.do(event.Event{Payload: event.Committed{Work: published(l)}})
			l.do(event.Event{Payload: event.BranchMoved{}})
			l.want(state.PhaseAddressingReview, state.JobAnswer)
			l.do(closed)
		}, 2},
		"the branch was moved meanwhile": {func(l *life) {
			l.end(state.RunResult{Outcome: "done"})
			l.do(event.Event{Payload: event.Collected{Work: work(l)}})
			l.do(event.Event{Payload: event.Committed{Work: published(l)}})
			l.do(closed)
			l.do(event.Event{Payload: event.BranchMoved{}})
			if l.task.Branch.Head != "H2" {
				l.t.Errorf("got head %s, want the one that the branch was moved to", l.task.Branch.Head)
			}
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.toPR()
			l.beginRound()
			c.bring(l)
			l.want(state.PhasePRClosed)
			l.do(event.Event{By: writer, Payload: event.PRReopened{Number: 5}})
			l.do(event.Event{Payload: event.Gathered{}}) // the thread was resolved
			l.want(state.PhasePROpen)
			l.now = l.now.Add(4 * 24 * time.Hour)
			l.beginRound()
			if l.task.Round != c.round {
				t.Errorf("got round %d, want %d", l.task.Round, c.round)
			}
		})
	}
}

// Webhooks about closing and reopening count in the order of GitHub's times, however they arrive.
func TestLateClosing(t *testing.T) {
	t.Parallel()
	at := t0.Add(time.Hour)
	closed := func(s int) event.Event {
		return event.Event{At: at.Add(time.Duration(s) * time.Second), By: writer, Payload: event.PRClosed{}}
	}
	opened := func(s int) event.Event {
		return event.Event{At: at.Add(time.Duration(s) * time.Second), By: writer, Payload: event.PRReopened{Number: 5}}
	}
	for name, c := range map[string]struct {
		events []event.Event
		want   state.Phase
	}{
		"in order":                 {[]event.Event{closed(1), opened(2)}, state.PhasePROpen},
		"reversed":                 {[]event.Event{opened(2), closed(1)}, state.PhasePROpen},
		"the same second":          {[]event.Event{closed(1), opened(1), closed(1)}, state.PhasePRClosed},
		"the reopening comes last": {[]event.Event{closed(3), opened(2)}, state.PhasePRClosed},
		"another pull request":     {[]event.Event{closed(1), {Payload: event.PRReopened{Number: 6}}}, state.PhasePRClosed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.toPR()
			for _, e := range c.events {
				l.do(e)
			}
			if l.task.Phase != c.want {
				t.Errorf("got phase %s, want %s", l.task.Phase, c.want)
			}
			if l.task.Phase == state.PhasePRClosed {
				l.do(opened(9))
				l.do(closed(10))
				l.do(opened(10))
				if !slices.ContainsFunc(l.jobs, func(j state.Job) bool { return j.Args.Due == state.DuePRClosed }) {
					t.Error("whether it is open is not checked, although it may have been closed later in the same second")
				}
			}
		})
	}
}

// A pull request that stays closed is announced once, and its task canceled after two weeks; the timers of an earlier closing
// do nothing early.
func TestClosedPRExpires(t *testing.T) {
	t.Parallel()
	l := closedPR(t)
	due := func(kind state.DueKind) { l.do(event.Event{Payload: event.Due{For: kind}}) }
	posts := func() int {
		return len(slices.DeleteFunc(slices.Clone(l.jobs), func(j state.Job) bool { return j.Kind != state.JobPost || j.Post.Kind != state.PostPRClosed }))
	}
	if due(state.DuePRClosed); posts() != 0 || slices.Contains(kindsOf(l.jobs), state.JobSuspend) {
		t.Errorf("got jobs %v within seconds, want no comment and the VM kept", kindsOf(l.jobs))
	}
	l.now = l.now.Add(time.Minute)
	if due(state.DuePRClosed); posts() != 1 || !slices.Contains(kindsOf(l.jobs), state.JobSuspend) {
		t.Errorf("got jobs %v, want a comment and the VM suspended", kindsOf(l.jobs))
	}
	l.do(event.Event{By: writer, Payload: event.PRReopened{}})
	l.do(event.Event{By: writer, Payload: event.PRClosed{}})
	l.now = t0.Add(14 * 24 * time.Hour)
	due(state.DueParked)
	l.want(state.PhasePRClosed, state.JobDue)
	l.now = l.now.Add(time.Hour)
	due(state.DueParked)
	l.want(state.PhaseCancelled, state.JobPost)
}

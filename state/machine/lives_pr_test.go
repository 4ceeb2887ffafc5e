package machine

import (
	"slices"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

func (l *life) unassign() {
	l.do(event.Event{By: writer, Via: "assigned", Payload: event.Untriggered{}})
	l.want(state.PhaseCancelled)
}

func has(jobs []state.Job, kind state.JobKind) bool { return slices.Contains(kindsOf(jobs), kind) }

// A new trigger after the end continues the pull request if that is open or was closed recently, and begins anew otherwise.
func TestNextLifeAdopts(t *testing.T) {
	t.Parallel()
	closed := event.Event{By: writer, Payload: event.PRClosed{}}
	for name, c := range map[string]struct {
		events []event.Event // after the task was unassigned
		wait   time.Duration
		adopts bool
		old    int // pull requests that may not be open
	}{
		"it is open":                {nil, 0, true, 0},
		"it was closed":             {[]event.Event{closed}, 13 * 24 * time.Hour, true, 0},
		"it was closed long ago":    {[]event.Event{closed}, 15 * 24 * time.Hour, false, 1},
		"it was closed and opened":  {[]event.Event{closed, {By: writer, Payload: event.PRReopened{Number: 5}}}, 15 * 24 * time.Hour, true, 0},
		"it was merged":             {[]event.Event{{By: writer, Payload: event.PRClosed{Merged: true}}}, 0, false, 0},
		"another one was reopened":  {[]event.Event{closed, {By: writer, Payload: event.PRReopened{Number: 6}}}, 15 * 24 * time.Hour, false, 1},
		"open, and a long time ago": {nil, 300 * 24 * time.Hour, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.toPR()
			l.task.Money.MicroUSD, l.task.Round = 7, 3
			plans := len(l.task.Plans)
			l.task.Plans[plans-1].CommentNode = "plan node"
			l.unassign()
			for _, e := range c.events {
				l.do(e)
			}
			l.now = l.now.Add(c.wait)
			l.trigger()
			l.want(state.PhaseQueued)
			if l.task.Gen != 2 || has(l.jobs, state.JobReopen) != c.adopts || has(l.jobs, state.JobStart) == c.adopts || len(l.task.Replaced) != c.old {
				t.Fatalf("got life %d with jobs %v and replaced %+v", l.task.Gen, kindsOf(l.jobs), l.task.Replaced)
			}
			if want := c.adopts && l.task.PR.State == state.PROpen; want != slices.ContainsFunc(l.jobs, func(j state.Job) bool { return j.Args.Due == state.DueChecks }) {
				t.Errorf("got jobs %v", kindsOf(l.jobs))
			}
			if got, want := slices.Contains(folded(l), "plan node"), !c.adopts; got != want {
				t.Errorf("the plan of the life before is folded: %t, want %t", got, want)
			}
			if !c.adopts {
				return
			}
			l.do(event.Event{Payload: event.PRReopened{Number: 5, Head: "pushed"}})
			l.want(state.PhasePROpen, state.JobGather)
			if l.task.Money.MicroUSD != 7 || l.task.Round != 3 || len(l.task.Plans) != plans || l.task.Branch.Head != "pushed" || l.task.PR.State != "open" {
				t.Errorf("got money %+v, round %d, %d plans, branch %+v, pull request %+v", l.task.Money, l.task.Round, len(l.task.Plans), l.task.Branch, l.task.PR)
			}
		})
	}
}

// While a task checks the pull request that it continues, a failure is retried there, and the news that it was merged ends it.
func TestAdoptingFails(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPR()
	l.unassign()
	l.trigger()
	l.do(event.Event{Payload: event.StepFailed{Failure: state.Failure{Job: state.JobReopen, Class: state.ClassGitHub, Reason: "GitHub refuses it.", Hint: "Comment `retry`."}}})
	l.want(state.PhaseFailed, state.JobPost)
	l.do(order(writer, state.PermissionWrite, state.Order{Verb: state.VerbRetry}))
	l.want(state.PhaseQueued, state.JobReopen)
	l.do(event.Event{Payload: event.PRClosed{Merged: true}})
	l.want(state.PhaseDone)
}

// A task that ended while its pull request was being opened goes on with that step.
func TestAdoptWhileOpening(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	l.end(state.RunResult{Outcome: "done"})
	l.do(event.Event{Payload: event.Collected{Work: &state.Work{Run: l.task.Work.Run, Ref: "ref1", Paths: 1, LocalHead: "h", LocalTree: "t"}}})
	l.do(event.Event{Payload: event.Committed{Work: &state.Work{Run: l.task.Work.Run, Head: "H", Tree: "t"}}})
	l.do(event.Event{Payload: event.BranchMoved{}})
	l.want(state.PhaseImplementing, state.JobOpenPR)
	l.unassign()
	l.trigger()
	l.want(state.PhaseImplementing, state.JobOpenPR)
	i := slices.IndexFunc(l.jobs, func(j state.Job) bool { return j.Kind == state.JobOpenPR })
	if l.jobs[i].UnknownSince.IsZero() {
		t.Error("the job does not look for a pull request that the ended life may have opened")
	}
	l.do(event.Event{Payload: event.PROpened{PR: state.PR{Number: 5, State: "open"}}})
	l.want(state.PhasePROpen)
	l.do(order(writer, state.PermissionWrite, state.Order{Verb: state.VerbRestart}))
	l.want(state.PhaseQueued, state.JobClosePR)
}

// restart begins anew from every phase, and closes the pull request, also one that a job of the life before opens late.
func TestRestart(t *testing.T) {
	t.Parallel()
	again := order(writer, state.PermissionWrite, state.Order{Verb: state.VerbRestart})
	for name, c := range map[string]struct {
		bring func(*life)
		close bool
	}{
		"before it began": {func(l *life) { l.trigger() }, false},
		"a plan waits":    {(*life).toPreliminary, false},
		"an agent works":  {(*life).implementing, false},
		"pull request":    {(*life).toPR, true},
		"closed": {func(l *life) {
			l.toPR()
			l.do(event.Event{By: writer, Payload: event.PRClosed{}})
		}, false},
		"unassigned": {func(l *life) { l.toPR(); l.unassign() }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			c.bring(l)
			l.do(order(visitor, state.PermissionRead, state.Order{Verb: state.VerbRestart}))
			if l.task.Gen != 1 {
				t.Fatal("a person without write access restarted the task")
			}
			for _, onPR := range []bool{false, true} {
				closed := order(writer, state.PermissionWrite, state.Order{Verb: state.VerbRestart})
				said := event.Of[event.Commented](closed)
				said.Comment.OnPR, said.Issue = onPR, &state.Issue{Closed: true}
				closed.Payload = said
				if l.do(closed); l.task.Gen != 1 || !l.hasReply(state.ReplyRetryClosed) || has(l.jobs, state.JobClosePR) {
					t.Fatalf("the issue is closed: got life %d and jobs %v", l.task.Gen, kindsOf(l.jobs))
				}
			}
			l.do(again)
			l.want(state.PhaseQueued, state.JobStart, state.JobReact)
			if l.task.Gen != 2 || l.task.PR != nil || l.task.Run != nil || len(l.task.Plans) != 0 || has(l.jobs, state.JobClosePR) != c.close {
				t.Errorf("got life %d with pull request %+v, run %+v and jobs %v", l.task.Gen, l.task.PR, l.task.Run, kindsOf(l.jobs))
			}
			l.do(event.Event{Payload: event.PROpened{PR: state.PR{Number: 8, State: "open"}}})
			l.want(state.PhaseQueued, state.JobClosePR)
			l.do(event.Event{Payload: event.PRReplaced{Number: 8, URL: "u", Closed: true}})
			l.want(state.PhaseQueued, state.JobPost)
			l.do(event.Event{By: writer, Payload: event.PRReopened{Number: 8}})
			l.want(state.PhaseQueued, state.JobClosePR)
			if l.do(event.Event{Payload: event.PRReplaced{Number: 8, URL: "u", Closed: true}}); has(l.jobs, state.JobPost) {
				t.Error("the comment was posted twice")
			}
		})
	}
}

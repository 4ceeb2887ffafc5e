package machine

import (
	"slices"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// retried lets a person write `retry` on the issue.
func (l *life) retried(by state.Person, p state.Permission, issue state.Issue, o state.Order) {
	l.t.Helper()
	o.Verb = state.VerbRetry
	e := order(by, p, o)
	said := event.Of[event.Commented](e)
	said.Issue, said.Comment = &issue, &state.Comment{ID: l.now.Unix(), Mention: true, Body: "words", At: l.now}
	e.Payload = said
	l.do(e)
}

// savesWork lets the job that stops or packs report an archive, and the VM's deletion.
func (l *life) savesWork(ref string) {
	l.t.Helper()
	stop := jobOf(l.jobs, state.JobStop)
	if stop.Kind == "" || !l.task.End.Saving {
		l.t.Fatalf("got jobs %v and end %+v, want a job that packs the work", kindsOf(l.jobs), l.task.End)
	}
	l.do(event.Event{Run: stop.Run, Payload: event.WorkSaved{Archive: &state.SuspendedWork{Mode: settings.SleepArchive, Ref: ref, VM: stop.Args.VM, Base: "b0"}}})
	l.want(state.PhaseCancelled, state.JobRelease)
	l.do(event.Event{Payload: event.Released{VM: stop.Args.VM, Reason: state.VMEndCancelled}})
}

var bug = state.Issue{Title: "Bug", Body: "It breaks."}

// posts brings a posted plan the address of its comment, as GitHub does.
func (l *life) posts(bring func(*life)) {
	bring(l)
	for i := range l.task.Plans {
		l.task.Plans[i].CommentURL = "https://github.example/o/r/issues/1#c"
	}
}

// A canceled task goes on where it ended, with its plans, approvals and costs, and with its work if that was saved.
func TestRetryContinuesCanceledTask(t *testing.T) {
	t.Parallel()
	collected := func(l *life) {
		l.implementing()
		l.end(state.RunResult{Outcome: "done"})
		l.do(event.Event{Payload: event.Collected{Work: &state.Work{Run: l.task.Work.Run, Ref: "ref1", Base: "b0", Paths: 1, LocalHead: "h", LocalTree: "t"}}})
		l.want(state.PhaseImplementing, state.JobCommit)
	}
	for name, c := range map[string]struct {
		bring func(*life)
		saves bool
		fresh bool
		issue state.Issue
		phase state.Phase
		job   state.JobKind // the next one
	}{
		"while an agent works":           {(*life).implementing, true, false, bug, state.PhaseImplementing, state.JobLaunch},
		"while an agent works, fresh":    {(*life).implementing, true, true, bug, state.PhaseImplementing, state.JobLaunch},
		"while its work is read":         {func(l *life) { l.implementing(); l.end(state.RunResult{Outcome: "done"}) }, true, false, bug, state.PhaseImplementing, state.JobCollect},
		"while its work is read, fresh":  {func(l *life) { l.implementing(); l.end(state.RunResult{Outcome: "done"}) }, true, true, bug, state.PhaseImplementing, state.JobLaunch},
		"while its work is published":    {collected, true, false, bug, state.PhaseImplementing, state.JobCommit},
		"while changes wait":             {(*life).toShown, true, false, bug, state.PhaseAwaitingPublishApproval, state.JobDue},
		"while changes wait, fresh":      {(*life).toShown, true, true, bug, state.PhaseImplementing, state.JobLaunch},
		"before it began":                {(*life).trigger, false, false, bug, state.PhaseQueued, state.JobStart},
		"while an agent plans":           {func(l *life) { l.trigger(); l.start(); l.launch() }, false, false, bug, state.PhasePreliminaryPlanning, state.JobStart},
		"while a plan waits":             {(*life).toPreliminary, false, false, bug, state.PhaseAwaitingPreliminaryApproval, state.JobDue},
		"while a plan waits, edited":     {(*life).toPreliminary, false, false, state.Issue{Title: "Bug", Body: "It burns."}, state.PhasePreliminaryPlanning, state.JobStart},
		"while an agent works, edited":   {(*life).implementing, true, false, state.Issue{Title: "Bug", Body: "It burns."}, state.PhaseImplementing, state.JobLaunch},
		"after a failure":                {func(l *life) { l.implementing(); l.end(state.RunResult{Class: state.RunFatal, Status: "refused"}) }, true, false, bug, state.PhaseImplementing, state.JobLaunch},
		"while people are asked":         {func(l *life) { l.implementing(); l.end(state.RunResult{Outcome: "question", Question: "Which?"}) }, true, false, bug, state.PhaseImplementing, state.JobLaunch},
		"while it could not be reached ": {func(l *life) { l.implementing(); l.comment(state.VerbStop) }, true, false, bug, state.PhaseImplementing, state.JobLaunch},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.posts(c.bring)
			l.task.Money.MicroUSD = 7
			l.task.SeenUntrustedIDs = []string{"thumb:R_1"} // its check ends with the task
			plans := len(l.task.Plans)
			l.comment(state.VerbCancel)
			if c.saves {
				l.savesWork("a1")
			} else if has(l.jobs, state.JobStop) {
				l.do(event.Event{Run: jobOf(l.jobs, state.JobStop).Run, Payload: event.WorkSaved{}})
			}
			l.retried(visitor, state.PermissionRead, c.issue, state.Order{})
			l.want(state.PhaseCancelled)
			l.retried(writer, state.PermissionWrite, c.issue, state.Order{Fresh: c.fresh})
			l.want(c.phase, c.job, state.JobReact)
			got := l.task
			if got.Gen != 2 || got.Money.MicroUSD != 7 || len(got.Plans) != plans || got.VM != nil || got.End != nil || got.History[0].Phase != state.PhaseQueued {
				t.Errorf("got life %d, money %+v, %d plans, VM %+v, end %+v", got.Gen, got.Money, len(got.Plans), got.VM, got.End)
			}
			if got.Phase.AwaitsApproval() && got.HasSeen("thumb:R_1") {
				t.Error("a 👍 from before the cancel does not count any more")
			}
			if restores := got.WorkToRestore() != nil; restores != (c.saves && !c.fresh) {
				t.Errorf("got work to restore: %v", restores)
			}
			if p := got.NewestPlan(); p != nil && p.Superseded != (c.issue.Body != bug.Body || c.fresh) {
				t.Errorf("got the newest revision %+v", p)
			}
		})
	}
}

// A retry while the work is still being saved goes on with the VM that has it.
func TestRetryBeforeWorkIsSaved(t *testing.T) {
	t.Parallel()
	for name, fresh := range map[string]bool{"continued": false, "fresh": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.implementing()
			l.comment(state.VerbCancel)
			stop := jobOf(l.jobs, state.JobStop)
			if post := jobOf(l.jobs, state.JobPost); !post.NotBefore.After(l.now) || !l.task.End.Saving {
				t.Errorf("the last comment is posted at %s before the work is saved", post.NotBefore)
			}
			l.retried(writer, state.PermissionWrite, bug, state.Order{Fresh: fresh})
			l.want(state.PhaseImplementing, state.JobLaunch)
			if kept := l.task.VM != nil; kept == fresh || has(l.jobs, state.JobRelease) != fresh {
				t.Fatalf("got VM %+v and jobs %v", l.task.VM, kindsOf(l.jobs))
			}
			l.do(event.Event{Run: stop.Run, Payload: event.WorkSaved{Archive: &state.SuspendedWork{Mode: settings.SleepArchive, Ref: "a1", VM: stop.Args.VM}}})
			l.want(state.PhaseImplementing)
			if has(l.jobs, state.JobRelease) || has(l.jobs, state.JobPost) || has(l.jobs, state.JobForget) != fresh || l.task.Run == nil {
				t.Errorf("got jobs %v, run %+v", kindsOf(l.jobs), l.task.Run)
			}
		})
	}
}

// The last comment is posted once: when the work is saved, or a while later.
func TestLastCommentWaitsForTheWork(t *testing.T) {
	t.Parallel()
	for name, posted := range map[string]bool{"in time": false, "late": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.implementing()
			l.comment(state.VerbCancel)
			stop, post := jobOf(l.jobs, state.JobStop), jobOf(l.jobs, state.JobPost)
			if posted {
				l.do(event.Event{Payload: event.Posted{Comment: state.Posted{Key: post.Key, ID: 90, At: l.now}, Post: post.Post}})
			}
			l.do(event.Event{Run: stop.Run, Payload: event.WorkSaved{}})
			again := jobOf(l.jobs, state.JobPost)
			if posted != (again.Kind == "") || !posted && (again.Key != post.Key || !again.NotBefore.IsZero()) {
				t.Errorf("got post %+v", again)
			}
		})
	}
}

// What `retry` cannot continue is answered.
func TestRetryOfCanceledTaskIsRefused(t *testing.T) {
	t.Parallel()
	closed := bug
	closed.Closed = true
	for name, c := range map[string]struct {
		bring func(*life)
		wait  time.Duration
		issue state.Issue
		want  string
	}{
		"the work is kept":       {(*life).implementing, 23 * time.Hour, bug, ""},
		"the work is gone":       {(*life).implementing, 25 * time.Hour, bug, state.ReplyNothingToRetry},
		"the issue is closed":    {(*life).implementing, time.Hour, closed, state.ReplyRetryClosed},
		"pull request":           {(*life).toPR, 300 * time.Hour, bug, ""},
		"pull request, closed":   {(*life).toPR, time.Hour, closed, ""},
		"pull request of before": {func(l *life) { l.toPR(); l.do(event.Event{By: writer, Payload: event.PRClosed{}}) }, 15 * 24 * time.Hour, bug, state.ReplyNothingToRetry},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			c.bring(l)
			l.comment(state.VerbCancel)
			if has(l.jobs, state.JobStop) {
				l.savesWork("a1")
			}
			l.now = l.now.Add(c.wait)
			l.retried(writer, state.PermissionWrite, c.issue, state.Order{})
			if c.want == "" && l.task.Gen == 2 && !l.task.Ended() {
				return
			}
			if l.task.Gen != 1 || !l.hasReply(c.want) {
				t.Errorf("got life %d (%s) and jobs %v", l.task.Gen, l.task.Phase, kindsOf(l.jobs))
			}
		})
	}
	l := newLife(t)
	l.implementing()
	said := l.now
	l.now = l.now.Add(time.Hour)
	l.comment(state.VerbCancel)
	late := order(writer, state.PermissionWrite, state.Order{Verb: state.VerbRetry})
	late.At = said
	if l.do(late); l.task.Gen != 1 || !l.hasReply(state.ReplyNothingToRetry) {
		t.Errorf("a retry from before the end: got life %d and jobs %v", l.task.Gen, kindsOf(l.jobs))
	}
}

// A task that was canceled during a round goes on with its pull request, and with the round's work.
func TestRetryContinuesPullRequest(t *testing.T) {
	t.Parallel()
	for name, onPR := range map[string]bool{"on the issue": false, "on the pull request": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.toPR()
			l.beginRound()
			l.comment(state.VerbCancel)
			l.savesWork("a1")
			e := order(writer, state.PermissionWrite, state.Order{Verb: state.VerbRetry, Turns: 60})
			said := event.Of[event.Commented](e)
			if said.Issue = &bug; onPR {
				said.Issue, said.Comment.OnPR = nil, true
			}
			e.Payload = said
			l.do(e)
			l.want(state.PhaseQueued, state.JobReopen)
			l.do(event.Event{Payload: event.PRReopened{Number: 5, Head: "H"}})
			l.want(state.PhasePROpen, state.JobGather)
			l.do(event.Event{Payload: event.Gathered{Feedback: []state.Feedback{{ID: "thread:1:1", Kind: state.FeedbackThread, By: writer, At: l.now, Thread: 1}}}})
			l.want(state.PhaseAddressingReview, state.JobLaunch)
			if l.task.Round != 1 || l.task.WorkToRestore() == nil || l.task.Turns != 60 || l.task.Frozen.Title != "Bug" {
				t.Errorf("got round %d, work %+v, turns %d, issue %+v", l.task.Round, l.task.WorkToRestore(), l.task.Turns, l.task.Frozen)
			}
		})
	}
}

// The archive of a task that was continued and canceled again is kept for the time after the second end.
func TestSecondCancelKeepsTheWork(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.implementing()
	l.comment(state.VerbCancel)
	l.savesWork("a1")
	first := event.Event{Payload: event.NewDue(state.DueForget, string(settings.SleepArchive)+":a1")}
	until := l.task.End.KeptUntil
	l.now = until.Add(-time.Hour)
	l.retried(writer, state.PermissionWrite, bug, state.Order{})
	l.comment(state.VerbCancel)
	due := slices.IndexFunc(l.jobs, func(j state.Job) bool { return j.Args.Due == state.DueForget })
	if due < 0 || !l.jobs[due].NotBefore.Equal(l.task.End.KeptUntil) {
		t.Fatalf("got jobs %+v", l.jobs)
	}
	l.now = until
	if l.do(first); l.task.Suspended == nil || has(l.jobs, state.JobForget) {
		t.Error("the work is deleted a day after the first end")
	}
	l.now = l.task.End.KeptUntil
	if l.do(first); l.task.Suspended != nil || !has(l.jobs, state.JobForget) {
		t.Error("the work is kept after the second end")
	}
}

// `retry` answers the question about the work of others: errand continues anyway.
func TestRetryDespiteWorkOfOthers(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.do(event.Event{Payload: event.QuestionRaised{Question: state.Question{Kind: state.AskExisting, Text: "#5"}}})
	l.want(state.PhaseAwaitingAnswer, state.JobPost)
	l.comment(state.VerbRetry)
	l.want(state.PhaseQueued, state.JobStart)
	if !l.task.Context.Cleared {
		t.Error("errand would ask again")
	}
}

// TestPlanOnClosedIssue: `plan` after the end starts nothing while the issue is closed, unless it continues a pull request. The
// reply says what to do, and the same comment on the open issue starts the next life.
func TestPlanOnClosedIssue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bring   func(*life)
		by      state.Permission
		refused bool
	}{
		"canceled":             {func(l *life) { l.implementing(); l.comment(state.VerbCancel) }, state.PermissionWrite, true},
		"merged":               {func(l *life) { l.toPR(); l.do(event.Event{By: writer, Payload: event.PRClosed{Merged: true}}) }, state.PermissionWrite, true},
		"with a pull request":  {func(l *life) { l.toPR(); l.unassign() }, state.PermissionWrite, false},
		"without write access": {func(l *life) { l.implementing(); l.comment(state.VerbCancel) }, state.PermissionRead, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			c.bring(l)
			if !l.task.Ended() {
				t.Fatalf("the task is %s", l.task.Phase)
			}
			l.now = l.now.Add(time.Minute)
			plan := func(closed bool) {
				e := order(writer, c.by, state.Order{Verb: state.VerbPlan})
				said := event.Of[event.Commented](e)
				said.Comment, said.Issue = &state.Comment{ID: l.now.Unix(), Mention: true, Body: "words", At: l.now}, &state.Issue{Title: "Bug", Body: "It breaks.", Closed: closed}
				e.Payload = said
				l.do(e)
			}
			plan(true)
			writes := c.by == state.PermissionWrite
			if refused := l.task.Gen == 1; refused != c.refused || l.hasReply(state.ReplyRetryClosed) != (refused && writes) {
				t.Errorf("got life %d and jobs %v", l.task.Gen, kindsOf(l.jobs))
			}
			if c.refused && writes {
				if plan(false); l.task.Gen != 2 {
					t.Errorf("the issue is open again: got life %d and jobs %v", l.task.Gen, kindsOf(l.jobs))
				}
			}
		})
	}
}

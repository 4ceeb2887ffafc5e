package machine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// showRound lets the agent end its run, and shows the changes for approval.
func (l *life) showRound() {
	l.t.Helper()
	l.task.Settings.Publish = settings.PublishAfterApproval
	l.launch()
	l.end(state.RunResult{Outcome: "done"})
	l.do(event.Event{Payload: event.Collected{Work: &state.Work{Run: l.task.Work.Run, Ref: "ref2", Paths: 1, LocalHead: "h2", LocalTree: "t2"}}})
	l.show("+more", 31)
}

// expire lets the time for the approval of the shown changes end.
func (l *life) expire() {
	l.do(event.Event{Payload: event.Due{For: state.DueExpire, Plan: l.task.NewestPlan().Hash}})
}

// TestActsBeforeAnOwnRoundExpires: after the end of a round whose changes nobody approved, errand reads the branch, which somebody may have pushed
// to. It tries again if a person with write access has acted meanwhile, otherwise it does not.
func TestActsBeforeAnOwnRoundExpires(t *testing.T) {
	t.Parallel()
	bot := state.Person{ID: 5, Login: "format[bot]", Bot: true}
	for name, c := range map[string]struct {
		act    event.Event
		pushed bool
		again  bool
	}{
		"nobody":             {act: event.Event{Payload: event.ChecksChanged{}}},
		"a person's push":    {act: event.Event{By: writer, Payload: event.Pushed{Head: "theirs"}}, pushed: true, again: true},
		"a bot's push":       {act: event.Event{By: bot, Payload: event.Pushed{Head: "theirs"}}, pushed: true},
		"a push by a sweep":  {act: event.Event{Payload: event.Pushed{Head: "theirs"}}, pushed: true},
		"a writer's command": {act: order(writer, state.PermissionWrite, state.Order{Verb: state.VerbStatus}), again: true},
		"a reader's command": {act: order(visitor, state.PermissionRead, state.Order{Verb: state.VerbStatus})},
	} {
		for finding, begin := range ownRounds {
			t.Run(name+", "+finding, func(t *testing.T) {
				t.Parallel()
				l := openPR(t)
				begin(l)
				l.showRound()
				l.do(c.act)
				l.want(state.PhaseAwaitingPublishApproval)
				l.expire()
				if l.want(state.PhasePROpen); l.updates() < 0 {
					t.Fatal("the branch is not read")
				}
				read := event.BaseRead{Result: event.BaseBehind, Newest: strings.Repeat("c", 40)}
				if c.pushed {
					read.Head = "theirs"
				}
				if finding == "a conflict" {
					read.Result = event.BaseConflict
				}
				l.compared(read)
				if want := map[bool]string{true: "theirs", false: "H"}[c.pushed]; l.task.Branch.Head != want {
					t.Errorf("got the head %s, want %s", l.task.Branch.Head, want)
				}
				got := l.task.Phase == state.PhaseAddressingReview
				if finding == "a failing check" {
					got = l.checksFail()
				}
				if got != c.again {
					t.Errorf("errand tries again: %t, %+v", got, l.task.PR)
				}
			})
		}
	}
}

// TestRequestInAnOwnRoundExpires: a round that also does what somebody asked for is not errand's own, so that its end is not silent. The condition of
// an approval, which all runs of a task get, is no such request.
func TestRequestInAnOwnRoundExpires(t *testing.T) {
	t.Parallel()
	gathered := func(f state.Feedback) func(*life) {
		return func(l *life) { l.task.Feedback = append(l.task.Feedback, f) }
	}
	bot := state.Person{ID: 8, Login: "lint[bot]", Bot: true}
	for name, c := range map[string]struct {
		before, after func(*life) // the agent begins
		want          state.Phase
	}{
		"nothing else":      {want: state.PhasePROpen},
		"a comment":         {before: func(l *life) { l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: mention()}) }, want: state.PhaseCancelled},
		"a review":          {before: gathered(state.Feedback{ID: "review:1", Kind: state.FeedbackReview, By: writer}), want: state.PhaseCancelled},
		"a listed bot":      {before: gathered(state.Feedback{ID: "thread:1:2", Kind: state.FeedbackThread, By: bot, Thread: 1}), want: state.PhaseCancelled},
		"a condition":       {before: gathered(state.Feedback{ID: "comment:3", Kind: state.FeedbackCondition, By: writer}), want: state.PhasePROpen},
		"of the next round": {after: gathered(state.Feedback{ID: "thread:1:2", Kind: state.FeedbackThread, By: writer, Thread: 1}), want: state.PhasePROpen},
	} {
		for finding, begin := range ownRounds {
			t.Run(name+", "+finding, func(t *testing.T) {
				t.Parallel()
				l := openPR(t)
				if c.before != nil {
					c.before(l)
				}
				begin(l)
				l.showRound()
				if c.after != nil {
					c.after(l)
				}
				l.expire()
				l.want(c.want)
				if left := len(l.task.Feedback) > 0; c.after != nil && !left {
					t.Error("the request for the next round is lost")
				}
			})
		}
	}
}

// TestRoundWithoutWorkEnds: a push drops what a round was to do whose run could not be launched. No run is paid for then, whoever resumes the task. A
// person's request, and a run that has begun, are continued.
func TestRoundWithoutWorkEnds(t *testing.T) {
	t.Parallel()
	fails := func(retry time.Duration) func(*life) {
		return func(l *life) {
			f := state.Failure{Job: state.JobLaunch, Class: state.ClassGitHub, Reason: "No servers are left."}
			if retry > 0 {
				f.RetryAt = l.now.Add(retry)
			}
			l.do(event.Event{Run: l.task.Run.ID, Payload: event.StepFailed{Failure: f}})
		}
	}
	crashes := func(l *life) {
		l.launch()
		l.end(state.RunResult{Status: state.StatusCrashed, Class: state.RunRetryable})
	}
	due := func(l *life) { l.do(event.Event{Payload: event.NewDue(state.DueResume, "")}) }
	retry := func(l *life) {
		l.do(order(writer, state.PermissionWrite, state.Order{Verb: state.VerbRetry}))
	}
	push := func(l *life) { l.do(event.Event{By: writer, Payload: event.Pushed{Head: "theirs"}}) }
	asked := func(l *life) { l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: mention()}) }
	for name, c := range map[string]struct {
		first  func(*life)
		events []func(*life)
		ends   bool
	}{
		"interrupted, resumed":       {events: []func(*life){fails(time.Minute), push, due}, ends: true},
		"failed, a person's retry":   {events: []func(*life){fails(0), push, retry}, ends: true},
		"no push":                    {events: []func(*life){fails(time.Minute), due}},
		"a person's request as well": {first: asked, events: []func(*life){fails(time.Minute), push, due}},
		"a run that had begun":       {events: []func(*life){crashes, push, due}},
	} {
		for finding, begin := range ownRounds {
			t.Run(name+", "+finding, func(t *testing.T) {
				t.Parallel()
				l := openPR(t)
				if c.first != nil {
					c.first(l)
				}
				begin(l)
				l.want(state.PhaseAddressingReview, state.JobLaunch)
				for _, f := range c.events {
					f(l)
				}
				if !c.ends {
					l.want(state.PhaseAddressingReview, state.JobLaunch)
					return
				}
				l.want(state.PhasePROpen, state.JobGather)
				if l.task.Run != nil || slices.Contains(kindsOf(l.jobs), state.JobLaunch) || l.task.Step != "" || l.task.Branch.Head != "theirs" {
					t.Errorf("got the run %+v, step %q, jobs %v", l.task.Run, l.task.Step, kindsOf(l.jobs))
				}
			})
		}
	}
}

package machine

import (
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// ownRounds begin rounds that nobody asked for: because of a failing check, and because of a conflict with the base.
var ownRounds = map[string]func(*life){
	"a failing check": func(l *life) {
		l.checksFail()
		l.examined(func(e *event.ChecksExamined) { e.Failures[0].Head = e.Head })
	},
	"a conflict": func(l *life) { l.compared(event.BaseRead{Result: event.BaseConflict, Newest: strings.Repeat("b", 40)}) },
}

// A failing check and a conflict are those of one head. When the branch has another one, no run gets them any more, however the task came there.
func TestFindingsOfAnotherHeadAreDropped(t *testing.T) {
	t.Parallel()
	push := func(l *life) { l.do(event.Event{By: writer, Payload: event.Pushed{Head: "theirs"}}) }
	closes := func(l *life) { l.do(event.Event{By: writer, Payload: event.PRClosed{}}) }
	reopens := func(head string) func(*life) {
		return func(l *life) {
			l.do(event.Event{By: writer, Payload: event.PRReopened{Number: l.task.PR.Number, Head: head}})
		}
	}
	for name, c := range map[string]struct {
		events []func(*life)
		phase  state.Phase
		kept   bool
	}{
		"a push before the run":        {[]func(*life){push}, state.PhasePROpen, false},
		"a push during the run":        {[]func(*life){(*life).launch, push}, state.PhaseAddressingReview, true}, // it answers them
		"closed and reopened":          {[]func(*life){(*life).launch, closes, reopens("H")}, state.PhasePROpen, true},
		"reopened at another head":     {[]func(*life){(*life).launch, closes, reopens("theirs")}, state.PhasePROpen, false},
		"a push while it is closed":    {[]func(*life){(*life).launch, closes, push}, state.PhasePRClosed, false},
		"closed after a push":          {[]func(*life){(*life).launch, push, closes}, state.PhasePRClosed, false},
		"the next life":                {[]func(*life){(*life).launch, (*life).unassign, (*life).trigger, reopens("H")}, state.PhasePROpen, true},
		"the next life at another one": {[]func(*life){(*life).launch, (*life).unassign, (*life).trigger, reopens("theirs")}, state.PhasePROpen, false},
		"after a push, the next life":  {[]func(*life){(*life).launch, push, (*life).unassign, (*life).trigger}, state.PhaseQueued, false},
	} {
		for finding, begin := range ownRounds {
			t.Run(name+", "+finding, func(t *testing.T) {
				t.Parallel()
				l := openPR(t)
				begin(l)
				l.want(state.PhaseAddressingReview, state.JobLaunch)
				for _, f := range c.events {
					f(l)
				}
				l.want(c.phase)
				if got := slices.ContainsFunc(l.task.Feedback, isOwnFinding); got != c.kept || l.task.Phase == state.PhasePROpen && l.task.Run != nil {
					t.Errorf("kept: %t, run %v", got, l.task.Run)
				}
				if l.do(event.Event{Payload: event.Gathered{}}); l.task.Phase == state.PhaseAddressingReview && !c.kept {
					t.Error("a round begins for another head")
				}
			})
		}
	}
}

// A push before the run of a round leaves the other feedback of the round.
func TestRequestsSurviveAPush(t *testing.T) {
	t.Parallel()
	l := openPR(t)
	l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: mention()})
	ownRounds["a failing check"](l)
	l.do(event.Event{By: writer, Payload: event.Pushed{Head: "theirs"}})
	if l.want(state.PhaseAddressingReview); len(l.task.Feedback) != 1 || l.task.Feedback[0].Kind != state.FeedbackComment {
		t.Errorf("got %+v", l.task.Feedback)
	}
}

// An approval stands during a round that nobody asked for, so that errand notices later that only the newest commits of the base are missing.
func TestApprovalStandsInOwnRounds(t *testing.T) {
	t.Parallel()
	requests := map[string]func(*life){
		"a review": func(l *life) {
			l.do(event.Event{Payload: event.Gathered{Feedback: []state.Feedback{{ID: "thread:1:2", Kind: state.FeedbackThread, By: writer, Thread: 1}}}})
		},
		"a comment and a failing check": func(l *life) {
			l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: mention()})
			ownRounds["a failing check"](l)
		},
	}
	for _, group := range []map[string]func(*life){ownRounds, requests} {
		for name, begin := range group {
			l := openPR(t)
			l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Reviewed{Review: state.Review{ID: 1, State: state.ReviewApproved}}})
			begin(l)
			l.round("H2")
			_, stands := ownRounds[name]
			if l.task.PR.Ready != stands {
				t.Errorf("%s: approved %t", name, l.task.PR.Ready)
			}
			l.do(event.Event{Payload: event.ChecksRead{Checks: "success", Head: "H2"}})
			if got := l.updates() >= 0; got != stands {
				t.Errorf("%s: compared with the base: %t", name, got)
			}
		}
	}
}

// Changes that nobody asked for and nobody approves are not published, which errand says once; the pull request and its task stay. Other
// changes end the task.
func TestOwnRoundExpires(t *testing.T) {
	t.Parallel()
	review := func(l *life) {
		l.do(event.Event{Payload: event.Gathered{Feedback: []state.Feedback{{ID: "thread:1:2", Kind: state.FeedbackThread, By: writer, Thread: 1}}}})
	}
	for name, c := range map[string]struct {
		begin  func(*life)
		closed bool
		reason string // empty: the task ends
	}{
		"a failing check":       {begin: ownRounds["a failing check"], reason: state.RoundChecks},
		"a conflict":            {begin: ownRounds["a conflict"], reason: state.RoundConflict},
		"a review":              {begin: review},
		"the first changes":     {},
		"a closed pull request": {begin: ownRounds["a failing check"], closed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			if c.begin == nil {
				l.toShown()
			} else {
				l.toPR()
				l.task.Settings.Publish = settings.PublishAfterApproval
				c.begin(l)
				l.launch()
				l.end(state.RunResult{Outcome: "done"})
				l.do(event.Event{Payload: event.Collected{Work: &state.Work{Run: l.task.Work.Run, Ref: "ref2", Paths: 1, LocalHead: "h2", LocalTree: "t2"}}})
				l.show("+more", 31)
			}
			if c.closed {
				l.task.PR.State = state.PRClosed
			}
			shown := l.task.NewestPlan().Hash
			l.do(event.Event{Payload: event.Due{For: state.DueExpire, Plan: shown}})
			posts := slices.DeleteFunc(slices.Clone(l.jobs), func(j state.Job) bool { return j.Post == nil || j.Post.Kind != state.PostRoundExpired })
			if c.reason == "" {
				if l.want(state.PhaseCancelled); len(posts) > 0 {
					t.Errorf("got %+v", posts)
				}
				return
			}
			l.want(state.PhasePROpen, state.JobGather)
			if len(posts) != 1 || posts[0].Post.Reason != c.reason || posts[0].Post.Hash != shown || l.task.Work != nil || len(l.task.Feedback) > 0 ||
				len(l.task.Saved) != 1 || l.task.NewestPlan().Open() {
				t.Fatalf("got comments %+v, work %v, feedback %+v, saved %+v", posts, l.task.Work, l.task.Feedback, l.task.Saved)
			}
			l.do(event.Event{Payload: event.Gathered{}})
			if l.want(state.PhasePROpen); l.checksFail() && c.reason == state.RoundChecks {
				t.Error("examined again although nobody did anything")
			}
			l.do(event.Event{Payload: event.BaseMoved{}})
			if l.compared(event.BaseRead{Result: event.BaseConflict, Newest: strings.Repeat("c", 40)}); c.reason == state.RoundConflict &&
				(l.task.Phase != state.PhasePROpen || len(l.bases()) > 0) {
				t.Errorf("got %s, %q although nobody did anything", l.task.Phase, l.bases())
			}
		})
	}
}

package machine

import (
	"slices"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// Somebody vouches for a comment while the start reads the discussion, in which the comment is still withheld. The
// discussion is read again before the prompt mentions the comment; a comment that stays withheld does not block the
// task.
func TestVouchedDuringReadingIsReadAgain(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Thumb{Comment: &state.Comment{ID: 77, At: l.now}}})
	start := func() {
		l.do(event.Event{Payload: event.Started{Start: event.Start{Settings: settings.Default(), Visible: true, Branch: state.Branch{Name: "b", Base: "main", BaseSHA: "b0"}, ReadAt: l.now}}})
	}
	start()
	l.want(state.PhaseQueued, state.JobStart)
	i := slices.IndexFunc(l.jobs, func(j state.Job) bool { return j.Kind == state.JobStart })
	if !l.jobs[i].NotBefore.After(l.now) || l.enqueued(state.JobLaunch) {
		t.Errorf("got a second reading at %s, now is %s; jobs %v", l.jobs[i].NotBefore, l.now, kindsOf(l.jobs))
	}
	l.now = l.now.Add(2 * time.Minute)
	start()
	l.want(state.PhasePreliminaryPlanning, state.JobLaunch)
	if len(l.task.Feedback) != 0 {
		t.Errorf("got feedback about an invisible comment: %+v", l.task.Feedback)
	}
}

// A comment that was made during planning, and read again with the discussion, is there once.
func TestAnsweredCommentIsInDiscussionOnce(t *testing.T) {
	t.Parallel()
	for name, listed := range map[string]bool{"read again": true, "not read again": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.trigger()
			l.start()
			l.launch()
			l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 50, Body: "Mind the tests.", At: l.now}}})
			if listed {
				l.task.Context.Comments = []state.DiscussionComment{{ID: 50, By: writer, Body: "Mind the tests."}}
			}
			l.end(state.RunResult{Text: "A plan.", Outcome: "build"})
			l.launch()
			l.end(state.RunResult{Text: "Another.", Outcome: "build"})
			l.want(state.PhaseAwaitingPreliminaryApproval)
			if got := l.task.Context.Comments; len(got) != 1 || got[0].Body != "Mind the tests." {
				t.Errorf("got discussion %+v", got)
			}
		})
	}
}

// The reason for a replan reaches the agent once, whether or not GitHub lists the comment yet when the discussion is
// read again.
func TestReplanReasonReachesAgentOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		why    string
		queued bool
		listed bool
		want   int // to be answered, besides the discussion
	}{
		"before a plan, not listed yet": {why: "the API has changed", queued: true, want: 1},
		"before a plan, listed":         {why: "the API has changed", queued: true, listed: true},
		"after a plan, not listed yet":  {why: "the API has changed", want: 1},
		"after a plan, listed":          {why: "the API has changed", listed: true, want: 1}, // the prompt contains it only there
		"without a reason":              {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.trigger()
			if !c.queued {
				l.start()
				l.launch()
				l.end(state.RunResult{Text: "A plan.", Outcome: "build"})
				l.postPlan(11)
			}
			l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 50, Body: "@errand replan " + c.why, At: l.now, Mention: true}, Orders: []state.Order{{Verb: state.VerbReplan, Text: c.why}}}})
			start := &event.Start{Settings: settings.Default(), Visible: true, Branch: state.Branch{Name: "b", Base: "main", BaseSHA: "b0"}, ReadAt: l.now}
			if c.listed {
				start.Context.Comments = []state.DiscussionComment{{ID: 50, By: writer, Body: "@errand replan " + c.why}}
			}
			l.do(event.Event{Payload: event.Started{Start: *start}})
			l.want(state.PhasePreliminaryPlanning, state.JobLaunch)
			if got := pendingFeedback(l.task); len(got) != c.want || c.want > 0 && got[0].Body != c.why {
				t.Errorf("got feedback %+v, want %d items", got, c.want)
			}
		})
	}
}

func pendingFeedback(t *state.Task) []state.Feedback { return t.PendingFeedback() }

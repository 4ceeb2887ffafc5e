package machine

import (
	"slices"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// A pull request that was found by a check may have been reviewed before it was known.
func TestEarlyReviewOfPullRequestIsGathered(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		detail string
		said   bool // something waits that no run has taken
		want   bool
	}{
		"opened just now":                       {"", false, false},
		"looked for":                            {"looked", false, true},
		"opened just now, with words that wait": {"", true, true},
		"looked for, with words that wait":      {"looked", true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.toPR()
			l.task.Phase, l.task.PR, l.task.Step = state.PhaseImplementing, nil, state.JobOpenPR // the answer was lost
			if c.said {
				l.task.Feedback = []state.Feedback{{ID: "comment:77", Kind: "comment", By: writer, Body: "Mind this."}}
			}
			l.do(event.Event{Payload: event.PROpened{PR: state.PR{Number: 5, State: "open"}, Searched: c.detail == "looked"}})
			l.want(state.PhasePROpen)
			if got := slices.Contains(kindsOf(l.jobs), state.JobGather); got != c.want {
				t.Errorf("got the review gathered %v, want %v", got, c.want)
			}
		})
	}
}

// A task that waits for the same cause again has waited since the first time, and checks less and less often; for
// another cause the wait begins again.
func TestRepeatedWaitKeepsItsStart(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	held := func(kind state.WaitKind, after time.Duration) state.Waiting {
		l.now = l.now.Add(after)
		l.do(event.Event{Payload: event.StepBlocked{Waiting: &state.Waiting{Kind: kind, Detail: "not now"}}})
		return *l.task.Waiting
	}
	first := held(state.WaitBlocked, 0)
	again := held(state.WaitBlocked, 20*time.Minute)
	if !again.Since.Equal(first.Since) || again.Until.Sub(l.now) <= first.Until.Sub(first.Since) {
		t.Errorf("got a wait since %s until %s (now %s), want longer than the first one, since %s until %s", again.Since, again.Until, l.now, first.Since, first.Until)
	}
	if other := held(state.WaitConfig, time.Minute); !other.Since.Equal(l.now) {
		t.Errorf("another cause: got a wait since %s, want since %s", other.Since, l.now)
	}
}

// A comment made before a task starts is either in the discussion that its start reads or stored for its first run. A
// comment that was withdrawn before the reading is in neither.
func TestCommentOnQueuedTaskCountsOnce(t *testing.T) {
	t.Parallel()
	read := t0.Add(time.Hour)
	for name, c := range map[string]struct {
		by         state.Person
		may        state.Permission
		mention    bool
		said       time.Time
		discussed  bool // the start has read it
		wantKept   bool
		wantEyes   bool
		vouchedFor bool
		again      bool // it is read once more
	}{
		"a writer, after the reading":                       {by: writer, may: state.PermissionWrite, said: read.Add(time.Second), wantKept: true},
		"a writer, at the reading, not listed yet":          {by: writer, may: state.PermissionWrite, said: read.Add(-time.Second), wantKept: true},
		"a writer, before the reading":                      {by: writer, may: state.PermissionWrite, said: read.Add(-time.Second), discussed: true},
		"a writer, long before the reading":                 {by: writer, may: state.PermissionWrite, said: read.Add(-time.Hour), discussed: true},
		"a writer, long before the reading, and taken back": {by: writer, may: state.PermissionWrite, said: read.Add(-time.Hour)},
		"a writer to the bot, after the reading":            {by: writer, may: state.PermissionWrite, mention: true, said: read.Add(time.Second), wantKept: true, wantEyes: true},
		"a writer to the bot, before the reading":           {by: writer, may: state.PermissionWrite, mention: true, said: read.Add(-time.Second), discussed: true, wantEyes: true},
		"a stranger, after the reading":                     {by: visitor, may: state.PermissionRead, said: read.Add(time.Second)},
		"a stranger to the bot, after the reading":          {by: visitor, may: state.PermissionRead, mention: true, said: read.Add(time.Second)},
		"a stranger vouched for after the reading":          {by: visitor, may: state.PermissionRead, said: read.Add(time.Second), vouchedFor: true, wantKept: true, again: true},
		"a stranger vouched for before the reading":         {by: visitor, may: state.PermissionRead, said: read.Add(-time.Second), discussed: true, vouchedFor: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.trigger()
			m := &state.Comment{ID: 77, At: c.said, Body: "Mind the tests."}
			p := event.Commented{Comment: m}
			if c.mention {
				p.Orders = []state.Order{{Verb: state.VerbMessage, Text: "mind the tests."}}
			}
			e := event.Event{By: c.by, Permission: c.may, At: c.said, Payload: p}
			if c.vouchedFor {
				e = event.Event{By: writer, Permission: state.PermissionWrite, At: c.said, Payload: event.Thumb{Comment: m}}
			}
			l.do(e)
			l.want(state.PhaseQueued)
			if got := l.enqueued(state.JobReact) && slices.Contains(l.reactions(), "eyes"); got != c.wantEyes {
				t.Errorf("got 👀 %v, want %v", got, c.wantEyes)
			}
			start := &event.Start{Settings: settings.Default(), Visible: true, Branch: state.Branch{Name: "b", Base: "main", BaseSHA: "b0"}, ReadAt: read}
			if c.discussed {
				start.Context.Comments = []state.DiscussionComment{{ID: 77, By: c.by, At: c.said, Body: m.Body}}
			}
			l.do(event.Event{Payload: event.Started{Start: *start}})
			if c.again {
				l.want(state.PhaseQueued, state.JobStart)
				l.do(event.Event{Payload: event.Started{Start: *start}})
			}
			l.want(state.PhasePreliminaryPlanning)
			if got := len(l.task.Feedback) > 0; got != c.wantKept {
				t.Errorf("got feedback for the first run %+v, want %v", l.task.Feedback, c.wantKept)
			}
		})
	}
}

package state

import (
	"slices"
	"testing"
	"time"
)

// TestVouchedWhileItIsRead: somebody vouches for a comment while the start reads the discussion, in which the comment is still
// withheld. It is read again before an agent is told that the comment is there; that the comment stays withheld holds nothing up.
func TestVouchedWhileItIsRead(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.do(Event{Kind: EventThumb, By: writer, Permission: PermissionWrite, Comment: &Comment{ID: 77, At: l.now}})
	start := func() {
		l.do(Event{Kind: EventStarted, Start: &Start{Settings: DefaultSettings(), Visible: true, Branch: Branch{Name: "b", Base: "main", BaseSHA: "b0"}, ReadAt: l.now}})
	}
	start()
	l.want(PhaseQueued, JobStart)
	i := slices.IndexFunc(l.jobs, func(j Job) bool { return j.Kind == JobStart })
	if !l.jobs[i].NotBefore.After(l.now) || l.made(JobLaunch) {
		t.Errorf("it is read again at %s, now is %s; jobs %v", l.jobs[i].NotBefore, l.now, kindsOf(l.jobs))
	}
	l.now = l.now.Add(2 * time.Minute)
	start()
	l.want(PhasePreliminaryPlanning, JobLaunch)
	if len(l.task.Feedback) != 0 {
		t.Errorf("the agent is told of a comment that it cannot see: %+v", l.task.Feedback)
	}
}

// TestAnsweredCommentIsInTheDiscussionOnce: what was said while a plan was made, and read again with the discussion, is there once.
func TestAnsweredCommentIsInTheDiscussionOnce(t *testing.T) {
	t.Parallel()
	for name, listed := range map[string]bool{"read again": true, "not read again": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.trigger()
			l.start()
			l.launch()
			l.do(Event{Kind: EventCommented, By: writer, Permission: PermissionWrite, Comment: &Comment{ID: 50, Body: "Mind the tests.", At: l.now}})
			if listed {
				l.task.Context.Comments = []Said{{ID: 50, By: writer, Body: "Mind the tests."}}
			}
			l.end(RunResult{Text: "A plan.", Outcome: "build"})
			l.launch()
			l.end(RunResult{Text: "Another.", Outcome: "build"})
			l.want(PhaseAwaitingPreliminaryApproval)
			if got := l.task.Context.Comments; len(got) != 1 || got[0].Body != "Mind the tests." {
				t.Errorf("the discussion is %+v", got)
			}
		})
	}
}

// TestReasonOfAReplanIsHeard: why somebody wants another plan reaches the agent, whether or not GitHub lists the comment yet when the
// discussion is read again, and once.
func TestReasonOfAReplanIsHeard(t *testing.T) {
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
		"after a plan, listed":          {why: "the API has changed", listed: true, want: 1}, // the prompt has it there alone
		"without a reason":              {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.trigger()
			if !c.queued {
				l.start()
				l.launch()
				l.end(RunResult{Text: "A plan.", Outcome: "build"})
				l.postPlan(11)
			}
			l.do(Event{Kind: EventCommented, By: writer, Permission: PermissionWrite, Comment: &Comment{ID: 50, Body: "@errand replan " + c.why, At: l.now, Mention: true}, Orders: []Order{{Verb: VerbReplan, Text: c.why}}})
			start := &Start{Settings: DefaultSettings(), Visible: true, Branch: Branch{Name: "b", Base: "main", BaseSHA: "b0"}, ReadAt: l.now}
			if c.listed {
				start.Context.Comments = []Said{{ID: 50, By: writer, Body: "@errand replan " + c.why}}
			}
			l.do(Event{Kind: EventStarted, Start: start})
			l.want(PhasePreliminaryPlanning, JobLaunch)
			if got := l.task.untaken(); len(got) != c.want || c.want > 0 && got[0].Body != c.why {
				t.Errorf("to be answered: %+v, want %d", got, c.want)
			}
		})
	}
}

func (t *Task) untaken() []Feedback { return (&change{t: t}).untaken() }

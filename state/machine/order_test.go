package machine

import (
	"slices"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestPushWhileAnswersArePosted: a person's push between the end of the agent's work and its last answer is not forgotten: the branch is read.
func TestPushWhileAnswersArePosted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		published, pushed string
		want              bool
	}{
		"without a commit of errand's": {"", "P", true},
		"after one":                    {"N", "P", true},
		"its own, reported late":       {"N", "N", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := openPR(t)
			l.review()
			l.end(state.RunResult{Outcome: "done"})
			run := l.task.Work.Run
			if c.published == "" {
				l.do(event.Event{Payload: event.Collected{Work: &state.Work{Run: run, Base: l.task.Branch.Head}}})
			} else {
				l.do(event.Event{Payload: event.Collected{Work: &state.Work{Run: run, Paths: 1, LocalHead: "l", LocalTree: "t"}}})
				l.do(event.Event{Payload: event.Committed{Work: &state.Work{Run: run, Head: c.published, Tree: "t"}}})
				l.do(event.Event{Payload: event.BranchMoved{}})
			}
			l.do(event.Event{By: colleague, Payload: event.Pushed{Head: c.pushed}})
			l.do(event.Event{Payload: event.ThreadsAnswered{}})
			if l.want(state.PhasePROpen); (l.updates() >= 0) != c.want {
				t.Errorf("got jobs %v, want the branch read: %t", kindsOf(l.jobs), c.want)
			}
		})
	}
}

// TestOlderEditOfTheIssue: edits whose webhooks arrive in the wrong order do not bring an older text back, whoever made them.
func TestOlderEditOfTheIssue(t *testing.T) {
	t.Parallel()
	edit := func(by state.Person, p state.Permission, at time.Time, body string) event.Event {
		return event.Event{By: by, Permission: p, At: at, Payload: event.IssueEdited{Issue: &state.Issue{Title: "Bug", Body: body}}}
	}
	for name, c := range map[string]struct {
		first, second event.Event // as they arrive
		body, changed string      // that count, or wait for a `replan`
	}{
		"a writer's older edit":         {edit(colleague, state.PermissionWrite, t0.Add(time.Hour), "newest"), edit(writer, state.PermissionWrite, t0.Add(time.Minute), "old"), "newest", ""},
		"a visitor's older edit":        {edit(writer, state.PermissionWrite, t0.Add(time.Hour), "newest"), edit(visitor, state.PermissionRead, t0.Add(time.Minute), "old"), "newest", ""},
		"older than a visitor's":        {edit(visitor, state.PermissionRead, t0.Add(time.Hour), "newest"), edit(writer, state.PermissionWrite, t0.Add(time.Minute), "old"), "It breaks.", "newest"},
		"of the same second":            {edit(writer, state.PermissionWrite, t0.Add(time.Hour), "one"), edit(colleague, state.PermissionWrite, t0.Add(time.Hour), "other"), "other", ""},
		"in the right order":            {edit(writer, state.PermissionWrite, t0.Add(time.Minute), "old"), edit(writer, state.PermissionWrite, t0.Add(time.Hour), "newest"), "newest", ""},
		"older than a revert":           {edit(writer, state.PermissionWrite, t0.Add(time.Hour), "It breaks."), edit(visitor, state.PermissionRead, t0.Add(time.Minute), "old"), "It breaks.", ""},
		"older than the trigger's text": {edit(visitor, state.PermissionRead, t0.Add(-time.Hour), "old"), edit(visitor, state.PermissionRead, t0.Add(-time.Minute), "old, too"), "It breaks.", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.toPreliminary()
			l.do(c.first)
			l.do(c.second)
			changed := ""
			if l.task.Frozen.Changed != nil {
				changed = l.task.Frozen.Changed.Body
			}
			if l.task.Frozen.Body != c.body || changed != c.changed {
				t.Errorf("got text %q, waiting %q; want %q, %q", l.task.Frozen.Body, changed, c.body, c.changed)
			}
		})
	}
}

// TestStartFindsAnEdit: an edit that the job start found is stored, whatever time GitHub shows, and the job is repeated.
func TestStartFindsAnEdit(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.do(event.Event{Via: event.ViaStart, By: writer, Permission: state.PermissionWrite, At: t0.Add(-time.Hour), Payload: event.IssueEdited{Issue: &state.Issue{Title: "Bug", Body: "newest"}}})
	if l.want(state.PhaseQueued, state.JobStart); l.task.Frozen.Body != "newest" {
		t.Errorf("got text %q", l.task.Frozen.Body)
	}
}

// TestCommandWithoutTheText: a command whose webhook was lost, and after which the issue changed, accepts no text that its author has not seen.
func TestCommandWithoutTheText(t *testing.T) {
	t.Parallel()
	say := func(verb state.Verb) event.Event {
		return event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 5, Mention: true}, Orders: []state.Order{{Verb: verb}}}}
	}
	for _, verb := range []state.Verb{state.VerbReplan, state.VerbRestart} {
		l := newLife(t)
		l.toPreliminary()
		l.do(say(verb))
		if f := l.task.Frozen; f.Body != "It breaks." || l.task.Ended() || l.task.Step != state.JobStart || !slices.Contains(kindsOf(l.jobs), state.JobStart) {
			t.Errorf("%s: got text %q in %s, want the one that was frozen, read again", verb, f.Body, l.task.Phase)
		}
	}
}

// TestTakenBackWhileVetted: a removal right after a trigger waits for it, also if the task of an earlier trigger has ended.
func TestTakenBackWhileVetted(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	removed := event.Event{By: writer, Via: "assigned", At: t0.Add(time.Hour), Payload: event.Untriggered{}}
	if l.do(removed); !l.task.Ended() {
		t.Fatal("the task goes on")
	}
	if l.do(removed); !slices.Equal(kindsOf(l.jobs), []state.JobKind{state.JobVet}) {
		t.Errorf("got jobs %v, want only one that reads the permission", kindsOf(l.jobs))
	}
}

// TestExaminationOfOtherChecks: people are told that checks could not be examined only while checks fail.
func TestExaminationOfOtherChecks(t *testing.T) {
	t.Parallel()
	for _, checks := range []string{checksFailed, "pending", ""} {
		l := openPR(t)
		l.task.PR.Checks = checks
		l.do(event.Event{Payload: event.StepFailed{Failure: state.Failure{Job: state.JobExamine, Reason: "no"}}})
		if l.handedOver() != (checks == checksFailed) {
			t.Errorf("checks %q: handed over: %t", checks, l.handedOver())
		}
	}
}

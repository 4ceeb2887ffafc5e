package machine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// Each job with an unknown outcome is stored with the time of its first try; the oldest of too many is dropped.
func TestUnknownOutcomesAreStored(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	give := func(key string, doubt time.Time) {
		l.do(event.Event{Payload: event.StepFailed{Failure: state.Failure{Job: state.JobReact, Key: key, UnknownSince: doubt, Class: state.ClassGitHub, Reason: "No."}}})
	}
	give("1.a", t0.Add(2*time.Hour))
	give("1.b", t0.Add(time.Hour))
	give("1.a", t0.Add(3*time.Hour)) // gave up again
	give("1.c", time.Time{})         // known not to be there
	want := map[string]time.Time{"1.a": t0.Add(2 * time.Hour), "1.b": t0.Add(time.Hour)}
	if got := l.task.UnknownOutcomes; len(got) != 2 || !got["1.a"].Equal(want["1.a"]) || !got["1.b"].Equal(want["1.b"]) {
		t.Fatalf("got doubts %v, want %v", got, want)
	}
	for i := range maxUnknownOutcomes - 1 {
		give(fmt.Sprintf("1.n%d", i), t0.Add(4*time.Hour))
	}
	if got := l.task.UnknownOutcomes; len(got) != maxUnknownOutcomes || !got["1.b"].IsZero() || got["1.a"].IsZero() {
		t.Errorf("got %d doubts, a since %v, b since %v; want %d without the oldest, b", len(got), got["1.a"], got["1.b"], maxUnknownOutcomes)
	}
}

// A branch has one pull request, so the job of a retry checks for the one that an earlier job may have opened, although
// its key differs. Pull requests of an earlier life do not count.
func TestUnknownPullRequestIsCheckedAfterRetry(t *testing.T) {
	t.Parallel()
	since := t0.Add(time.Hour)
	for name, c := range map[string]struct {
		key  string
		want time.Time
	}{
		"of the job before":     {"1.open_pr-53.3", since},
		"of an earlier life":    {"0.open_pr-53.3", time.Time{}},
		"of another kind":       {"1.answer-53.3", time.Time{}},
		"that left nothing":     {"", time.Time{}},
		"of a kind with a like": {"1.open_prs-1", time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			l.toPR()
			l.task.Phase, l.task.PR, l.task.Step = state.PhaseImplementing, nil, state.JobOpenPR
			f := &state.Failure{Job: state.JobOpenPR, Key: c.key, Class: state.ClassGitHub, Reason: "No."}
			if c.key != "" {
				f.UnknownSince = since
			}
			l.do(event.Event{Payload: event.StepFailed{Failure: *f}})
			l.want(state.PhaseFailed)
			l.comment(state.VerbRetry)
			i := slices.IndexFunc(l.jobs, func(j state.Job) bool { return j.Kind == state.JobOpenPR })
			if i < 0 {
				t.Fatalf("got jobs %v after a retry", kindsOf(l.jobs))
			}
			if j := l.jobs[i]; j.Key == c.key || !j.UnknownSince.Equal(c.want) {
				t.Errorf("job %s: got doubt %v, want %v", j.Key, j.UnknownSince, c.want)
			}
		})
	}
}

// TestRunThatMayHaveBegun: if the job that launches a run fails with an unknown outcome, the run is stopped and filed as one that
// began, so that the next run continues its work; no feedback counts as delivered. A run that certainly did not begin is only filed.
func TestRunThatMayHaveBegun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		launch func(run string) *state.Launch
		began  bool
	}{
		"its outcome is unknown": {func(run string) *state.Launch {
			return &state.Launch{Run: run, VM: state.VM{Name: "vm7"}, Started: t0, Root: "c9"}
		}, true},
		"it was not reached": {func(string) *state.Launch { return nil }, false},
		"the job launched another": {func(string) *state.Launch {
			return &state.Launch{Run: "7-1-99", VM: state.VM{Name: "vm7"}, Started: t0}
		}, false},
	} {
		for _, later := range []time.Time{{}, t0.Add(time.Hour)} { // failed, interrupted
			l := newLife(t)
			l.toApproved()
			l.said(60, writer, state.Comment{Body: "Mind the tests.", Mention: true})
			run := l.task.Run.ID
			l.do(event.Event{Run: run, Payload: event.StepFailed{Launch: c.launch(run), Failure: state.Failure{Job: state.JobLaunch, Class: state.ClassVM, Reason: "No answer.", RetryAt: later}}})
			last := l.task.Runs[len(l.task.Runs)-1]
			if last.ID != run || last.Started.IsZero() == c.began || (last.VM == "vm7") != c.began || last.Uncertain != c.began || l.enqueued(state.JobStop) != c.began || l.task.Run != nil {
				t.Errorf("%s: got run %+v and jobs %v, want began: %t", name, last, kindsOf(l.jobs), c.began)
			}
			if f := l.pending(); len(f) != 1 || f[0].TakenBy != "" {
				t.Errorf("%s: got feedback %v, want it undelivered", name, l.task.Feedback)
			}
		}
	}
}

// TestUnreadReviewIsReadAfterTheRound: a review that cannot be read while the task does something else is read when that is done,
// whoever wrote it.
func TestUnreadReviewIsReadAfterTheRound(t *testing.T) {
	t.Parallel()
	for _, by := range []state.Person{writer, colleague} {
		for _, unread := range []bool{true, false} {
			l := newLife(t)
			l.toPR()
			l.beginRound()
			l.do(event.Event{By: by, Permission: state.PermissionWrite, Payload: event.Reviewed{Review: state.Review{ID: 9, State: state.ReviewCommented}}})
			if unread {
				l.do(event.Event{Payload: event.StepFailed{Failure: state.Failure{Job: state.JobGather, Class: state.ClassGitHub, Reason: "No."}}})
			} else {
				l.do(event.Event{Payload: event.Gathered{}})
			}
			l.do(event.Event{Payload: event.ThreadsAnswered{}})
			l.want(state.PhasePROpen)
			if got := l.enqueued(state.JobGather); got != unread || l.task.PR.Unread {
				t.Errorf("by %s: got gathered %t, want %t", by.Login, got, unread)
			}
		}
	}
}

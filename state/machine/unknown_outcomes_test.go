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

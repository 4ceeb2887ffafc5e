package publish_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestReviewIsRequestedAgain: after a round, those who requested changes before it are asked again.
func TestReviewIsRequestedAgain(t *testing.T) {
	t.Parallel()
	changes := simgithub.NewReview{Event: "REQUEST_CHANGES", Body: "No."}
	for name, c := range map[string]struct {
		do      func(w *workflowtest.World)
		threads bool
		want    []string
	}{
		"in threads":      {threads: true, want: []string{"ada"}},
		"without threads": {want: []string{"ada"}},
		"approved since":  {do: func(w *workflowtest.World) { review(w, "ada", simgithub.NewReview{Event: "APPROVE"}) }},
		"commented since": {do: func(w *workflowtest.World) { review(w, "ada", simgithub.NewReview{Event: "COMMENT", Body: "And?"}) }, want: []string{"ada"}},
		"by several":      {do: func(w *workflowtest.World) { review(w, "bob", changes) }, threads: true, want: []string{"ada", "bob"}},
		"without write access": {do: func(w *workflowtest.World) {
			workflowtest.Check(t, w.Ada.SetPermission(workflowtest.RepoName, "eve", simgithub.RoleTriage))
			review(w, "eve", changes)
		}, want: []string{"ada"}},
		"during the round": {do: func(w *workflowtest.World) {
			w.Task.Runs = append(w.Task.Runs, state.Run{ID: "r-2", Kind: state.RunReview, RunLaunch: state.RunLaunch{Round: 1}, Started: time.Now().Add(-time.Hour)})
		}},
		"GitHub refuses": {do: func(w *workflowtest.World) { w.MustFault(simgithub.Fault{Path: "/requested_reviewers", Status: 422}) }, threads: true},
		"GitHub does not work": {do: func(w *workflowtest.World) {
			w.MustFault(simgithub.Fault{Path: "/requested_reviewers|/reviews$", Status: 502})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			w.Reviewed()
			w.Rounded()
			if !c.threads {
				w.Task.Feedback = nil
			}
			if c.do != nil {
				c.do(w)
			}
			if e := w.Answered(); e.Kind() != event.KindThreadsAnswered {
				t.Errorf("got event %+v", e)
			}
			if diff := cmp.Diff(c.want, w.IssueAt(w.Task.PR.Number).Pull.RequestedReviewers); diff != "" {
				t.Errorf("requested (-want +got):\n%s", diff)
			}
		})
	}
}

func review(w *workflowtest.World, login string, in simgithub.NewReview) {
	w.T.Helper()
	workflowtest.Check(w.T, workflowtest.Err(w.As(login).Review(workflowtest.RepoName, w.Task.PR.Number, in)))
}

// TestThreadsAreResolved: with the setting, addressed threads are resolved, but not those that need a person.
func TestThreadsAreResolved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		resolve bool
		answer  state.ThreadAnswer
		between func(w *workflowtest.World, a *simgithub.Thread)
		want    bool
	}{
		"not by default":    {answer: state.ThreadAnswer{Answer: "Renamed.", Commit: workflowtest.LocalID}},
		"with a commit":     {resolve: true, answer: state.ThreadAnswer{Answer: "Renamed.", Commit: workflowtest.LocalID}, want: true},
		"with a reason":     {resolve: true, answer: state.ThreadAnswer{Answer: "It is needed elsewhere."}, want: true},
		"with a question":   {resolve: true, answer: state.ThreadAnswer{Answer: "Which name do you **prefer?**"}},
		"without an answer": {resolve: true},
		"a person wrote since": {resolve: true, answer: state.ThreadAnswer{Answer: "It is needed elsewhere."}, between: func(w *workflowtest.World, a *simgithub.Thread) {
			workflowtest.Check(t, workflowtest.Err(w.As("eve").ReplyToThread(workflowtest.RepoName, w.Task.PR.Number, a.ID, "Wait.")))
		}},
		"GitHub refuses": {resolve: true, answer: state.ThreadAnswer{Answer: "It is needed elsewhere."}, between: func(w *workflowtest.World, _ *simgithub.Thread) {
			w.MustFault(simgithub.Fault{Path: "resolveReviewThread", Status: 200, Body: `{"errors":[{"type":"FORBIDDEN","message":"no"}]}`})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			a, _ := w.Reviewed()
			w.Rounded()
			w.Task.Settings.Resolve = c.resolve
			c.answer.ID = w.Task.Feedback[0].ID
			if c.answer.Answer != "" {
				w.Task.Work.Answers = []state.ThreadAnswer{c.answer}
			}
			if c.between != nil {
				c.between(w, a)
			}
			w.Answered()
			threads := w.IssueAt(w.Task.PR.Number).Pull.Threads
			if threads[0].Resolved != c.want || threads[1].Resolved || len(w.OwnReviews()) != 1 {
				t.Errorf("resolved: %v, the other: %v, reviews: %+v", threads[0].Resolved, threads[1].Resolved, w.OwnReviews())
			}
		})
	}
}

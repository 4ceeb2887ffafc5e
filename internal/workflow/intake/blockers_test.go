package intake_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

func TestStartWaitsForBlockers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act  func(w *workflowtest.World, other *simgithub.Issue) error
		want []string
	}{
		"GitHub's dependency": {func(w *workflowtest.World, o *simgithub.Issue) error {
			return w.Ada.AddBlockedBy(workflowtest.RepoName, 1, o.ID)
		}, []string{"acme/slug#2"}},
		"a sub-issue": {func(w *workflowtest.World, o *simgithub.Issue) error {
			return w.Ada.AddSubIssue(workflowtest.RepoName, 1, o.ID)
		}, []string{"acme/slug#2"}},
		"text by a writer": {func(w *workflowtest.World, _ *simgithub.Issue) error {
			return workflowtest.Err(w.As("bob").Comment(workflowtest.RepoName, 1, "Blocked by #2."))
		}, []string{"acme/slug#2"}},
		"mentioned twice": {func(w *workflowtest.World, o *simgithub.Issue) error {
			if err := w.Ada.AddBlockedBy(workflowtest.RepoName, 1, o.ID); err != nil {
				return err
			}
			return workflowtest.Err(w.Ada.Comment(workflowtest.RepoName, 1, "Blocked by #2"))
		}, []string{"acme/slug#2"}},
		"text by a user without write access": {func(w *workflowtest.World, _ *simgithub.Issue) error {
			return workflowtest.Err(w.As("eve").Comment(workflowtest.RepoName, 1, "Blocked by #2"))
		}, nil},
		"inaccessible issues": {func(w *workflowtest.World, _ *simgithub.Issue) error {
			return workflowtest.Err(w.Ada.Comment(workflowtest.RepoName, 1, "Blocked by #99 and acme/secret#1"))
		}, nil},
		"closed": {func(w *workflowtest.World, _ *simgithub.Issue) error {
			return workflowtest.FirstError(workflowtest.Err(w.Ada.Comment(workflowtest.RepoName, 1, "Blocked by #2")), w.Ada.Close(workflowtest.RepoName, 2, ""))
		}, nil},
		"issues with the same number here and in another repository": {func(w *workflowtest.World, _ *simgithub.Issue) error {
			return workflowtest.FirstError(w.Elsewhere("acme", 2), w.Ada.Close(workflowtest.RepoName, 2, ""), workflowtest.Err(w.Ada.Comment(workflowtest.RepoName, 1, "Blocked by #2, acme/other#2 and acme/other#1")))
		}, []string{"acme/other#2", "acme/other#1"}},
		"a closed issue with the same number in another repository": {func(w *workflowtest.World, _ *simgithub.Issue) error {
			return workflowtest.FirstError(w.Elsewhere("acme", 2), w.As("zoe").Close("acme/other", 2, ""), workflowtest.Err(w.Ada.Comment(workflowtest.RepoName, 1, "Blocked by acme/other#2")))
		}, nil},
		"issues of another owner, without read access": {func(w *workflowtest.World, _ *simgithub.Issue) error {
			return workflowtest.FirstError(w.Elsewhere("initech", 2), workflowtest.Err(w.Ada.Comment(workflowtest.RepoName, 1, "Blocked by initech/other#2 and initech/other#1")))
		}, nil},
		"itself": {func(w *workflowtest.World, _ *simgithub.Issue) error {
			return workflowtest.Err(w.Ada.Comment(workflowtest.RepoName, 1, "Blocked by #1"))
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			other, err := w.Ada.OpenIssue(workflowtest.RepoName, simgithub.NewIssue{Title: "First this"})
			workflowtest.Check(t, err)
			workflowtest.Check(t, c.act(w, other))
			e, err := w.Try(state.JobStart)
			if err != nil { // a refusal may be due to a token from before the App's permissions
				workflowtest.WantProblem(t, err, "github", false)
				e = w.Do(state.JobStart)
			}
			if c.want == nil {
				if e.Kind() != event.KindStarted {
					t.Errorf("got event %s, waiting %+v", e.Kind(), e.Waiting())
				}
				return
			}
			if e.Kind() != event.KindStepBlocked || e.Waiting().Kind != state.WaitBlocked {
				t.Fatalf("got event %s, waiting %+v", e.Kind(), e.Waiting())
			}
			if diff := cmp.Diff(c.want, e.Waiting().Issues); diff != "" {
				t.Errorf("blockers (-want +got):\n%s", diff)
			}
		})
	}
}

package workflow_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
)

func TestStartWaitsForBlockers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act  func(w *world, other *simgithub.Issue) error
		want []string
	}{
		"GitHub's dependency": {func(w *world, o *simgithub.Issue) error { return w.ada.AddBlockedBy(full, 1, o.ID) }, []string{"acme/slug#2"}},
		"a sub-issue":         {func(w *world, o *simgithub.Issue) error { return w.ada.AddSubIssue(full, 1, o.ID) }, []string{"acme/slug#2"}},
		"a writer's words": {func(w *world, _ *simgithub.Issue) error {
			return second(w.As("bob").Comment(full, 1, "Blocked by #2."))
		}, []string{"acme/slug#2"}},
		"said twice": {func(w *world, o *simgithub.Issue) error {
			if err := w.ada.AddBlockedBy(full, 1, o.ID); err != nil {
				return err
			}
			return second(w.ada.Comment(full, 1, "Blocked by #2"))
		}, []string{"acme/slug#2"}},
		"a stranger's words": {func(w *world, _ *simgithub.Issue) error { return second(w.As("eve").Comment(full, 1, "Blocked by #2")) }, nil},
		"what nobody can see": {func(w *world, _ *simgithub.Issue) error {
			return second(w.ada.Comment(full, 1, "Blocked by #99 and acme/secret#1"))
		}, nil},
		"closed": {func(w *world, _ *simgithub.Issue) error {
			return firstError(second(w.ada.Comment(full, 1, "Blocked by #2")), w.ada.Close(full, 2, ""))
		}, nil},
		"issues of one number, here and in another repository": {func(w *world, _ *simgithub.Issue) error {
			return firstError(w.elsewhere("acme", 2), w.ada.Close(full, 2, ""), second(w.ada.Comment(full, 1, "Blocked by #2, acme/other#2 and acme/other#1")))
		}, []string{"acme/other#2", "acme/other#1"}},
		"an issue of the same number in another repository, closed": {func(w *world, _ *simgithub.Issue) error {
			return firstError(w.elsewhere("acme", 2), w.As("zoe").Close("acme/other", 2, ""), second(w.ada.Comment(full, 1, "Blocked by acme/other#2")))
		}, nil},
		"issues of another owner, which may not be read": {func(w *world, _ *simgithub.Issue) error {
			return firstError(w.elsewhere("initech", 2), second(w.ada.Comment(full, 1, "Blocked by initech/other#2 and initech/other#1")))
		}, nil},
		"itself": {func(w *world, _ *simgithub.Issue) error { return second(w.ada.Comment(full, 1, "Blocked by #1")) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			other, err := w.ada.OpenIssue(full, simgithub.NewIssue{Title: "First this"})
			check(t, err)
			check(t, c.act(w, other))
			e, err := w.try(state.JobStart)
			if err != nil { // a refusal may be about a token of before the App's permissions
				wantProblem(t, err, "github", false)
				e = w.do(state.JobStart)
			}
			if c.want == nil {
				if e.Kind != state.EventStarted {
					t.Errorf("event %s, waiting %+v", e.Kind, e.Waiting)
				}
				return
			}
			if e.Kind != state.EventHeldUp || e.Waiting.Kind != state.WaitBlocked {
				t.Fatalf("event %s, waiting %+v", e.Kind, e.Waiting)
			}
			if diff := cmp.Diff(c.want, e.Waiting.Issues); diff != "" {
				t.Errorf("blockers (-want +got):\n%s", diff)
			}
		})
	}
}

// elsewhere makes a repository beside acme/slug, with so many issues.
func (w *world) elsewhere(owner string, issues int) error {
	_, err := w.SeedRepo(simgithub.RepoSeed{Owner: owner, Name: "other", Files: map[string]string{"README.md": "# other\n"}, Collaborators: map[string]simgithub.Role{"zoe": simgithub.RoleAdmin}})
	err = firstError(err, second(w.Install(owner+"/other")))
	for range issues {
		err = firstError(err, second(w.As("zoe").OpenIssue(owner+"/other", simgithub.NewIssue{Title: "Elsewhere"})))
	}
	return err
}

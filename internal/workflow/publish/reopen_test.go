package publish_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestReopen: the pull request is open afterwards, at its old head, whatever happened to its branch; only another branch of that
// name is left alone.
func TestReopen(t *testing.T) {
	t.Parallel()
	closed := func(w *workflowtest.World, n int) error { return w.Ada.Close(workflowtest.RepoName, n, "") }
	gone := func(w *workflowtest.World, _ int) error {
		return w.Ada.DeleteBranch(workflowtest.RepoName, w.Task.Branch.Name)
	}
	for name, c := range map[string]struct {
		before func(w *workflowtest.World, n int) error
		kind   event.Kind
		reason string // of the failure
	}{
		"open":               {func(*workflowtest.World, int) error { return nil }, event.KindPRReopened, ""},
		"closed":             {closed, event.KindPRReopened, ""},
		"the branch is gone": {gone, event.KindPRReopened, ""},
		"merged": {func(w *workflowtest.World, n int) error {
			return w.Ada.Merge(workflowtest.RepoName, n, simgithub.Merge{})
		}, event.KindPRClosed, ""},
		"another branch": {func(w *workflowtest.World, n int) error {
			err := errors.Join(closed(w, n), gone(w, n))
			w.Push("bob", w.Task.Branch.Name, map[string]string{"other.go": "package slug\n"})
			return err
		}, "", "does not let"},
		"the branch cannot be created": {func(w *workflowtest.World, n int) error {
			w.MustFault(simgithub.Fault{Method: "POST", Path: "/graphql updateRefs", Status: 403, Count: 9})
			return errors.Join(closed(w, n), gone(w, n))
		}, "", "cannot be restored"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			p := w.OpenPull()
			head := w.Task.Branch.Head
			workflowtest.Check(t, c.before(w, p.Number))
			for range 2 { // it can be repeated
				e, err := w.Try(state.JobReopen)
				if c.reason != "" {
					if got := step.ProblemOf(err); !got.Permanent || !strings.Contains(got.Reason, c.reason) || got.Hint == "" {
						t.Errorf("got event %+v, error %v, reason %q, hint %q", e, err, got.Reason, got.Hint)
					}
					return
				}
				if err != nil || e.Kind() != c.kind {
					t.Fatalf("got event %+v, error %v", e, err)
				}
				if c.kind == event.KindPRReopened && (event.Of[event.PRReopened](e).Head != head || w.IssueAt(p.Number).State != "open" || w.Head(w.Task.Branch.Name) != head) {
					t.Errorf("got event %+v, pull request %s", e, w.IssueAt(p.Number).State)
				}
			}
		})
	}
}

package publish_test

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestMoveFindsThePullRequest: if errand has published the task's work and does not know that, because it was restored from a backup, then
// it continues with its pull request, and never advises to delete the branch.
func TestMoveFindsThePullRequest(t *testing.T) {
	t.Parallel()
	restored := func(j *state.Job) { j.Restored = time.Now() }
	for name, c := range map[string]struct {
		act   func(w *workflowtest.World, number int)
		found state.PRState // empty: a problem
		never bool          // errand was not restored
	}{
		"open": {act: func(*workflowtest.World, int) {}, found: state.PROpen},
		"merged": {act: func(w *workflowtest.World, number int) {
			workflowtest.Check(w.T, w.Ada.Merge(workflowtest.RepoName, number, simgithub.Merge{}))
		}, found: state.PRMerged},
		"closed": {act: func(w *workflowtest.World, number int) {
			workflowtest.Check(w.T, w.Ada.Close(workflowtest.RepoName, number, ""))
		}},
		"replaced": {act: func(w *workflowtest.World, number int) {
			w.Task.Replaced = []state.ReplacedPR{{Number: number}}
		}},
		"another issue's": {act: func(w *workflowtest.World, _ int) { w.Task.Key.Issue += 100 }},
		"never restored":  {act: func(*workflowtest.World, int) {}, never: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			number := w.OpenPull().Number
			head := w.Task.Branch.Head
			w.Task.PR, w.Task.Branch.Head = nil, ""
			w.Building().Commit(t, "Mend it again", map[string]string{"a.txt": "a\n"})
			w.Collected()
			w.Committed()
			c.act(w, number)
			if c.never {
				_, err := w.Try(state.JobMove)
				workflowtest.WantProblem(t, err, "github", true)
				return
			}
			e, err := w.Try(state.JobMove, restored)
			if c.found == "" {
				if p := workflowtest.WantProblem(t, err, "github", true); !strings.Contains(p.Reason, "before errand was restored") || strings.Contains(p.Hint, "elete") {
					t.Errorf("got problem %q, hint %q", p.Reason, p.Hint)
				}
				return
			}
			workflowtest.Check(t, err)
			if f := event.Of[event.PRFound](e); f.PR.Number != number || f.PR.State != c.found || f.Head != head {
				t.Errorf("got %+v, want the %s pull request #%d at %s", f, c.found, number, head)
			}
			if got := w.Head(w.Task.Branch.Name); got != head {
				t.Errorf("the branch is at %s, want %s", got, head)
			}
		})
	}
}

// TestMoveRefusesAPersonsPullRequest: a pull request that a person opened from a branch with the task's name is not errand's.
func TestMoveRefusesAPersonsPullRequest(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.Building().Commit(t, "Mend it", map[string]string{"a.txt": "a\n"})
	w.Collected()
	w.Committed()
	w.Push("bob", w.Task.Branch.Name, map[string]string{"b.txt": "1\n"})
	if _, err := w.As("bob").OpenPull(workflowtest.RepoName, simgithub.NewPull{Head: w.Task.Branch.Name, Base: "main", Title: "Mine"}); err != nil {
		t.Fatal(err)
	}
	_, err := w.Try(state.JobMove)
	workflowtest.WantProblem(t, err, "github", true)
}

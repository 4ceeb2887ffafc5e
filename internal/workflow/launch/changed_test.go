package launch_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
)

// An agent that continues with its own commits, such as after failed checks, is not told that people pushed them, and
// GitHub is not asked for commits that only the VM has. Commits pushed by people are reported.
func TestOwnCommitsAreNotAttributedToPeople(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pushed  bool // by a person, before the work was rebased onto it
		rebased bool
		rounds  int
		want    string
	}{
		"after failed checks":                       {rounds: 1},
		"twice in a row":                            {rounds: 2},
		"after a push that the work contains":       {pushed: true, rebased: true, rounds: 1, want: "people pushed 1 commit to the branch, which changed ada.txt."},
		"twice after a push that the work contains": {pushed: true, rebased: true, rounds: 2, want: "people pushed 1 commit to the branch, which changed ada.txt."},
		"after a push that the work lacks":          {pushed: true, rounds: 1, want: "The checkout does not contain those commits"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			w.OpenPull()
			branch := w.Task.Branch.Name
			w.Task.Phase, w.Task.Round = state.PhaseAddressingReview, 1
			launch := func() string {
				w.Task.Feedback = []state.Feedback{{ID: "check:" + workflowtest.Itoa(int64(w.Task.RunSeq)), Kind: "checks", Body: "`make` failed."}}
				w.Launching(state.RunReview).Session = workflowtest.Session
				l := w.Launched()
				w.Task.Branch.VMHead, w.Task.Branch.Root = l.VMHead, cmp.Or(l.Root, w.Task.Branch.Root)
				p := strings.Join(strings.Fields(w.Prompt()), " ")
				w.EndRun(state.RunSucceeded, workflowtest.Session)
				w.Task.Runs[len(w.Task.Runs)-1].Ended = time.Now()
				return p
			}
			launch()
			w.Host.Commit(t, "Mine", map[string]string{"mine.txt": "x\n"})
			if c.pushed {
				w.Task.Branch.Head = w.Push("ada", branch, map[string]string{"ada.txt": "x\n"})
			}
			if c.rebased {
				w.Host.Git(t, "pull", "--quiet", "--rebase", w.Repo.Git.Dir, branch)
				w.Task.Branch.Root = w.Task.Branch.Head
			}
			for i := range c.rounds {
				before, _ := w.Calls()
				p := launch()
				after, _ := w.Calls()
				told := c.want != "" && (i == 0 || !c.rebased)
				if strings.Contains(p, "by people") || strings.Contains(p, "people put") && !told || told && !strings.Contains(p, c.want) {
					t.Errorf("prompt of run %d, want %q:\n%s", i+1, c.want, p)
				}
				if asked := !slices.Equal(compares(before), compares(after)); asked != (told && c.rebased) {
					t.Errorf("run %d: got comparisons at GitHub: %v", i+1, asked)
				}
				w.Host.Commit(t, "More", map[string]string{"more.txt": strings.Repeat("x\n", i+1)})
			}
		})
	}
}

// compares returns the counts of the calls that compare commits.
func compares(list []simgithub.CallCount) []simgithub.CallCount {
	return slices.DeleteFunc(list, func(c simgithub.CallCount) bool { return !strings.Contains(c.Route, "compare") })
}

package workflow_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
)

// An agent that goes on with commits of its own, such as after checks that failed, is not told that people put them
// there, and GitHub is not asked for commits that only the VM has. Commits that people did push are told.
func TestOwnCommitsAreNotPeoples(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pushed  bool // by a person, before the work was moved on top of it
		rebased bool
		rounds  int
		want    string
	}{
		"after checks that failed":         {rounds: 1},
		"twice in a row":                   {rounds: 2},
		"after a push that is in the work": {pushed: true, rebased: true, rounds: 1, want: "people put 1 commit on the branch, which changed ada.txt."},
		"twice after such a push":          {pushed: true, rebased: true, rounds: 2, want: "people put 1 commit on the branch, which changed ada.txt."},
		"after a push that is not":         {pushed: true, rounds: 1, want: "These commits are not in the checkout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.openPull()
			branch := w.task.Branch.Name
			w.task.Phase, w.task.Round = state.PhaseAddressingReview, 1
			launch := func() string {
				w.task.Feedback = []state.Feedback{{ID: "check:" + itoa(int64(w.task.RunSeq)), Kind: "checks", Body: "`make` failed."}}
				w.launching(state.RunReview).Session = session
				l := w.launchedWell()
				w.task.Branch.VMHead, w.task.Branch.Root = l.VMHead, cmp.Or(l.Root, w.task.Branch.Root)
				p := strings.Join(strings.Fields(w.prompt()), " ")
				w.ran("success", session)
				w.task.Runs[len(w.task.Runs)-1].Ended = time.Now()
				return p
			}
			launch()
			w.host.commit(t, "Mine", map[string]string{"mine.txt": "x\n"})
			if c.pushed {
				w.task.Branch.Head = w.push("ada", branch, map[string]string{"ada.txt": "x\n"})
			}
			if c.rebased {
				w.host.git(t, "pull", "--quiet", "--rebase", w.repo.Git.Dir, branch)
				w.task.Branch.Root = w.task.Branch.Head
			}
			for i := range c.rounds {
				before, _ := w.Calls()
				p := launch()
				after, _ := w.Calls()
				told := c.want != "" && (i == 0 || !c.rebased)
				if strings.Contains(p, "by people") || strings.Contains(p, "people put") && !told || told && !strings.Contains(p, c.want) {
					t.Errorf("run %d is told, want %q:\n%s", i+1, c.want, p)
				}
				if asked := !slices.Equal(compares(before), compares(after)); asked != (told && c.rebased) {
					t.Errorf("run %d: GitHub was asked to compare: %v", i+1, asked)
				}
				w.host.commit(t, "More", map[string]string{"more.txt": strings.Repeat("x\n", i+1)})
			}
		})
	}
}

// compares are the counts of the calls that compare commits.
func compares(list []simgithub.CallCount) []simgithub.CallCount {
	return slices.DeleteFunc(list, func(c simgithub.CallCount) bool { return !strings.Contains(c.Route, "compare") })
}

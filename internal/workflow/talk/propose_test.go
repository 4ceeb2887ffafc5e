package talk_test

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
)

func TestCreateProposedIssue(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.Proposed()
	e := w.Do(state.JobIssue, workflowtest.Args("n", "1", "on_pr", "true"))
	if e.Kind != state.EventCreated || e.Created.N != 1 || !e.Created.OnPR || e.Created.URL == "" {
		t.Fatalf("event %+v", e.Created)
	}
	i := w.IssueAt(e.Created.Issue)
	if i.Author != w.App().BotLogin || strings.Contains(i.Title, "@ada") || strings.Contains(i.Title, "\n") || len(i.Labels)+len(i.Assignees) > 0 {
		t.Errorf("issue %+v", i)
	}
	if strings.Contains(i.Body, workflowtest.Secret) || !strings.Contains(i.Body, "`@bob`") || !strings.Contains(i.Body, "works on #1") {
		t.Errorf("text:\n%s", i.Body)
	}
	w.HoursPass()
	if again := w.Do(state.JobIssue, workflowtest.Args("n", "1"), workflowtest.Again); again.Created.Issue != i.Number {
		t.Errorf("repeated: %+v", again.Created)
	}
	w.Task.Proposed[0].Issue = i.Number
	for _, n := range []string{"1", "2", "0", "x"} { // created already, or not there
		if e := w.Do(state.JobIssue, workflowtest.Args("n", n)); e.Created != nil {
			t.Errorf("%s is created: %+v", n, e.Created)
		}
	}
}

// TestCreateProposedIssueOnce: an issue whose creation was not answered is found; a copy of its marker by somebody
// else is not taken for it.
func TestCreateProposedIssueOnce(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.Proposed()
	w.MustFault(simgithub.Fault{Method: "POST", Path: "/issues$", Count: 1, After: true, Cut: true})
	if _, err := w.Try(state.JobIssue, workflowtest.Args("n", "1")); err == nil {
		t.Fatal("no error")
	}
	copied, err := w.As("bob").OpenIssue(workflowtest.RepoName, simgithub.NewIssue{Title: "Copy", Body: w.IssueAt(2).Body})
	workflowtest.Check(t, err)
	if e := w.Do(state.JobIssue, workflowtest.Args("n", "1"), workflowtest.Again); e.Created.Issue != 2 || copied.Number != 3 {
		t.Errorf("%+v, the copy is %d", e.Created, copied.Number)
	}
	if _, err := w.Ada.Issue(workflowtest.RepoName, 4); err == nil {
		t.Error("it was created twice")
	}
}

package talk_test

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

func TestCreateProposedIssue(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.Proposed()
	e := w.Do(state.JobIssue, workflowtest.Args(state.JobArgs{Proposal: 1, OnPR: true}))
	if e.Kind() != event.KindIssueCreated || event.Of[event.IssueCreated](e).N != 1 || !event.Of[event.IssueCreated](e).OnPR || event.Of[event.IssueCreated](e).URL == "" {
		t.Fatalf("got event %+v", e)
	}
	i := w.IssueAt(event.Of[event.IssueCreated](e).Issue)
	if i.Author != w.App().BotLogin || strings.Contains(i.Title, "@ada") || strings.Contains(i.Title, "\n") || len(i.Labels)+len(i.Assignees) > 0 {
		t.Errorf("got issue %+v", i)
	}
	if strings.Contains(i.Body, workflowtest.Secret) || !strings.Contains(i.Body, "`@bob`") || !strings.Contains(i.Body, "works on #1") {
		t.Errorf("text:\n%s", i.Body)
	}
	w.HoursPass()
	if again := w.Do(state.JobIssue, workflowtest.Args(state.JobArgs{Proposal: 1}), workflowtest.Again); event.Of[event.IssueCreated](again).Issue != i.Number {
		t.Errorf("repeated: got %+v", event.Of[event.IssueCreated](again))
	}
	w.Task.Proposed[0].Issue = i.Number
	for _, n := range []int{1, 2, 0} { // created already, or missing
		if e := w.Do(state.JobIssue, workflowtest.Args(state.JobArgs{Proposal: n})); e.Kind() == event.KindIssueCreated {
			t.Errorf("got proposal %d created: %+v", n, e)
		}
	}
}

// TestCreateProposedIssueOnce: an issue whose creation got no answer is found; another author's issue with a copy of
// its marker does not count.
func TestCreateProposedIssueOnce(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.Proposed()
	w.MustFault(simgithub.Fault{Method: "POST", Path: "/issues$", Count: 1, After: true, Cut: true})
	if _, err := w.Try(state.JobIssue, workflowtest.Args(state.JobArgs{Proposal: 1})); err == nil {
		t.Fatal("got no error")
	}
	copied, err := w.As("bob").OpenIssue(workflowtest.RepoName, simgithub.NewIssue{Title: "Copy", Body: w.IssueAt(2).Body})
	workflowtest.Check(t, err)
	if e := w.Do(state.JobIssue, workflowtest.Args(state.JobArgs{Proposal: 1}), workflowtest.Again); event.Of[event.IssueCreated](e).Issue != 2 || copied.Number != 3 {
		t.Errorf("got %+v, the copy is %d", event.Of[event.IssueCreated](e), copied.Number)
	}
	if _, err := w.Ada.Issue(workflowtest.RepoName, 4); err == nil {
		t.Error("the issue was created twice")
	}
}

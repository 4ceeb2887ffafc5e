package workflow_test

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
)

// proposed has a task whose agent proposed an issue that ada wants.
func (w *world) proposed() {
	w.t.Helper()
	w.task.Proposed = []state.Proposal{{N: 1, Title: "Mend @ada's notes\nnow", Body: "Closes #1. @bob, the key is " + secret + ".", By: w.person("ada")}}
}

func TestCreateProposedIssue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.proposed()
	e := w.do(state.JobIssue, args("n", "1", "on_pr", "true"))
	if e.Kind != state.EventCreated || e.Created.N != 1 || !e.Created.OnPR || e.Created.URL == "" {
		t.Fatalf("event %+v", e.Created)
	}
	i := w.number(e.Created.Issue)
	if i.Author != w.App().BotLogin || strings.Contains(i.Title, "@ada") || strings.Contains(i.Title, "\n") || len(i.Labels)+len(i.Assignees) > 0 {
		t.Errorf("issue %+v", i)
	}
	if strings.Contains(i.Body, secret) || !strings.Contains(i.Body, "`@bob`") || !strings.Contains(i.Body, "works on #1") {
		t.Errorf("text:\n%s", i.Body)
	}
	w.hoursPass()
	if again := w.do(state.JobIssue, args("n", "1"), again); again.Created.Issue != i.Number {
		t.Errorf("repeated: %+v", again.Created)
	}
	w.task.Proposed[0].Issue = i.Number
	for _, n := range []string{"1", "2", "0", "x"} { // created already, or not there
		if e := w.do(state.JobIssue, args("n", n)); e.Created != nil {
			t.Errorf("%s is created: %+v", n, e.Created)
		}
	}
}

// TestCreateProposedIssueOnce: an issue whose creation was not answered is found; a copy of its marker by somebody
// else is not taken for it.
func TestCreateProposedIssueOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.proposed()
	w.fault(simgithub.Fault{Method: "POST", Path: "/issues$", Count: 1, After: true, Cut: true})
	if _, err := w.try(state.JobIssue, args("n", "1")); err == nil {
		t.Fatal("no error")
	}
	copied, err := w.As("bob").OpenIssue(full, simgithub.NewIssue{Title: "Copy", Body: w.number(2).Body})
	check(t, err)
	if e := w.do(state.JobIssue, args("n", "1"), again); e.Created.Issue != 2 || copied.Number != 3 {
		t.Errorf("%+v, the copy is %d", e.Created, copied.Number)
	}
	if _, err := w.ada.Issue(full, 4); err == nil {
		t.Error("it was created twice")
	}
}

package intake_test

import (
	"fmt"
	"testing"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestClosedPRIsReadAgain: before a closed pull request is announced, GitHub is asked whether it is closed. If GitHub does not
// answer, it is announced all the same.
func TestClosedPRIsReadAgain(t *testing.T) {
	t.Parallel()
	closePR := func(w *workflowtest.World, n int) error { return w.Ada.Close(workflowtest.RepoName, n, "") }
	hide := func(w *workflowtest.World, n int) error {
		w.MustFault(simgithub.Fault{Method: "GET", Path: fmt.Sprintf("/pulls/%d$", n), Status: 404, Count: 9})
		return nil
	}
	for name, c := range map[string]struct {
		act      func(w *workflowtest.World, n int) error
		known    state.PRState
		failures int
		want     event.Kind // "" is an error
	}{
		"closed":                {closePR, state.PRClosed, 0, event.KindDue},
		"open, known as closed": {nil, state.PRClosed, 0, event.KindPRReopened},
		"open":                  {nil, state.PROpen, 0, event.KindDue},
		"closed, known as open": {closePR, state.PROpen, 0, event.KindPRClosed},
		"merged": {func(w *workflowtest.World, n int) error {
			return w.Ada.Merge(workflowtest.RepoName, n, simgithub.Merge{})
		}, state.PRClosed, 0, event.KindPRClosed},
		"no answer":        {hide, state.PRClosed, 0, ""},
		"no answer at all": {hide, state.PRClosed, 2, event.KindDue},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			n := w.OpenPull().Number
			w.Task.PR.State = c.known
			if c.act != nil {
				workflowtest.Check(t, c.act(w, n))
			}
			job := workflowtest.Args(state.JobArgs{Due: state.DuePRClosed})
			e, err := w.Try(state.JobDue, job, func(j *state.Job) { j.Failures = c.failures })
			if c.want == "" && err != nil {
				return
			}
			if err != nil || e.Kind() != c.want {
				t.Errorf("got %s %+v, %v; want %s", e.Kind(), e.Payload, err, c.want)
			}
		})
	}
}

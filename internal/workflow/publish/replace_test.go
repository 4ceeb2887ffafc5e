package publish_test

import (
	"testing"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// replaced returns a world whose task began again while its pull request was open.
func replaced(t *testing.T, known bool) (*workflowtest.World, *simgithub.Issue) {
	w := workflowtest.New(t)
	p := w.OpenPull()
	r := state.ReplacedPR{Branch: w.Task.Branch.Name}
	if known {
		r.Number = p.Number
	}
	w.Task.PR, w.Task.Replaced, w.Task.Gen = nil, []state.ReplacedPR{r}, 2
	return w, p
}

// TestClosePR: a replaced pull request is closed and reported, also after a lost answer; one that people closed or merged is left
// as it is, and one that was never opened is reported as missing.
func TestClosePR(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		known  bool
		act    func(w *workflowtest.World, n int) error
		closed bool // by errand
		number bool // it is reported
	}{
		"open":              {true, nil, true, true},
		"of an unknown one": {false, nil, true, true},
		"closed":            {true, func(w *workflowtest.World, n int) error { return w.Ada.Close(workflowtest.RepoName, n, "") }, false, true},
		"merged": {true, func(w *workflowtest.World, n int) error {
			return w.Ada.Merge(workflowtest.RepoName, n, simgithub.Merge{})
		}, false, true},
		"closed, and unknown": {false, func(w *workflowtest.World, n int) error { return w.Ada.Close(workflowtest.RepoName, n, "") }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := replaced(t, c.known)
			if c.act != nil {
				workflowtest.Check(t, c.act(w, p.Number))
			}
			job := func(j *state.Job) {
				j.Args.Branch, j.Args.Number = w.Task.Replaced[0].Branch, w.Task.Replaced[0].Number
			}
			got := event.Of[event.PRReplaced](w.Do(state.JobClosePR, job))
			if got.Closed != c.closed || (got.Number == p.Number) != c.number || w.IssueAt(p.Number).State != "closed" {
				t.Errorf("got %+v, pull request %s", got, w.IssueAt(p.Number).State)
			}
			if again := event.Of[event.PRReplaced](w.Do(state.JobClosePR, job, workflowtest.Again)); c.known && again.Closed != (c.closed || name == "closed") {
				t.Errorf("after a lost answer: got %+v", again)
			}
		})
	}
}

// TestOpenPRClosesTheReplaced: whatever happened to the job that closes it, no second pull request of an issue is opened while the
// replaced one is open.
func TestOpenPRClosesTheReplaced(t *testing.T) {
	t.Parallel()
	w, p := replaced(t, true)
	w.Published()
	e := w.Do(state.JobOpenPR, func(j *state.Job) { j.Key = "2.open_pr-1.1" })
	if e.Kind() != event.KindPROpened || w.IssueAt(p.Number).State != "closed" {
		t.Errorf("got event %+v, the replaced pull request is %s", e, w.IssueAt(p.Number).State)
	}
}

// TestObsoleteOpenPR: a job of an ended or restarted task opens nothing any more, but reports what an earlier attempt opened.
func TestObsoleteOpenPR(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		opened, attempted bool
		want              event.Kind
	}{
		"nothing was opened": {false, true, event.KindNothing},
		"it was opened":      {true, true, event.KindPROpened},
		"never attempted":    {true, false, event.KindNothing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := replaced(t, false)
			if !c.opened {
				workflowtest.Check(t, w.Ada.Close(workflowtest.RepoName, p.Number, ""))
			}
			e := w.Do(state.JobOpenPR, func(j *state.Job) { j.Key, j.Attempted = "1.open_pr-9.1", c.attempted })
			if e.Kind() != c.want {
				t.Errorf("got event %+v, want %s", e, c.want)
			}
			if _, err := w.Ada.Issue(workflowtest.RepoName, p.Number+1); err == nil {
				t.Error("a second pull request was opened")
			}
		})
	}
}

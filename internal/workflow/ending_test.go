package workflow_test

import (
	"errors"
	"reflect"
	"testing"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

func TestStop(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	if e := w.Do(state.JobStop, workflowtest.Args(state.JobArgs{Reason: "cancelled"})); e.Kind() != event.KindWorkSaved || event.Of[event.WorkSaved](e).Work.Ref != "" {
		t.Errorf("without a VM: got %+v", e)
	}
	h := w.Building()
	w.Task.Work = nil
	stop := func(j *state.Job) { j.Run = "r-1" }
	if e := w.Do(state.JobStop, workflowtest.Args(state.JobArgs{Reason: "cancelled"}), stop); event.Of[event.WorkSaved](e).Work.Ref != "" || len(h.Stopped) != 1 || h.Stopped[0] != "r-1 cancelled" {
		t.Errorf("without a run: got %+v, stopped %v", event.Of[event.WorkSaved](e).Work, h.Stopped)
	}
	h.Write(t, map[string]string{"half.txt": "done\n"})
	e := w.Do(state.JobStop, workflowtest.Args(state.JobArgs{Reason: "cancelled"}), stop)
	saved := event.Of[event.WorkSaved](e).Work
	if saved.Run != "r-1" || saved.Reason != "cancelled" {
		t.Fatalf("got saved %+v", saved)
	}
	cs, err := w.Files.LoadChangeset(saved.Ref)
	workflowtest.Check(t, err)
	if cs.Stats().Paths() != 1 {
		t.Errorf("got saved %+v", cs.Stats())
	}
	h.Errs["Stop"] = errors.New("no route to host")
	if _, err := w.Try(state.JobStop, workflowtest.Args(state.JobArgs{Reason: "cancelled"}), stop); err == nil {
		t.Error("the VM is given up at the first error")
	}
	if e := w.Do(state.JobStop, workflowtest.Args(state.JobArgs{Reason: "cancelled"}), stop, func(j *state.Job) { j.Failures = 2 }); e.Kind() != event.KindWorkSaved || event.Of[event.WorkSaved](e).Work.Ref != "" {
		t.Errorf("giving up: got %+v", e)
	}
	h.Errs["Stop"], h.Errs["Collect"] = nil, errors.New("bad object")
	if _, err := w.Try(state.JobStop, workflowtest.Args(state.JobArgs{Reason: "cancelled"}), stop); err == nil {
		t.Error("the work is given up at the first error")
	}
	if e := w.Do(state.JobStop, workflowtest.Args(state.JobArgs{Reason: "cancelled"}), stop, func(j *state.Job) { j.Failures = 2 }); e.Kind() != event.KindWorkSaved || event.Of[event.WorkSaved](e).Work.Ref != "" {
		t.Errorf("unreadable: got %+v", e)
	}
}

func TestRelease(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	e := w.Do(state.JobRelease, workflowtest.Args(state.JobArgs{VM: "vm-7", Reason: "done"}))
	if e.Kind() != event.KindReleased || event.Of[event.Released](e).Reason != "done" || len(w.Host.Released) != 1 || w.Host.Released[0] != "vm-7 done" {
		t.Errorf("got event %+v, released %v", e, w.Host.Released)
	}
	w.Host.Errs["Release"] = errors.New("locked")
	if _, err := w.Try(state.JobRelease, workflowtest.Args(state.JobArgs{VM: "vm-7"})); !errors.Is(err, w.Host.Errs["Release"]) {
		t.Errorf("got error %v", err)
	}
}

// TestHowAnIssueWasClosed: a merge also closes the issue; only a person's closing cancels the task.
func TestHowAnIssueWasClosed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act  func(w *workflowtest.World, n int) error
		kind event.Kind
	}{
		"by the merge": {func(w *workflowtest.World, n int) error {
			return w.Ada.Merge(workflowtest.RepoName, n, simgithub.Merge{})
		}, event.KindPRClosed},
		"by a person":  {func(w *workflowtest.World, _ int) error { return w.Ada.Close(workflowtest.RepoName, 1, "") }, event.KindIssueClosed},
		"and reopened": {func(*workflowtest.World, int) error { return nil }, event.KindNothing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			p := w.OpenPull()
			workflowtest.Check(t, c.act(w, p.Number))
			e := w.Do(state.JobDue, workflowtest.Args(state.JobArgs{Due: state.DueClosed, Key: "issue"}))
			if e.Kind() != c.kind || event.Of[event.PRClosed](e).Merged != (c.kind == event.KindPRClosed) || c.kind == event.KindIssueClosed && e.Via != "confirmed" {
				t.Errorf("got event %+v", e)
			}
		})
	}
	w := workflowtest.New(t)
	if e := w.Do(state.JobDue, workflowtest.Args(state.JobArgs{Due: state.DueRemind, Key: "h"})); !reflect.DeepEqual(e.Payload, event.NewDue(state.DueRemind, "h")) {
		t.Errorf("got event %+v", e)
	}
}

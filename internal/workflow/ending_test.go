package workflow_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/internal/runner/pack"
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
	before := h.Git(t, "rev-parse", "HEAD")
	h.Write(t, map[string]string{"more.txt": "half done\n"})
	e = w.Do(state.JobStop, workflowtest.Args(state.JobArgs{Reason: "a message", Continues: true}), stop)
	if event.Of[event.WorkSaved](e).Work.Ref != "" || h.Stopped[len(h.Stopped)-1] != "r-1 a message" || h.Git(t, "rev-parse", "HEAD") != before {
		t.Errorf("a run that continues: got %+v, stopped %v; want the checkout unchanged", event.Of[event.WorkSaved](e).Work, h.Stopped)
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

// TestStopPacksCanceledWork: the work of a canceled task is packed with its uncommitted files, and restored on the next VM. If it
// cannot be packed, its commits are saved.
func TestStopPacksCanceledWork(t *testing.T) {
	t.Parallel()
	said := fmt.Errorf("x: %w", &remote.ExitError{Code: 1})
	for name, c := range map[string]struct {
		err            error
		attempt        int
		packs, commits bool
	}{
		"packed":              {nil, 1, true, false},
		"says no":             {said, 1, false, false},
		"refuses permanently": {said, 3, false, true},
		"too much":            {pack.ErrTooLarge, 1, false, true},
		"another life":        {nil, 1, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			w.Rest()
			w.Task.Phase, w.Task.End = state.PhaseCancelled, &state.End{Saving: true}
			if name == "another life" {
				w.Task.Phase, w.Task.End = state.PhaseImplementing, nil
			}
			w.Host.Errs["Pack"] = c.err
			w.Task.Runs = append(w.Task.Runs, state.Run{ID: "1-1-2", Kind: state.RunCheck, State: state.RunEnded}) // its launch was under way
			e, err := w.Try(state.JobStop, workflowtest.Args(state.JobArgs{VM: "vm-1", Reason: "canceled"}), func(j *state.Job) { j.Run, j.Failures = "1-1-1", c.attempt-1 })
			if !c.packs && !c.commits {
				if !errors.Is(err, c.err) {
					t.Errorf("got event %+v, %v", e, err)
				}
				return
			}
			workflowtest.Check(t, err)
			saved := event.Of[event.WorkSaved](e)
			if (saved.Archive != nil) != c.packs || (saved.Work.Ref != "") != c.commits {
				t.Fatalf("got event %+v", e)
			}
			if !c.packs {
				return
			}
			if got := w.Host.Stopped; !slices.Equal(got, []string{"1-1-1 canceled", "1-1-2 canceled"}) {
				t.Errorf("got stopped %v, want the run that may have begun stopped as well", got)
			}
			w.Task.Runs = w.Task.Runs[:len(w.Task.Runs)-1]
			a := *saved.Archive
			a.At = time.Now()
			w.Task.Suspended, w.Task.VM, w.Task.Phase, w.Task.End, w.Task.Gen = &a, nil, state.PhaseImplementing, nil, 2
			w.NewVM()
			w.Launching(state.RunImplement).Session = workflowtest.Session
			if l := w.Launched(); l.RestoreFailure != "" || !l.VM.Contains("vm-1") || !l.Resumed {
				t.Errorf("got launch %+v", l)
			}
			if status := w.Host.Git(t, "status", "--short"); status != "M slug.go\n?? new.txt" {
				t.Errorf("got status %q", status)
			}
		})
	}
}

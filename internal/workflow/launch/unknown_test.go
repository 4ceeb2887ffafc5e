package launch_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/runner"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestLaunchSavesUnknownWork: after a restoration, the commits of runs that the backup does not know are saved before the next run begins
// in their checkout, and these runs are ended first.
func TestLaunchSavesUnknownWork(t *testing.T) {
	t.Parallel()
	const why = "errand was restored from a backup that does not know this run"
	restored := func(j *state.Job) { j.Restored = time.Now() }
	tests := map[string]struct {
		ids     []string // on the VM
		job     func(*state.Job)
		clean   bool // the VM has no unpublished work
		collect error
		stopped []string
		saved   string
		problem bool
	}{
		"an unknown run":            {ids: []string{"TASK-2", "TASK-4", "TASK-3"}, job: restored, stopped: []string{"TASK-3", "TASK-4"}, saved: "TASK-4"},
		"without unpublished work":  {ids: []string{"TASK-3"}, job: restored, clean: true, stopped: []string{"TASK-3"}},
		"all runs are known":        {ids: []string{"TASK-1", "TASK-2"}, job: restored},
		"no runs of this task":      {ids: []string{"TASK-3-x", "TASK-03", "1-2-9", "TASK-../9", "TASK--9", "9"}, job: restored},
		"in a store of its own":     {ids: []string{"TASK-3"}, job: func(*state.Job) {}},
		"it cannot be saved":        {ids: []string{"TASK-3"}, job: restored, collect: errors.New("too large"), stopped: []string{"TASK-3"}},
		"it can still not be saved": {ids: []string{"TASK-3"}, job: func(j *state.Job) { restored(j); j.Failures = 2 }, collect: errors.New("too large"), stopped: []string{"TASK-3"}, problem: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			ofTask := func(id string) string {
				return strings.ReplaceAll(id, "TASK", fmt.Sprintf("%d-%d", w.Task.Key.Repo, w.Task.Key.Issue))
			}
			base := w.Head("main")
			w.Task.Run = &state.Run{ID: ofTask("TASK-100"), Kind: state.RunImplement, State: state.RunLaunching, Seq: 100}
			w.Task.Runs = []state.Run{{ID: ofTask("TASK-2"), Kind: state.RunPlan, State: state.RunEnded, Seq: 2, RunVerdict: state.RunVerdict{Status: state.StatusOK}}}
			w.Task.Branch.BaseSHA, w.Task.Branch.Root = base, base
			w.Host.Checkout(t, base)
			work := base
			if !test.clean {
				work = w.Host.Commit(t, "Work since the backup", map[string]string{"slug.go": "package slug // better\n"})
			}
			for _, id := range test.ids {
				w.Host.Started = append(w.Host.Started, runner.Spec{ID: ofTask(id)})
			}
			w.Host.Errs["Collect"] = test.collect
			e, err := w.Try(state.JobLaunch, test.job)
			var stopped []string
			for _, id := range test.stopped {
				stopped = append(stopped, ofTask(id)+" "+why)
			}
			if diff := cmp.Diff(stopped, w.Host.Stopped); diff != "" {
				t.Errorf("ended runs (-want +got):\n%s", diff)
			}
			if test.collect != nil {
				if len(w.Host.Started) != len(test.ids) || w.Host.Git(t, "rev-parse", "HEAD") != work {
					t.Error("the work was not saved, and the next run began")
				}
				if test.problem {
					workflowtest.WantProblem(t, err, state.ClassVM, true)
				} else if err == nil {
					t.Error("got no error")
				}
				return
			}
			workflowtest.Check(t, err)
			launched := event.Of[event.Launched](e).Launch
			if test.saved == "" {
				if launched.Saved != nil {
					t.Errorf("got saved work %+v", launched.Saved)
				}
				return
			}
			if launched.Saved == nil || launched.Saved.Run != ofTask(test.saved) {
				t.Fatalf("got saved work %+v", launched.Saved)
			}
			cs, err := w.Files.LoadChangeset(launched.Saved.Ref)
			workflowtest.Check(t, err)
			if len(cs.Commits) != 1 || !strings.HasPrefix(cs.Commits[0].Message, "Work since the backup") {
				t.Errorf("got saved commits %+v", cs.Commits)
			}
			if w.Host.Git(t, "rev-parse", "HEAD") != base {
				t.Error("the next run does not begin at the base")
			}
		})
	}
}

// TestLaunchFindsThePullRequest: after a restoration, no agent implements again what errand has published already.
func TestLaunchFindsThePullRequest(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		kind  state.RunKind
		job   func(*state.Job)
		found bool
	}{
		"an implementation": {kind: state.RunImplement, job: func(j *state.Job) { j.Restored = time.Now() }, found: true},
		"a plan":            {kind: state.RunPlan, job: func(j *state.Job) { j.Restored = time.Now() }},
		"without a backup":  {kind: state.RunImplement, job: func(*state.Job) {}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			number := w.OpenPull().Number
			w.Task.PR, w.Task.Branch.Head, w.Task.Phase = nil, "", state.PhaseImplementing
			w.Task.Run = &state.Run{ID: "1-1-1", Kind: test.kind, State: state.RunLaunching, Seq: 1}
			e := w.Do(state.JobLaunch, test.job)
			if f := event.Of[event.PRFound](e); (f.PR.Number == number) != test.found || test.found == (len(w.Host.Started) > 0) {
				t.Errorf("got event %+v and %d started runs", e, len(w.Host.Started))
			}
		})
	}
}

// TestLiesAboutRuns: a VM that lists very many runs cannot keep errand busy with them.
func TestLiesAboutRuns(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.Task.Run = &state.Run{ID: "1-1-1", Kind: state.RunPlan, State: state.RunLaunching, Seq: 1}
	for n := range 100_000 {
		w.Host.Started = append(w.Host.Started, runner.Spec{ID: fmt.Sprintf("%d-%d-%d", w.Task.Key.Repo, w.Task.Key.Issue, 10+n)})
	}
	w.Host.Checkout(t, w.Head("main"))
	w.Do(state.JobLaunch, func(j *state.Job) { j.Restored = time.Now() })
	if n := len(w.Host.Stopped); n != 100 {
		t.Errorf("got %d ended runs", n)
	}
}

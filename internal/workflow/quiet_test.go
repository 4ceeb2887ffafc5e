package workflow_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/state"
)

// TestLaunchEndsWhatWasLeft: a run that was stopped a moment ago, or whose start nobody came to know
// of, is ended before the next one begins in the same checkout.
func TestLaunchEndsWhatWasLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.task.Phase, w.task.Step = state.PhasePreliminaryPlanning, state.JobLaunch
	w.task.Run = &state.Run{ID: "1-1-5", Kind: state.RunPreliminary, State: state.RunLaunching, Seq: 5}
	w.task.Runs = []state.Run{
		{ID: "1-1-0", State: state.RunEnded, RunVerdict: state.RunVerdict{Status: "interrupted"}, RunLaunch: state.RunLaunch{VM: "vm-1"}},
		{ID: "1-1-1", State: state.RunEnded, RunVerdict: state.RunVerdict{Status: "ok"}, RunLaunch: state.RunLaunch{VM: "vm-1"}},
		{ID: "1-1-2", State: state.RunEnded, RunVerdict: state.RunVerdict{Status: "interrupted"}, RunLaunch: state.RunLaunch{VM: "vm-1"}},
		{ID: "1-1-turns", State: state.RunEnded, RunVerdict: state.RunVerdict{Status: state.StatusMaxTurns}, RunLaunch: state.RunLaunch{VM: "vm-1"}},
		{ID: "1-1-3", State: state.RunEnded, RunVerdict: state.RunVerdict{Status: "interrupted"}, RunLaunch: state.RunLaunch{VM: "vm-9"}},
		{ID: "1-1-4", State: state.RunEnded, RunVerdict: state.RunVerdict{Status: "interrupted"}},
	}
	w.host.errs["Stop"] = errors.New("it does not end")
	if _, err := w.try(state.JobLaunch); err == nil || len(w.host.started) != 0 {
		t.Fatalf("a run begins beside another one: %v, %v", w.host.started, err)
	}
	w.host.stopped, w.host.errs["Stop"] = nil, nil
	if e := w.do(state.JobLaunch); e.Kind != state.EventLaunched {
		t.Fatalf("event %+v", e)
	}
	if diff := cmp.Diff([]string{"1-1-4 another run begins", "1-1-turns another run begins", "1-1-2 another run begins"}, w.host.stopped); diff != "" {
		t.Errorf("ended (-want +got):\n%s", diff)
	}
}

// TestSleepEndsWhatWasLeft: a VM's work is put away only when nothing can change it any more.
func TestSleepEndsWhatWasLeft(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		run      state.Run
		snapshot bool
		ends     bool
	}{
		"stopped by a person":                 {state.Run{RunVerdict: state.RunVerdict{Status: "interrupted"}, RunLaunch: state.RunLaunch{VM: "vm-1"}}, false, true},
		"stopped for its turns":               {state.Run{RunVerdict: state.RunVerdict{Status: state.StatusMaxTurns}, RunLaunch: state.RunLaunch{VM: "vm-1"}}, false, true},
		"at its end for its turns":            {state.Run{RunVerdict: state.RunVerdict{Status: state.StatusMaxTurns, Told: true}, RunLaunch: state.RunLaunch{VM: "vm-1"}}, false, false},
		"perhaps started, nobody knows where": {state.Run{RunVerdict: state.RunVerdict{Status: "interrupted"}}, false, true},
		"stopped on another VM":               {state.Run{RunVerdict: state.RunVerdict{Status: "interrupted"}, RunLaunch: state.RunLaunch{VM: "vm-9"}}, false, false},
		"at its end":                          {state.Run{RunVerdict: state.RunVerdict{Status: "ok"}, RunLaunch: state.RunLaunch{VM: "vm-1"}}, false, false},
		"stopped, its disk to be kept":        {state.Run{RunVerdict: state.RunVerdict{Status: "interrupted"}, RunLaunch: state.RunLaunch{VM: "vm-1"}}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			disk := &disks{}
			w := newWorld(t, func(cfg *workflow.Config) {
				if c.snapshot {
					cfg.Sleeper = disk
				}
			})
			w.rests()
			if c.snapshot {
				w.task.Settings.VM.Sleep = state.SleepSnapshot
			}
			c.run.ID, c.run.Kind, c.run.State, c.run.Round = "1-1-9", state.RunImplement, state.RunEnded, w.task.Round
			w.task.Runs = append(w.task.Runs, c.run)
			w.host.errs["Stop"] = errors.New("it does not end")
			e, err := w.try(state.JobSleep, args("vm", "vm-1"))
			if put := err == nil && e.Asleep != nil; put == c.ends {
				t.Fatalf("put away %v although the run does not end: %+v, %v", put, e, err)
			}
			w.host.errs["Stop"] = nil
			w.do(state.JobSleep, args("vm", "vm-1"))
			if got := slices.Contains(w.host.stopped, "1-1-9 another run begins"); got != c.ends {
				t.Errorf("ended %q", w.host.stopped)
			}
		})
	}
}

// TestCap: an agent gets what is left of the task's money, and none is started without any. Checks
// cost nothing.
func TestCap(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.task.Phase, w.task.Step = state.PhasePreliminaryPlanning, state.JobLaunch
	w.task.Run = &state.Run{ID: "1-1-1", Kind: state.RunPreliminary, State: state.RunLaunching, Seq: 1}
	w.task.Money = state.Money{CapMicroUSD: 10_000_000, MicroUSD: 10_000_001}
	_, err := w.try(state.JobLaunch)
	wantProblem(t, err, state.ClassBudget, true)
	if len(w.host.started) != 0 {
		t.Fatalf("started %v", w.host.started)
	}
	w.task.Money.MicroUSD = 7_500_000
	w.do(state.JobLaunch)
	argv := w.host.started[0].Argv
	if i := slices.Index(argv, "--max-budget-usd"); i < 0 || argv[i+1] != "2.5" {
		t.Errorf("the agent is started with %q", argv)
	}
}

// TestNobodyVouches: the text of an outsider's issue that nobody answers for is withheld.
func TestNobodyVouches(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		author string
		by     string
		want   bool
	}{
		"a writer triggered":                   {author: "eve", by: "ada", want: true},
		"found later, edited since":            {author: "eve"},
		"found later, but a writer's own text": {author: "ada", want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			i, err := w.As(c.author).OpenIssue(full, simgithub.NewIssue{Title: "Else", Body: "Do this."})
			check(t, err)
			w.task = w.newTask(i, w.task.Installation)
			w.task.Frozen.By = state.Person{}
			if c.by != "" {
				w.task.Frozen.By = w.person(c.by)
			}
			e := w.do(state.JobStart)
			if e.Kind != state.EventStarted || e.Start.Visible != c.want {
				t.Errorf("visible: %+v", e.Start)
			}
		})
	}
}

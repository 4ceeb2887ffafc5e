package launch_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestLaunchEndsEarlierRuns: a run that was just stopped, or whose start is unknown to errand, is ended before the next
// one begins in the same checkout.
func TestLaunchEndsEarlierRuns(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.Task.Phase, w.Task.Step = state.PhasePreliminaryPlanning, state.JobLaunch
	w.Task.Run = &state.Run{ID: "1-1-5", Kind: state.RunPreliminary, State: state.RunLaunching, Seq: 5}
	w.Task.Runs = []state.Run{
		{ID: "1-1-0", State: state.RunEnded, RunVerdict: state.RunVerdict{Status: state.StatusInterrupted}, RunLaunch: state.RunLaunch{VM: "vm-1"}},
		{ID: "1-1-1", State: state.RunEnded, RunVerdict: state.RunVerdict{Status: state.StatusOK}, RunLaunch: state.RunLaunch{VM: "vm-1"}},
		{ID: "1-1-2", State: state.RunEnded, RunVerdict: state.RunVerdict{Status: state.StatusInterrupted}, RunLaunch: state.RunLaunch{VM: "vm-1"}},
		{ID: "1-1-turns", State: state.RunEnded, RunVerdict: state.RunVerdict{Status: state.StatusMaxTurns}, RunLaunch: state.RunLaunch{VM: "vm-1"}},
		{ID: "1-1-3", State: state.RunEnded, RunVerdict: state.RunVerdict{Status: state.StatusInterrupted}, RunLaunch: state.RunLaunch{VM: "vm-9"}},
		{ID: "1-1-4", State: state.RunEnded, RunVerdict: state.RunVerdict{Status: state.StatusInterrupted}},
	}
	w.Host.Errs["Stop"] = errors.New("it does not end")
	if _, err := w.Try(state.JobLaunch); err == nil || len(w.Host.Started) != 0 {
		t.Fatalf("got a start while another run is active: %v, %v", w.Host.Started, err)
	}
	w.Host.Stopped, w.Host.Errs["Stop"] = nil, nil
	if e := w.Do(state.JobLaunch); e.Kind() != event.KindLaunched {
		t.Fatalf("got event %+v", e)
	}
	if diff := cmp.Diff([]string{"1-1-4 another run starts", "1-1-turns another run starts", "1-1-2 another run starts"}, w.Host.Stopped); diff != "" {
		t.Errorf("ended runs (-want +got):\n%s", diff)
	}
}

// TestCap: an agent gets the rest of the task's budget, and none is started without budget. Checks cost nothing.
func TestCap(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.Task.Phase, w.Task.Step = state.PhasePreliminaryPlanning, state.JobLaunch
	w.Task.Run = &state.Run{ID: "1-1-1", Kind: state.RunPreliminary, State: state.RunLaunching, Seq: 1}
	w.Task.Money = state.Money{CapMicroUSD: 10_000_000, MicroUSD: 10_000_001}
	_, err := w.Try(state.JobLaunch)
	workflowtest.WantProblem(t, err, state.ClassBudget, true)
	if len(w.Host.Started) != 0 {
		t.Fatalf("got starts %v", w.Host.Started)
	}
	w.Task.Money.MicroUSD = 7_500_000
	w.Do(state.JobLaunch)
	argv := w.Host.Started[0].Argv
	if i := slices.Index(argv, "--max-budget-usd"); i < 0 || argv[i+1] != "2.5" {
		t.Errorf("got agent started with %q", argv)
	}
}

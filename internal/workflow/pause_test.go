package workflow_test

import (
	"context"
	"errors"
	"testing"

	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestRestoreWaitsForThePause: publishing suspended work needs a VM, so it waits for the operator; with the VM that it has, it goes on.
func TestRestoreWaitsForThePause(t *testing.T) {
	t.Parallel()
	paused := true
	w := workflowtest.New(t, func(cfg *workflow.Config) {
		cfg.Paused = func(context.Context, int64) (*state.Waiting, error) {
			if !paused {
				return nil, nil
			}
			return state.Pause{}.Waiting(), nil
		}
	})
	paused = false
	w.Rest()
	w.Suspend()
	w.NewVM()
	w.Task.Phase, w.Task.Step, w.Task.Work = state.PhaseImplementing, state.JobCollect, &state.Work{Run: "1-1-2"}
	paused = true
	w.Host.Errs["Acquire"] = errors.New("a VM is requested")
	if e := w.Do(state.JobCollect); e.Kind() != event.KindStepBlocked || e.Waiting().Kind != state.WaitPaused {
		t.Fatalf("got event %s, waiting %+v", e.Kind(), e.Waiting())
	}
	delete(w.Host.Errs, "Acquire")
	paused = false
	restored := event.Of[event.Restored](w.Do(state.JobCollect))
	w.Task.VM = &restored.Launch.VM
	paused = true
	if e := w.Do(state.JobCollect); e.Kind() != event.KindCollected {
		t.Errorf("on the VM that is there: got event %s", e.Kind())
	}
}

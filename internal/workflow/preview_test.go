package workflow

import (
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

// TestFirstRun: the limits that a preview shows are those of the run with which the task would begin.
func TestFirstRun(t *testing.T) {
	t.Parallel()
	for plan, want := range map[settings.PlanMode]state.RunKind{
		settings.PlanNone: state.RunImplement, settings.PlanOneStep: state.RunPlan, settings.PlanTwoStep: state.RunPreliminary, "": state.RunPreliminary,
	} {
		if got := firstRun(plan); got != want {
			t.Errorf("plan %q: got %s, want %s", plan, got, want)
		}
	}
}

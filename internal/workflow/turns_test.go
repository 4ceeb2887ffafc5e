package workflow_test

import (
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/state"
)

// TestLaunchBoundsTurns: an agent that counts its turns is told how many it has; of one that cannot the
// gateway is told.
func TestLaunchBoundsTurns(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		model string
		asked int
		want  int
	}{
		"counts by itself":     {"claude:claude-sonnet-5", 0, 0},
		"cannot":               {"codex:gpt-5.5", 0, 7},
		"cannot, asked for 60": {"codex:gpt-5.5", 60, 60},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agents, err := agent.NewSet(agent.Config{Models: map[string]string{string(state.RunPreliminary): tc.model}})
			check(t, err)
			w := newWorld(t, func(c *workflow.Config) { c.Agents = agents })
			w.task.Phase = state.PhasePreliminaryPlanning
			w.task.Settings.Limits.Turns, w.task.Turns = 7, tc.asked
			w.launching(state.RunPreliminary)
			if l := w.launchedWell(); l.MaxTurns != tc.want {
				t.Errorf("%d turns, want %d", l.MaxTurns, tc.want)
			}
		})
	}
}

package launch_test

import (
	"testing"

	"github.com/errand-bot/errand/internal/agent/command"
	"github.com/errand-bot/errand/internal/agent/registry"
	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
)

// TestLaunchBoundsTurns: the gateway limits the turns of every adapter's runs: exactly if the program cannot count its
// turns, otherwise at a number that no correct program reaches.
func TestLaunchBoundsTurns(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		model string
		asked int
		want  int
	}{
		"claude":                {"claude:claude-sonnet-5", 0, 24},
		"claude, limited to 60": {"claude:claude-sonnet-5", 60, 130},
		"gemini":                {"gemini:gemini-2.5-pro", 0, 24},
		"api":                   {"api:claude-sonnet-5", 0, 24},
		"codex":                 {"codex:gpt-5.5", 0, 7},
		"codex, limited to 60":  {"codex:gpt-5.5", 60, 60},
		"command":               {"command:any", 0, 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agents, err := registry.New(registry.Config{
				Models: map[string]string{string(state.RunPreliminary): tc.model}, Adapters: map[string]registry.Settings{command.Name: {Command: []string{"true"}}},
			})
			workflowtest.Check(t, err)
			w := workflowtest.New(t, func(c *workflow.Config) { c.Agents = agents })
			w.Task.Phase = state.PhasePreliminaryPlanning
			w.Task.Settings.Limits.Turns, w.Task.Turns = 7, tc.asked
			w.Launching(state.RunPreliminary)
			told := 7
			if tc.asked > 0 {
				told = tc.asked
			}
			if l := w.Launched(); l.MaxTurns != tc.want || l.TurnLimit != told {
				t.Errorf("got limit %d and %d for the program, want %d and %d", l.MaxTurns, l.TurnLimit, tc.want, told)
			}
		})
	}
}

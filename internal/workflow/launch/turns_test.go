package launch_test

import (
	"testing"

	"github.com/errand-bot/errand/internal/agent/command"
	"github.com/errand-bot/errand/internal/agent/registry"
	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
)

// TestLaunchBoundsTurns: the gateway limits the turns of every adapter's runs: exactly if the program cannot count its
// turns, otherwise at a number that no correct program reaches. Without a limit in the settings only runs whose calls cost
// nothing, which no cap on cost ends, have one.
func TestLaunchBoundsTurns(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		model      string
		limit      int // of the settings
		asked      int // by a person
		subscribed string
		program    int // limit passed to the program
		gateway    int // limit of the gateway
	}{
		"claude":                              {"claude:claude-sonnet-5", 7, 0, "", 7, 24},
		"claude, 60 asked for":                {"claude:claude-sonnet-5", 7, 60, "", 60, 130},
		"claude without a limit":              {"claude:claude-sonnet-5", 0, 0, "", 0, 0},
		"claude on a subscription":            {"claude:claude-sonnet-5", 0, 0, "anthropic", 200, 410},
		"claude on a subscription, limited":   {"claude:claude-sonnet-5", 7, 0, "anthropic", 7, 24},
		"claude on a subscription, 300 asked": {"claude:claude-sonnet-5", 0, 300, "anthropic", 300, 610},
		"claude on a subscription, raised":    {"claude:claude-sonnet-5", 1000, 0, "anthropic", 200, 410},
		"gemini":                              {"gemini:gemini-2.5-pro", 7, 0, "", 7, 24},
		"gemini, another one's subscription":  {"gemini:gemini-2.5-pro", 0, 0, "anthropic", 0, 0},
		"api":                                 {"api:claude-sonnet-5", 7, 0, "", 7, 24},
		"codex":                               {"codex:gpt-5.5", 7, 0, "", 7, 7},
		"codex, 60 asked for":                 {"codex:gpt-5.5", 7, 60, "", 60, 60},
		"codex without a limit":               {"codex:gpt-5.5", 0, 0, "", 0, 0},
		"codex on a subscription":             {"codex:gpt-5.5", 0, 0, "openai", 200, 200},
		"command":                             {"command:any", 7, 0, "", 7, 7},
		"a free model":                        {"command:free", 0, 0, "", 200, 200},
		"a free model, limited":               {"command:free", 7, 0, "", 7, 7},
		"a free model, 300 asked":             {"command:free", 0, 300, "", 300, 300},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agents, err := registry.New(registry.Config{
				Models: map[string]string{string(state.RunPreliminary): tc.model}, Adapters: map[string]registry.Settings{command.Name: {Command: []string{"true"}}},
			})
			workflowtest.Check(t, err)
			w := workflowtest.New(t, func(c *workflow.Config) {
				c.Agents = agents
				c.Providers = map[string]string{"claude": "anthropic", "api": "anthropic", "codex": "openai", "gemini": "google"}
				c.SubscriptionTurns = 200
				c.IsFree = modelapi.Prices{"free": {}, "gpt": {Input: 1}}.IsFree
				c.Subscribed = map[string]bool{tc.subscribed: true}
			})
			w.Task.Phase = state.PhasePreliminaryPlanning
			w.Task.Settings.Limits.Turns, w.Task.Turns = tc.limit, tc.asked
			w.Launching(state.RunPreliminary)
			if l := w.Launched(); l.MaxTurns != tc.gateway || l.TurnLimit != tc.program {
				t.Errorf("got limit %d and %d for the program, want %d and %d", l.MaxTurns, l.TurnLimit, tc.gateway, tc.program)
			}
		})
	}
}

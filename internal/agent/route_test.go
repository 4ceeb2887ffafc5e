package agent_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/agent"
)

// mixed gives steps to two adapters.
func mixed() agent.Config {
	return agent.Config{
		Model:    "claude-sonnet-5",
		Models:   map[string]string{"plan": "claude-opus-4-8", "implement": "command:qwen3:8b", "review": "claude:claude-haiku-4-5"},
		Adapters: map[string]agent.Settings{"command": {Command: []string{"/bin/mine"}, Model: "small", Provider: "here", Env: map[string]string{"B": "own"}}},
		Env:      map[string]string{"A": "all", "B": "all"},
		Choices:  []string{"claude-opus-*", "command:big-*"},
		Helpers:  []string{"tiny"},
	}
}

func TestRoute(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		step, wish string
		want       agent.Route
	}{
		"the default":               {"preliminary_plan", "", agent.Route{Adapter: "claude", Model: "claude-sonnet-5"}},
		"a model alone":             {"plan", "", agent.Route{Adapter: "claude", Model: "claude-opus-4-8"}},
		"another adapter":           {"implement", "", agent.Route{Adapter: "command", Model: "qwen3:8b"}},
		"the adapter said":          {"review", "", agent.Route{Adapter: "claude", Model: "claude-haiku-4-5"}},
		"wished":                    {"implement", "claude-opus-5", agent.Route{Adapter: "claude", Model: "claude-opus-5"}},
		"wished with its adapter":   {"plan", "command:big-1", agent.Route{Adapter: "command", Model: "big-1"}},
		"wished of another adapter": {"plan", "big-1", agent.Route{Adapter: "command", Model: "big-1"}},
		"wished as configured":      {"plan", "qwen3:8b", agent.Route{Adapter: "command", Model: "qwen3:8b"}},
		"not offered":               {"plan", "gpt-dear", agent.Route{Adapter: "claude", Model: "claude-opus-4-8"}},
		"not of that adapter":       {"plan", "command:claude-opus-5", agent.Route{Adapter: "claude", Model: "claude-opus-4-8"}},
		"no model":                  {"plan", "command:", agent.Route{Adapter: "claude", Model: "claude-opus-4-8"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := mixed().Choose(test.step, test.wish); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
	want := []string{"claude-haiku-4-5", "claude-opus-*", "claude-opus-4-8", "claude-sonnet-5", "command:big-*", "command:qwen3:8b"}
	if diff := cmp.Diff(want, mixed().Offered()); diff != "" {
		t.Errorf("offered (-want +got):\n%s", diff)
	}
}

func TestFor(t *testing.T) {
	t.Parallel()
	want := agent.Config{
		Adapter: "command", Command: []string{"/bin/mine"}, Model: "small", Provider: "here",
		Models: map[string]string{"implement": "qwen3:8b"}, Env: map[string]string{"A": "all", "B": "own"},
	}
	if diff := cmp.Diff(want, mixed().For("command")); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
	want = agent.Config{
		Adapter: "claude", Command: []string{"claude"}, Model: "claude-sonnet-5",
		Models: map[string]string{"plan": "claude-opus-4-8", "review": "claude-haiku-4-5"}, Env: map[string]string{"A": "all", "B": "all"},
	}
	if diff := cmp.Diff(want, mixed().For("claude")); diff != "" {
		t.Errorf("claude (-want +got):\n%s", diff)
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	set, err := agent.NewSet(mixed())
	if err != nil {
		t.Fatal(err)
	}
	a, route := set.Choose("implement", "")
	if a.Name() != "command" || route.Model != "qwen3:8b" {
		t.Errorf("chosen: %s %v", a.Name(), route)
	}
	if got := set.Of("gone").Name(); got != "claude" {
		t.Errorf("an adapter that is gone is read as %s", got)
	}
	if diff := cmp.Diff([]string{"qwen3:8b", "tiny"}, set.Models(route)); diff != "" {
		t.Errorf("callable (-want +got):\n%s", diff)
	}
	if got := set.Models(agent.Route{Adapter: "command"}); got != nil {
		t.Errorf("a program that chooses may call only %v", got)
	}
}

func TestRoutesThatCannotBe(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*agent.Config)
		want   string
	}{
		"no model":             {func(c *agent.Config) { c.Models = map[string]string{"plan": "claude:"} }, `agent.models.plan: "claude:" is not a model`},
		"a flag":               {func(c *agent.Config) { c.Models = map[string]string{"plan": "claude:--resume"} }, `agent.models.plan: "claude:--resume" is not a model`},
		"two words":            {func(c *agent.Config) { c.Choices = []string{"a b"} }, `agent.choices[0]: "a b" is not a model`},
		"a broken pattern":     {func(c *agent.Config) { c.Choices = []string{"a["} }, `agent.choices[0]: "a[" is not a model`},
		"an empty helper":      {func(c *agent.Config) { c.Helpers = []string{""} }, `agent.helpers[0]: "" is not a model`},
		"an unknown adapter":   {func(c *agent.Config) { c.Adapters = map[string]agent.Settings{"gpt": {}} }, `agent.adapters.gpt: "gpt" is unknown`},
		"no program":           {func(c *agent.Config) { c.Models = map[string]string{"plan": "command:x"} }, `agent.adapters.command.command: the adapter "command" needs a program`},
		"no program to choose": {func(c *agent.Config) { c.Choices = []string{"command:*"} }, `agent.adapters.command.command: the adapter "command" needs a program`},
		"a bad variable": {func(c *agent.Config) {
			c.Adapters = map[string]agent.Settings{"claude": {Env: map[string]string{"a b": ""}}}
		}, `agent.adapters.claude.env: "a b" cannot`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := agent.DefaultConfig()
			test.change(&c)
			if err := c.Validate(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
	if err := mixed().Validate(); err != nil {
		t.Errorf("a configuration that is right: %v", err)
	}
}

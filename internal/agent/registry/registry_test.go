package registry_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/claude"
	"github.com/errand-bot/errand/internal/agent/registry"
)

// mixed gives steps to two adapters.
func mixed() registry.Config {
	return registry.Config{
		Model:    "claude-sonnet-5",
		Models:   map[string]string{"plan": "claude-opus-4-8", "implement": "command:qwen3:8b", "review": "claude:claude-haiku-4-5"},
		Adapters: map[string]registry.Settings{"command": {Command: []string{"/bin/mine"}, Model: "small", Provider: "here", Env: map[string]string{"B": "own"}}},
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
	want := registry.Settings{Command: []string{"/bin/mine"}, Model: "small", Provider: "here", Env: map[string]string{"A": "all", "B": "own"}}
	if diff := cmp.Diff(want, mixed().For("command")); diff != "" {
		t.Errorf("command (-want +got):\n%s", diff)
	}
	want = registry.Settings{Command: []string{"claude"}, Model: "claude-sonnet-5", Env: map[string]string{"A": "all", "B": "all"}}
	if diff := cmp.Diff(want, mixed().For("claude")); diff != "" {
		t.Errorf("claude (-want +got):\n%s", diff)
	}
}

func TestRegistry(t *testing.T) {
	t.Parallel()
	set, err := registry.New(mixed())
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

func TestInvalidRoutesAreRefused(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*registry.Config)
		want   string
	}{
		"no model":             {func(c *registry.Config) { c.Models = map[string]string{"plan": "claude:"} }, `agent.models.plan: "claude:" is not a model`},
		"a flag":               {func(c *registry.Config) { c.Models = map[string]string{"plan": "claude:--resume"} }, `agent.models.plan: "claude:--resume" is not a model`},
		"two words":            {func(c *registry.Config) { c.Choices = []string{"a b"} }, `agent.choices[0]: "a b" is not a model`},
		"a broken pattern":     {func(c *registry.Config) { c.Choices = []string{"a["} }, `agent.choices[0]: "a[" is not a model`},
		"an empty helper":      {func(c *registry.Config) { c.Helpers = []string{""} }, `agent.helpers[0]: "" is not a model`},
		"an unknown adapter":   {func(c *registry.Config) { c.Adapters = map[string]registry.Settings{"gpt": {}} }, `agent.adapters.gpt: "gpt" is unknown`},
		"no program":           {func(c *registry.Config) { c.Models = map[string]string{"plan": "command:x"} }, `agent.adapters.command.command: the adapter "command" needs a program`},
		"no program to choose": {func(c *registry.Config) { c.Choices = []string{"command:*"} }, `agent.adapters.command.command: the adapter "command" needs a program`},
		"a bad variable": {func(c *registry.Config) {
			c.Adapters = map[string]registry.Settings{"claude": {Env: map[string]string{"a b": ""}}}
		}, `agent.adapters.claude.env: "a b" cannot`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := registry.DefaultConfig()
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

func TestConfig(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cfg  registry.Config
		want string
	}{
		"nothing":             {registry.Config{}, ""},
		"everything":          {registry.Config{Adapter: "command", Command: []string{"x"}, Model: "m", Models: map[string]string{"a": "b"}, Env: map[string]string{"A_1": ""}}, ""},
		"unknown adapter":     {registry.Config{Adapter: "emacs"}, "write one of: "},
		"command without any": {registry.Config{Adapter: "command"}, "agent.command"},
		"model":               {registry.Config{Model: "-x"}, "agent.model"},
		"models":              {registry.Config{Models: map[string]string{"plan": ""}}, "agent.models.plan"},
		"env":                 {registry.Config{Env: map[string]string{"A=B": "c"}}, "agent.env"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := registry.New(tc.cfg)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
	got := registry.DefaultConfig()
	want := registry.Config{Adapter: "claude", Command: []string{"claude"}, Model: claude.DefaultModel}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

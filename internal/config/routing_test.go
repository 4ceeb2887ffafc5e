package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/agent/claude"
	"github.com/errand-bot/errand/internal/agent/codex"
	"github.com/errand-bot/errand/internal/agent/gemini"
	"github.com/errand-bot/errand/internal/agent/registry"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/modelapi"
)

// routed returns a configuration with an agent section and providers.
func routed(agent, models string) []byte {
	return []byte(strings.Replace(minimalConfig, "agent: {adapter: command, command: [agent]}", "agent: "+agent+"\nmodels: "+models, 1))
}

const (
	ofAnthropic = `anthropic: {url: 'https://a', key: env:MODEL}`
	ofOpenAI    = `openai: {url: 'https://o', key: env:MODEL}`
	ofLiteLLM   = `litellm: {url: 'https://l', key: env:MODEL}`
)

func TestRoutes(t *testing.T) {
	t.Parallel()
	c, err := config.Parse(routed(`{models: {plan: claude-opus-4-8, implement: command:qwen3:8b}, adapters: {command: {command: [mine], provider: openai}}, choices: ["claude-*"]}`, "{"+ofAnthropic+", "+ofOpenAI+"}"), env(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"preliminary_plan claude:claude-sonnet-5 by anthropic", "plan claude:claude-opus-4-8 by anthropic",
		"implement command:qwen3:8b by openai", "review claude:claude-sonnet-5 by anthropic",
	}
	if diff := cmp.Diff(want, c.Routes()); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"claude": "anthropic", "command": "openai"}, c.Providers()); diff != "" {
		t.Errorf("providers (-want +got):\n%s", diff)
	}
	p := c.Policy()
	if p.Models == nil || !p.Models.Offers("claude-next") || !p.Models.Offers("qwen3:8b") || p.Models.Offers("gpt-dear") {
		t.Errorf("what people may choose: %+v", p.Models)
	}
}

func TestProviders(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ agent, models, want, problem string }{
		"of its name":        {`{adapter: claude}`, "{" + ofAnthropic + ", " + ofLiteLLM + "}", "anthropic", ""},
		"of its API":         {`{adapter: claude}`, "{" + ofLiteLLM + ", " + ofOpenAI + "}", "litellm", ""},
		"said":               {`{adapter: claude, provider: litellm}`, "{" + ofAnthropic + ", " + ofLiteLLM + "}", "litellm", ""},
		"none":               {`{adapter: claude}`, "{" + ofOpenAI + "}", "", "models.anthropic: the agent claude needs it"},
		"of no such name":    {`{adapter: claude, provider: moon}`, "{" + ofAnthropic + "}", "", `agent.provider: "moon": there is no provider of this name`},
		"the only one":       {`{adapter: command, command: [mine]}`, "{" + ofOpenAI + "}", "openai", ""},
		"several":            {`{adapter: command, command: [mine]}`, "{" + ofOpenAI + ", " + ofAnthropic + "}", "", "agent.provider: several providers match; write which one to use: anthropic, openai"},
		"several, for steps": {`{models: {plan: command:x}, adapters: {command: {command: [mine]}}}`, "{" + ofOpenAI + ", " + ofAnthropic + "}", "", "agent.adapters.command.provider: several providers match"},
		"no such step":       {`{models: {plans: x}}`, "{" + ofAnthropic + "}", "", "agent.models.plans: there is no such step; the steps are preliminary_plan, plan, implement, review"},
		"no such adapter":    {`{adapters: {clod: {}}}`, "{" + ofAnthropic + "}", "", `agent.adapters.clod: "clod" is unknown`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := config.Parse(routed(test.agent, test.models), env(t))
			if test.problem != "" {
				if err == nil || !strings.Contains(err.Error(), test.problem) {
					t.Errorf("error %v, want %s", err, test.problem)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Providers()[c.Agent.Adapter]; got != test.want {
				t.Errorf("provider %q, want %q", got, test.want)
			}
		})
	}
}

// TestUnsetModelsHaveAPrice: the default models have a price in the table, and so do the models that a program chooses
// itself.
func TestUnsetModelsHaveAPrice(t *testing.T) {
	t.Parallel()
	models := []string{claude.DefaultModel, codex.DefaultModel, gemini.DefaultModel}
	set, err := registry.New(registry.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range registry.Names() {
		models = append(models, set.Of(name).Capabilities().Helpers...)
	}
	for _, model := range models {
		if _, known := modelapi.DefaultPrices().Find(model); !known {
			t.Errorf("%s has no price", model)
		}
	}
}

package registry

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/agent/claude"
)

// Config selects the agent and how it is run.
type Config struct {
	// Adapter is the way in which the agent is called: claude (Claude Code), codex (Codex CLI), gemini (Gemini CLI),
	// api (errand's own agent), or command for any other program. It runs every step that models does not assign to
	// another one; command, model and provider apply to it.
	Adapter string `yaml:"adapter"`
	// Command replaces the agent's program, with leading arguments: ["claude"] for the adapter claude, ["codex"] for
	// codex, and so on. The adapter command has no default; ["{aider}"] is its preset for Aider.
	Command []string `yaml:"command"`
	// Model is used for every step that models does not list.
	Model string `yaml:"model"`
	// Models sets a model per step, or an adapter and its model: {plan: claude-opus-4-8, implement: "command:fast"}.
	// The steps are preliminary_plan, plan, implement and review.
	Models map[string]string `yaml:"models"`
	// Provider is the name, under models, of the provider for the agent's calls; by default the provider that supports
	// the agent's API.
	Provider string `yaml:"provider"`
	// Adapters are the settings of further adapters that models and choices refer to.
	Adapters map[string]Settings `yaml:"adapters"`
	// Choices are additional models that people may choose in a comment: "model" or "adapter:model", with * for any
	// characters. The models in this section may always be chosen.
	Choices []string `yaml:"choices"`
	// Helpers are models that every run may call in addition to its own, such as a small one with which the agent's
	// program generates titles. A call of any other model is refused.
	Helpers []string `yaml:"helpers"`
	// Env is set for the agents and all processes that they start. It is not for secrets.
	Env map[string]string `yaml:"env"`
}

// Settings are the settings of one adapter.
type Settings struct {
	// Command replaces the agent's program, with leading arguments.
	Command []string `yaml:"command"`
	// Model is used if a reference to the adapter names no model.
	Model string `yaml:"model"`
	// Provider is the name, under models, of the provider for its calls; by default the one that supports its API.
	Provider string `yaml:"provider"`
	// Env is set in addition to the env of all agents.
	Env map[string]string `yaml:"env"`
}

// DefaultConfig returns the configuration with all defaults.
func DefaultConfig() Config { return Config{}.withDefaults() }

// withDefaults fills in the missing settings.
func (c Config) withDefaults() Config {
	if c.Adapter == "" {
		c.Adapter = claude.Name
	}
	own := adapters()[c.Adapter].defaults
	if len(c.Command) == 0 {
		c.Command = own.Command
	}
	if c.Model == "" {
		c.Model = own.Model
	}
	return c
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Validate returns an error that names the first invalid key.
func (c Config) Validate() error {
	c = c.withDefaults()
	if err := known("agent.adapter", c.Adapter); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(c.Adapters)) {
		if err := known("agent.adapters."+name, name); err != nil {
			return err
		}
		if err := checkEnv("agent.adapters."+name+".env", c.Adapters[name].Env); err != nil {
			return err
		}
	}
	if err := c.checkModels(); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(c.Uses())) {
		if command := c.For(name).Command; len(command) == 0 || command[0] == "" {
			key := "agent.adapters." + name + ".command"
			if name == c.Adapter {
				key = "agent.command"
			}
			return fmt.Errorf("%s: the adapter %q needs a program to run, for example [/usr/local/bin/my-agent]", key, name)
		}
	}
	return checkEnv("agent.env", c.Env)
}

func known(key, name string) error {
	if names := Names(); !slices.Contains(names, name) {
		return fmt.Errorf("%s: %q is unknown; write one of: %s", key, name, strings.Join(names, ", "))
	}
	return nil
}

// checkModels validates every setting that contains a model.
func (c Config) checkModels() error {
	named := map[string]string{}
	for step, text := range c.Models {
		named["agent.models."+step] = text
	}
	for i, text := range c.Choices {
		named[fmt.Sprintf("agent.choices[%d]", i)] = text
	}
	for i, text := range c.Helpers {
		named[fmt.Sprintf("agent.helpers[%d]", i)] = "command:" + text // always a model, never an adapter
	}
	named["agent.model"] = "command:" + cmp.Or(c.Model, "none")
	for name, own := range c.Adapters {
		named["agent.adapters."+name+".model"] = "command:" + cmp.Or(own.Model, "none")
	}
	for _, key := range slices.Sorted(maps.Keys(named)) {
		model := parseRoute(named[key], c.Adapter).Model
		if _, err := path.Match(model, ""); err != nil || model == "" || strings.HasPrefix(model, "-") || strings.ContainsAny(model, " \t\n") {
			return fmt.Errorf("%s: %q is not a model; write one such as %s, or an adapter, a colon and its model", key, strings.TrimPrefix(named[key], "command:"), claude.DefaultModel)
		}
	}
	return nil
}

func checkEnv(key string, env map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if !envName.MatchString(name) {
			return fmt.Errorf("%s: %q cannot be the name of a variable", key, name)
		}
	}
	return nil
}

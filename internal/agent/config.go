package agent

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// The adapters by name.
const (
	NameClaude  = "claude"
	NameAPI     = "api"
	NameCodex   = "codex"
	NameGemini  = "gemini"
	NameCommand = "command"
)

// DefaultModel is used where the configuration names none.
const DefaultModel = "claude-sonnet-5"

// DefaultCodexModel is the same for the adapter codex.
const DefaultCodexModel = "gpt-5.5"

// DefaultGeminiModel is used where the configuration names none for the adapter gemini.
const DefaultGeminiModel = "gemini-2.5-pro"

// DefaultMaxTurns is the number of model calls of a run whose Spec gives none.
const DefaultMaxTurns = 30

// Config chooses the agent and how it is run.
type Config struct {
	// Adapter is how the agent is spoken to: claude (Claude Code), codex (Codex CLI), gemini (Gemini CLI), api (errand's
	// own loop of tools), or command for any other program. It runs every step that models does not give to another
	// one; command, model and provider are about it.
	Adapter string `yaml:"adapter"`
	// Command replaces the agent's program, with leading arguments: ["claude"] for the adapter
	// claude, ["codex"] for codex, and so on; the adapter command has no default, and ["{aider}"] is its preset
	// for Aider.
	Command []string `yaml:"command"`
	// Model is used for every step that Models does not name.
	Model string `yaml:"model"`
	// Models names a model per step, or an adapter and its model: {plan: claude-opus-4-8, implement: "command:fast"}.
	// The steps are preliminary_plan, plan, implement and review.
	Models map[string]string `yaml:"models"`
	// Provider is the name under models that the agent's calls go to; by default the provider that speaks the
	// agent's API.
	Provider string `yaml:"provider"`
	// Adapters are settings of the adapters that models and choices name besides adapter.
	Adapters map[string]Settings `yaml:"adapters"`
	// Choices are the models that people may choose in a comment besides those that this section names:
	// "model" or "adapter:model", with * for any characters.
	Choices []string `yaml:"choices"`
	// Helpers are models that every run may call beside its own, such as a small one that the agent's program
	// asks for titles. A call of any other model is refused.
	Helpers []string `yaml:"helpers"`
	// Env is set for the agents and everything that they start. It is not for secrets.
	Env map[string]string `yaml:"env"`
}

// Settings are one adapter's own.
type Settings struct {
	// Command replaces the agent's program, with leading arguments.
	Command []string `yaml:"command"`
	// Model is used where the adapter is named without one.
	Model string `yaml:"model"`
	// Provider is the name under models that its calls go to; by default the one that speaks its API.
	Provider string `yaml:"provider"`
	// Env is set besides the env of all agents.
	Env map[string]string `yaml:"env"`
}

// defaults are the programs and models of adapters that are set no others.
func defaults() map[string]Settings {
	return map[string]Settings{
		NameClaude: {Command: []string{"claude"}, Model: DefaultModel},
		NameGemini: {Command: []string{"gemini"}, Model: DefaultGeminiModel},
		NameAPI:    {Command: []string{"{runner}", "agent"}, Model: DefaultModel},
		NameCodex:  {Command: []string{"codex"}, Model: DefaultCodexModel},
	}
}

// DefaultConfig is what a configuration that says nothing means.
func DefaultConfig() Config { return Config{}.withDefaults() }

// withDefaults fills in what was left out.
func (c Config) withDefaults() Config {
	if c.Adapter == "" {
		c.Adapter = NameClaude
	}
	own := defaults()[c.Adapter]
	if len(c.Command) == 0 {
		c.Command = own.Command
	}
	if c.Model == "" {
		c.Model = own.Model
	}
	return c
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Validate says what is wrong, by the configuration's own key.
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
	if names := slices.Sorted(maps.Keys(adapters())); !slices.Contains(names, name) {
		return fmt.Errorf("%s: %q is unknown; write one of: %s", key, name, strings.Join(names, ", "))
	}
	return nil
}

// checkModels looks at everything that names a model.
func (c Config) checkModels() error {
	named := map[string]string{}
	for step, text := range c.Models {
		named["agent.models."+step] = text
	}
	for i, text := range c.Choices {
		named[fmt.Sprintf("agent.choices[%d]", i)] = text
	}
	for i, text := range c.Helpers {
		named[fmt.Sprintf("agent.helpers[%d]", i)] = "command:" + text // a model, whatever its name
	}
	named["agent.model"] = "command:" + firstOf(c.Model, "none")
	for name, own := range c.Adapters {
		named["agent.adapters."+name+".model"] = "command:" + firstOf(own.Model, "none")
	}
	for _, key := range slices.Sorted(maps.Keys(named)) {
		model := parseRoute(named[key], c.Adapter).Model
		if _, err := path.Match(model, ""); err != nil || model == "" || strings.HasPrefix(model, "-") || strings.ContainsAny(model, " \t\n") {
			return fmt.Errorf("%s: %q is no model; write one such as %s, or an adapter, a colon and its model", key, strings.TrimPrefix(named[key], "command:"), DefaultModel)
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

// ModelFor returns the model of a step, as the adapter of that step knows it.
func (c Config) ModelFor(step string) string { return c.Route(step).Model }

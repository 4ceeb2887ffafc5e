package agent

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// The adapters by name.
const (
	NameClaude  = "claude"
	NameCommand = "command"
)

// DefaultModel is used where the configuration names none.
const DefaultModel = "claude-sonnet-5"

// DefaultMaxTurns is the number of model calls that a run may make.
const DefaultMaxTurns = 30

// Config chooses the agent and how it is run.
type Config struct {
	// Adapter is how the agent is spoken to: claude, or command for any other program.
	Adapter string `yaml:"adapter"`
	// Command replaces the agent's program, with leading arguments: ["claude"] for the adapter
	// claude; the adapter command has no default.
	Command []string `yaml:"command"`
	// Model is used for every step that Models does not name.
	Model string `yaml:"model"`
	// Models names a model per step: {implement: claude-opus-4-8}.
	Models map[string]string `yaml:"models"`
	// Env is set for the agent and everything that it starts. It is not for secrets.
	Env map[string]string `yaml:"env"`
	// MaxTurns bounds the model calls of one run; default 30.
	MaxTurns int `yaml:"max_turns"`
}

// DefaultConfig is what a configuration that says nothing means.
func DefaultConfig() Config { return Config{}.withDefaults() }

// withDefaults fills in what was left out.
func (c Config) withDefaults() Config {
	if c.Adapter == "" {
		c.Adapter = NameClaude
	}
	if len(c.Command) == 0 && c.Adapter == NameClaude {
		c.Command = []string{"claude"}
	}
	if c.Model == "" && c.Adapter == NameClaude {
		c.Model = DefaultModel
	}
	if c.MaxTurns == 0 {
		c.MaxTurns = DefaultMaxTurns
	}
	return c
}

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Validate says what is wrong, by the configuration's own key.
func (c Config) Validate() error {
	c = c.withDefaults()
	if names := slices.Sorted(maps.Keys(adapters())); !slices.Contains(names, c.Adapter) {
		return fmt.Errorf("agent.adapter: %q is unknown; write one of: %s", c.Adapter, strings.Join(names, ", "))
	}
	if len(c.Command) == 0 || c.Command[0] == "" {
		return fmt.Errorf("agent.command: the adapter %q needs a program to run, for example [/usr/local/bin/my-agent]", c.Adapter)
	}
	if c.MaxTurns < 1 || c.MaxTurns > 10_000 {
		return fmt.Errorf("agent.max_turns: %d is not between 1 and 10000", c.MaxTurns)
	}
	for _, step := range slices.Sorted(maps.Keys(c.Models)) {
		if c.Models[step] == "" || strings.HasPrefix(c.Models[step], "-") {
			return fmt.Errorf("agent.models.%s: %q is no model", step, c.Models[step])
		}
	}
	if strings.HasPrefix(c.Model, "-") {
		return fmt.Errorf("agent.model: %q is no model", c.Model)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		if !envName.MatchString(name) {
			return fmt.Errorf("agent.env: %q cannot be the name of a variable", name)
		}
	}
	return nil
}

// ModelFor returns the model of a step.
func (c Config) ModelFor(step string) string {
	if m := c.Models[step]; m != "" {
		return m
	}
	return c.withDefaults().Model
}

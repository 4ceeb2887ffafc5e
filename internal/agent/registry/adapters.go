package registry

import (
	"maps"
	"slices"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/api"
	"github.com/errand-bot/errand/internal/agent/claude"
	"github.com/errand-bot/errand/internal/agent/codex"
	"github.com/errand-bot/errand/internal/agent/command"
	"github.com/errand-bot/errand/internal/agent/gemini"
)

// builtin is an adapter and the settings that it has by default.
type builtin struct {
	make     func(agent.Program) agent.Adapter
	defaults Settings
}

// adapters returns all adapters by name.
func adapters() map[string]builtin {
	return map[string]builtin{
		claude.Name:  {claude.New, Settings{Command: []string{"claude"}, Model: claude.DefaultModel}},
		codex.Name:   {codex.New, Settings{Command: []string{"codex"}, Model: codex.DefaultModel}},
		gemini.Name:  {gemini.New, Settings{Command: []string{"gemini"}, Model: gemini.DefaultModel}},
		api.Name:     {api.New, Settings{Command: []string{"{runner}", "agent"}, Model: api.DefaultModel}},
		command.Name: {command.New, Settings{}}, // any program, so it has no default
	}
}

// Names returns the names of the adapters.
func Names() []string { return slices.Sorted(maps.Keys(adapters())) }

// APIOf returns the dialect in which an adapter calls a model. It is empty for an unknown adapter, and for one that
// leaves it to the configuration.
func APIOf(name string) string {
	a, ok := adapters()[name]
	if !ok {
		return ""
	}
	return a.make(agent.Program{}).Capabilities().API
}

// Package registry finds the adapter of an agent by its name. It is the only package that imports all adapters. It also
// has their configuration, and decides which adapter and model a step of a task uses.
//
// Start with [Registry]. To add an adapter, add it to the table in adapters.
package registry

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/claude"
)

// parseRoute parses a route; a model without an adapter belongs to the given one.
func parseRoute(text, adapter string) agent.Route {
	if name, model, ok := strings.Cut(text, ":"); ok {
		if _, known := adapters()[name]; known {
			return agent.Route{Adapter: name, Model: model}
		}
	}
	return agent.Route{Adapter: adapter, Model: text}
}

// Route returns the adapter and model of a step.
func (c Config) Route(step string) agent.Route {
	c = c.withDefaults()
	if text := c.Models[step]; text != "" {
		return parseRoute(text, c.Adapter)
	}
	return agent.Route{Adapter: c.Adapter, Model: c.For(c.Adapter).Model}
}

// Choose returns the adapter and model of a step if people ask for a model. A model that is not offered is ignored.
func (c Config) Choose(step, wish string) agent.Route {
	if r, ok := c.offered(wish); ok {
		return r
	}
	return c.Route(step)
}

// Offers reports whether people may choose this model in a comment: the configuration must name it for some step, or
// agent.choices must match it.
func (c Config) Offers(wish string) bool {
	_, ok := c.offered(wish)
	return ok
}

// Offered returns the models and patterns that people may choose, as they would write them.
func (c Config) Offered() []string {
	c = c.withDefaults()
	var out []string
	for _, r := range c.routes() {
		if r.Model == "" {
			continue
		}
		text := r.Model
		if r.Adapter != c.Adapter {
			text = r.String()
		}
		out = append(out, text)
	}
	out = append(out, c.Choices...)
	slices.Sort(out)
	return slices.Compact(out)
}

func (c Config) offered(wish string) (agent.Route, bool) {
	c = c.withDefaults()
	if wish == "" {
		return agent.Route{}, false
	}
	want, bare := parseRoute(wish, c.Adapter), !strings.HasPrefix(wish, parseRoute(wish, "").Adapter+":")
	if want.Model == "" {
		return agent.Route{}, false
	}
	for _, r := range c.routes() {
		if r == want || bare && r.Model == want.Model {
			return r, true
		}
	}
	for _, text := range c.Choices {
		r := parseRoute(text, c.Adapter)
		fits, err := path.Match(r.Model, want.Model)
		if err == nil && fits && (bare || r.Adapter == want.Adapter) {
			return agent.Route{Adapter: r.Adapter, Model: want.Model}, true
		}
	}
	return agent.Route{}, false
}

// routes returns the routes in the configuration: the default first, then those of the steps in alphabetical order. It
// may contain duplicates.
func (c Config) routes() []agent.Route {
	c = c.withDefaults()
	out := []agent.Route{{Adapter: c.Adapter, Model: c.For(c.Adapter).Model}}
	for _, step := range slices.Sorted(maps.Keys(c.Models)) {
		out = append(out, c.Route(step))
	}
	return out
}

// UseChoices stands for the models that people may choose; see [Config.Uses].
const UseChoices = "choices"

// Uses returns, for each adapter that a run may get, the steps that need it: "" stands for every step that Models does
// not list, and "choices" for the models that people may choose.
func (c Config) Uses() map[string][]string {
	c = c.withDefaults()
	out := map[string][]string{c.Adapter: {""}}
	for _, step := range slices.Sorted(maps.Keys(c.Models)) {
		name := c.Route(step).Adapter
		out[name] = append(out[name], step)
	}
	for _, text := range c.Choices {
		name := parseRoute(text, c.Adapter).Adapter
		if !slices.Contains(out[name], UseChoices) {
			out[name] = append(out[name], UseChoices)
		}
	}
	return out
}

// For returns the settings of one adapter, with defaults for missing ones.
func (c Config) For(name string) Settings {
	if c.Adapter == "" {
		c.Adapter = claude.Name
	}
	own, defaults := c.Adapters[name], adapters()[name].defaults
	if name == c.Adapter {
		own.Command = firstCommand(own.Command, c.Command)
		own.Model, own.Provider = cmp.Or(own.Model, c.Model), cmp.Or(own.Provider, c.Provider)
	}
	own.Command, own.Model = firstCommand(own.Command, defaults.Command), cmp.Or(own.Model, defaults.Model)
	env := maps.Clone(c.Env)
	if env == nil {
		env = map[string]string{}
	}
	maps.Copy(env, own.Env)
	own.Env = env
	return own
}

// firstCommand returns the first command that is not empty.
func firstCommand(commands ...[]string) []string {
	for _, c := range commands {
		if len(c) > 0 {
			return c
		}
	}
	return nil
}

// Registry holds the adapters of a deployment by name. It has no mutable state and may be shared.
type Registry struct {
	cfg Config
	by  map[string]agent.Adapter
}

// New returns all adapters. It fails for a configuration that [Config.Validate] refuses.
func New(cfg Config) (*Registry, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("make the agents' adapters: %w", err)
	}
	s := &Registry{cfg: cfg.withDefaults(), by: map[string]agent.Adapter{}}
	for name, a := range adapters() {
		own := cfg.For(name)
		s.by[name] = a.make(agent.Program{Command: own.Command, Env: own.Env})
	}
	return s, nil
}

// Of returns the adapter with this name, or the default one if there is none, so that runs from before a change of the
// configuration can still be read.
func (s *Registry) Of(name string) agent.Adapter {
	if a, ok := s.by[name]; ok {
		return a
	}
	return s.by[s.cfg.Adapter]
}

// Choose returns the adapter and route of a step if people ask for a model; see [Config.Choose].
func (s *Registry) Choose(step, wish string) (agent.Adapter, agent.Route) {
	r := s.cfg.Choose(step, wish)
	return s.by[r.Adapter], r
}

// Models returns the models that a run with this route may call: its own, the operator's helpers, and those that its
// program calls unavoidably. Nil means that the program chooses.
func (s *Registry) Models(r agent.Route) []string {
	if r.Model == "" {
		return nil
	}
	return slices.Concat([]string{r.Model}, s.cfg.Helpers, s.Of(r.Adapter).Capabilities().Helpers)
}

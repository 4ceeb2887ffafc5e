package agent

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
)

// Route is the adapter and the model of a step. In the configuration and in comments it is written as "model" or
// "adapter:model"; a colon after anything but an adapter's name belongs to the model.
type Route struct {
	// Adapter is never empty; Model is empty if the configuration leaves it to the program.
	Adapter, Model string
}

// String returns the route as "adapter:model".
func (r Route) String() string { return r.Adapter + ":" + r.Model }

// parseRoute parses a route; a model without an adapter belongs to the given one.
func parseRoute(text, adapter string) Route {
	if name, model, ok := strings.Cut(text, ":"); ok {
		if _, known := adapters()[name]; known {
			return Route{Adapter: name, Model: model}
		}
	}
	return Route{Adapter: adapter, Model: text}
}

// Route returns the adapter and model of a step.
func (c Config) Route(step string) Route {
	c = c.withDefaults()
	if text := c.Models[step]; text != "" {
		return parseRoute(text, c.Adapter)
	}
	return Route{Adapter: c.Adapter, Model: c.For(c.Adapter).Model}
}

// Choose returns the adapter and model of a step if people ask for a model. A model that is not offered is ignored.
func (c Config) Choose(step, wish string) Route {
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

func (c Config) offered(wish string) (Route, bool) {
	c = c.withDefaults()
	if wish == "" {
		return Route{}, false
	}
	want, bare := parseRoute(wish, c.Adapter), !strings.HasPrefix(wish, parseRoute(wish, "").Adapter+":")
	if want.Model == "" {
		return Route{}, false
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
			return Route{Adapter: r.Adapter, Model: want.Model}, true
		}
	}
	return Route{}, false
}

// routes returns the routes in the configuration: the default first, then those of the steps in alphabetical order. It
// may contain duplicates.
func (c Config) routes() []Route {
	c = c.withDefaults()
	out := []Route{{Adapter: c.Adapter, Model: c.For(c.Adapter).Model}}
	for _, step := range slices.Sorted(maps.Keys(c.Models)) {
		out = append(out, c.Route(step))
	}
	return out
}

// Names returns the names of the adapters.
func Names() []string { return slices.Sorted(maps.Keys(adapters())) }

// UseChoices stands for the models that people may choose; see [Config.Uses].
const UseChoices = "choices"

// APIOf returns the dialect in which an adapter calls a model. It is empty for an unknown adapter, and for one that
// leaves it to the configuration.
func APIOf(name string) string {
	if make, ok := adapters()[name]; ok {
		return make(Config{Adapter: name}).Capabilities().API
	}
	return ""
}

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

// For returns the configuration for one adapter: its own program, environment and models.
func (c Config) For(name string) Config {
	if c.Adapter == "" {
		c.Adapter = NameClaude
	}
	out, own := Config{Adapter: name, Env: maps.Clone(c.Env)}, c.Adapters[name]
	if name == c.Adapter {
		out.Command, out.Model, out.Provider = c.Command, c.Model, c.Provider
	}
	if len(own.Command) > 0 {
		out.Command = own.Command
	}
	out.Model, out.Provider = firstOf(own.Model, out.Model), firstOf(own.Provider, out.Provider)
	for key, value := range own.Env {
		if out.Env == nil {
			out.Env = map[string]string{}
		}
		out.Env[key] = value
	}
	for step, text := range c.Models {
		if r := parseRoute(text, c.Adapter); r.Adapter == name {
			if out.Models == nil {
				out.Models = map[string]string{}
			}
			out.Models[step] = r.Model
		}
	}
	return out.withDefaults()
}

// Set holds the adapters of a deployment by name. It has no mutable state and may be shared.
type Set struct {
	cfg Config
	by  map[string]Adapter
}

// NewSet returns all adapters. It fails for a configuration that [Config.Validate] refuses.
func NewSet(cfg Config) (*Set, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("make the agents' adapters: %w", err)
	}
	s := &Set{cfg: cfg.withDefaults(), by: map[string]Adapter{}}
	for name, make := range adapters() {
		s.by[name] = make(cfg.For(name))
	}
	return s, nil
}

// Of returns the adapter with this name, or the default one if there is none, so that runs from before a change of the
// configuration can still be read.
func (s *Set) Of(name string) Adapter {
	if a, ok := s.by[name]; ok {
		return a
	}
	return s.by[s.cfg.Adapter]
}

// Choose returns the adapter and route of a step if people ask for a model; see [Config.Choose].
func (s *Set) Choose(step, wish string) (Adapter, Route) {
	r := s.cfg.Choose(step, wish)
	return s.by[r.Adapter], r
}

// Models returns the models that a run with this route may call: its own, the operator's helpers, and those that its
// program calls unavoidably. Nil means that the program chooses.
func (s *Set) Models(r Route) []string {
	if r.Model == "" {
		return nil
	}
	return slices.Concat([]string{r.Model}, s.cfg.Helpers, s.Of(r.Adapter).Capabilities().Helpers)
}

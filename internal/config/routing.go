package config

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/agent/registry"
	"github.com/errand-bot/errand/state"
)

// steps returns the steps that can have their own model.
func steps() []string {
	return []string{string(state.RunPreliminary), string(state.RunPlan), string(state.RunImplement), string(state.RunReview)}
}

// errNoProvider is the error for an adapter whose API no provider supports.
var errNoProvider = errors.New("no provider under models speaks its API")

// ProviderOf returns the name of the model provider for an adapter's calls: the configured one, otherwise the one that
// supports the adapter's API (of several the one with the API's name), otherwise the only one. The error states the
// correction. It is nil, with an empty name, if an adapter of any API has no provider.
func (c Config) ProviderOf(adapter string) (string, error) {
	api, names := registry.APIOf(adapter), slices.Sorted(maps.Keys(c.Models))
	if want := c.Agent.For(adapter).Provider; want != "" {
		if _, ok := c.Models[want]; !ok {
			return "", fmt.Errorf("%q: there is no provider of this name under models", want)
		}
		return want, nil
	}
	if api != "" {
		names = slices.DeleteFunc(names, func(n string) bool { return string(c.Models[n].Dialect(n)) != api })
		if slices.Contains(names, api) {
			return api, nil
		}
	}
	switch {
	case len(names) == 1:
		return names[0], nil
	case len(names) > 1:
		return "", fmt.Errorf("several providers match; write which one to use: %s", strings.Join(names, ", "))
	case api != "":
		return "", errNoProvider
	}
	return "", nil
}

// Providers returns the provider's name for each adapter that may be used.
func (c Config) Providers() map[string]string {
	out := map[string]string{}
	for name := range c.Agent.Uses() {
		if p, err := c.ProviderOf(name); err == nil {
			out[name] = p
		}
	}
	return out
}

// routeProblems reports the steps and adapters without a usable provider.
func (c Config) routeProblems(r *report) {
	for step := range c.Agent.Models {
		r.unless(slices.Contains(steps(), step), "agent.models."+step, "there is no such step; the steps are %s", strings.Join(steps(), ", "))
	}
	for name, uses := range c.Agent.Uses() {
		provider, err := c.ProviderOf(name)
		switch {
		case err == nil:
			c.claudeOnly(r, name, provider)
		case errors.Is(err, errNoProvider):
			r.unless(false, "models."+registry.APIOf(name), "the agent %s needs it (for %s); write its url and key", name, usesInWords(uses))
		case err != nil && name == c.Agent.Adapter:
			r.unless(false, "agent.provider", "%s", err)
		case err != nil:
			r.unless(false, "agent.adapters."+name+".provider", "%s", err)
		}
	}
}

// usesInWords describes the uses of an adapter.
func usesInWords(uses []string) string {
	words := make([]string, 0, len(uses))
	for _, u := range uses {
		switch u {
		case "":
			words = append(words, "every step that agent.models does not name")
		case registry.UseChoices:
			words = append(words, "what people choose")
		default:
			words = append(words, "the step "+u)
		}
	}
	return strings.Join(words, ", ")
}

// Routes describes the adapter, model and provider of each step for people: "plan claude:claude-opus-4-8 by anthropic".
func (c Config) Routes() []string {
	providers := c.Providers()
	out := make([]string, 0, len(steps()))
	for _, step := range steps() {
		route := c.Agent.Route(step)
		text := step + " " + route.String()
		if p := providers[route.Adapter]; p != "" {
			text += " by " + p
		}
		out = append(out, text)
	}
	return out
}

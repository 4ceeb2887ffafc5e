package server

import (
	"maps"
	"slices"
	"testing"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/fleet/hetzner"
	"github.com/errand-bot/errand/internal/fleet/local"
	"github.com/errand-bot/errand/state"
)

// TestEveryProviderCanBeCreated: package config and this one have the same providers.
func TestEveryProviderCanBeCreated(t *testing.T) {
	t.Parallel()
	want, got := slices.Sorted(slices.Values(config.ProviderNames())), slices.Sorted(maps.Keys(providers))
	if !slices.Equal(want, got) {
		t.Errorf("the configuration accepts %q, the server creates %q", want, got)
	}
}

// TestNamesOfProviders: rows of VMs have the names of the configuration, and those of tasks the kinds of sandboxes.
func TestNamesOfProviders(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		(&hetzner.Provider{}).Name(): config.ProviderHetzner,
		(&local.Provider{}).Name():   config.ProviderLocal,
		local.KindBwrap:              state.SandboxBwrap,
		local.KindUserns:             state.SandboxUserns,
		local.KindPlain:              state.SandboxPlain,
	} {
		if got != want {
			t.Errorf("%q and %q have to be the same", got, want)
		}
	}
}

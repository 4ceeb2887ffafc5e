package server

import (
	"maps"
	"slices"
	"testing"

	"github.com/errand-bot/errand/internal/config"
)

// TestEveryProviderCanBeCreated: package config and this one have the same providers.
func TestEveryProviderCanBeCreated(t *testing.T) {
	t.Parallel()
	want, got := slices.Sorted(slices.Values(config.ProviderNames())), slices.Sorted(maps.Keys(providers))
	if !slices.Equal(want, got) {
		t.Errorf("the configuration accepts %q, the server creates %q", want, got)
	}
}

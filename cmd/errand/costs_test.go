package main

import (
	"testing"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/costs"
)

// TestCostsAreOfTheDefault: the default of --type is the type that errand orders by default.
func TestCostsAreOfTheDefault(t *testing.T) {
	t.Parallel()
	s := costs.DefaultSetting()
	if got, want := s.Type+"/"+s.Location, config.DefaultHetzner().Candidates[0]; got != want {
		t.Errorf("costs are of %s, and the first candidate is %s", got, want)
	}
}

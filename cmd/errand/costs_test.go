package main

import (
	"testing"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/costs"
)

// TestCostsAreOfTheDefault: what is simulated unless one says otherwise is what is ordered unless one says otherwise.
func TestCostsAreOfTheDefault(t *testing.T) {
	t.Parallel()
	s := costs.DefaultSetting()
	if got, want := s.Type+"/"+s.Location, config.DefaultHetzner().Candidates[0]; got != want {
		t.Errorf("costs are of %s, and the first candidate is %s", got, want)
	}
}

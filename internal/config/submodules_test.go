package config_test

import (
	"testing"

	"github.com/errand-bot/errand/internal/config"
)

func TestSubmodulesAllow(t *testing.T) {
	t.Parallel()
	s := config.Submodules{"acme/app": {"acme/lib", "vendor/*"}, "acme/*": {"acme/shared"}}
	for pair, want := range map[[2]string]bool{
		{"acme/app", "acme/lib"}:          true,
		{"Acme/App", "ACME/lib"}:          true,
		{"acme/app", "vendor/anything"}:   true,
		{"acme/app", "acme/shared"}:       true,
		{"acme/other", "acme/shared"}:     true,
		{"acme/other", "acme/lib"}:        false,
		{"acme/app", "acme/secret"}:       false,
		{"acme/app", "acme/lib/x"}:        false,
		{"evil/app", "acme/shared"}:       false,
		{"acme/app", "vendor/../acme/se"}: false,
	} {
		if got := s.Allow(pair[0], pair[1]); got != want {
			t.Errorf("%v: %v", pair, got)
		}
	}
}

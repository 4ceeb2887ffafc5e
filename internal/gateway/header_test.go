package gateway_test

import (
	"testing"

	"github.com/errand-bot/errand/internal/gateway"
)

func TestKeyHeader(t *testing.T) {
	t.Parallel()
	want := map[gateway.API]string{gateway.Anthropic: "X-Api-Key", gateway.OpenAI: "Authorization", gateway.Gemini: "X-Goog-Api-Key"}
	for _, api := range gateway.APIs() {
		if got := api.KeyHeader(); got == "" || got != want[api] {
			t.Errorf("%s takes its key as %q, want %q", api, got, want[api])
		}
	}
}

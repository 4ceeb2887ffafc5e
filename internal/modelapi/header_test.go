package modelapi_test

import (
	"testing"

	"github.com/errand-bot/errand/internal/modelapi"
)

func TestKeyHeader(t *testing.T) {
	t.Parallel()
	want := map[modelapi.API]string{modelapi.Anthropic: "X-Api-Key", modelapi.OpenAI: "Authorization", modelapi.Gemini: "X-Goog-Api-Key"}
	for _, api := range modelapi.APIs() {
		if got := api.KeyHeader(); got == "" || got != want[api] {
			t.Errorf("%s has the key header %q, want %q", api, got, want[api])
		}
	}
}

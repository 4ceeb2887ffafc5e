package modelapi

import (
	"testing"
)

func TestKeyHeader(t *testing.T) {
	t.Parallel()
	want := map[API]string{Anthropic: "X-Api-Key", OpenAI: "Authorization", Gemini: "X-Goog-Api-Key"}
	for _, api := range APIs() {
		if got := api.KeyHeader(); got == "" || got != want[api] {
			t.Errorf("%s has the key header %q, want %q", api, got, want[api])
		}
	}
}

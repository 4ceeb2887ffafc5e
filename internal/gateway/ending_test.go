package gateway

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// TestIncompleteAnswersAreStored: an answer that was truncated or blocked is stored with the run, because its program does not
// report it; other endings are not.
func TestIncompleteAnswersAreStored(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]state.WaitKind{"STOP": "", "MAX_TOKENS": state.WaitAnswerCut, "SAFETY": state.WaitAnswerBlocked} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			l := &ledger{}
			model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = fmt.Fprintf(w, "data: {\"modelVersion\":\"gemini-x\",\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"This much\"}]},\"finishReason\":%q}],\"usageMetadata\":{\"promptTokenCount\":9,\"candidatesTokenCount\":2}}\n\n", reason)
			}))
			t.Cleanup(model.Close)
			w := newEnd(t, someTask(), func(c *Config) {
				c.Providers["gemini"] = Provider{BaseURL: model.URL, Key: modelKey, Header: "X-Goog-Api-Key", API: modelapi.Gemini}
				c.Ledger, c.Prices = l, modelapi.Prices{"gemini": {Input: 1, Output: 1}}
			})
			status, body := askFor(t, http.DefaultClient, http.MethodPost, w.url+"/llm/gemini/v1beta/models/gemini-x:streamGenerateContent?alt=sse", `{}`, bearer(runToken))
			if status != 200 {
				t.Fatalf("status %d: %s", status, body)
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			got := state.WaitKind("")
			if l.told != nil {
				got = l.told.Kind
			}
			if got != want {
				t.Errorf("stored with the run: %q, want %q", got, want)
			}
		})
	}
}

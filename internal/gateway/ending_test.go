package gateway_test

import (
	"fmt"
	"testing"

	"github.com/errand-bot/errand/internal/gateway"
)

// TestEnding: how an answer of Gemini ended is known of streams, whatever came before its end.
func TestEnding(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, kind string
		want         gateway.Ending
	}{
		"done":                  {"STOP", "text/event-stream", gateway.EndingUsual},
		"too long":              {"MAX_TOKENS", "text/event-stream", gateway.EndingCut},
		"blocked":               {"SAFETY", "text/event-stream", gateway.EndingBlocked},
		"copied":                {"RECITATION", "text/event-stream", gateway.EndingBlocked},
		"a call that is broken": {"MALFORMED_FUNCTION_CALL", "text/event-stream", gateway.EndingUsual},
		"from the future":       {"ZORP", "text/event-stream", gateway.EndingUsual},
		"no stream":             {"SAFETY", "application/json", gateway.EndingUsual},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := gateway.NewCounter(tc.kind, 100)
			_, _ = fmt.Fprintf(c, "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"This much\"}]}}]}\n\n")
			_, _ = fmt.Fprintf(c, "data: {\"candidates\":[{\"finishReason\":%q}],\"usageMetadata\":{\"promptTokenCount\":9}}\n\n", tc.reason)
			c.Close()
			if got := c.Ending(); got != tc.want {
				t.Errorf("ending %d, want %d", got, tc.want)
			}
		})
	}
}

package modelapi_test

import (
	"fmt"
	"testing"

	"github.com/errand-bot/errand/internal/modelapi"
)

// TestEnding: the ending of a streamed answer of Gemini is detected, whatever precedes it.
func TestEnding(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, kind string
		want         modelapi.Ending
	}{
		"done":                  {"STOP", "text/event-stream", modelapi.EndingNormal},
		"too long":              {"MAX_TOKENS", "text/event-stream", modelapi.EndingTruncated},
		"blocked":               {"SAFETY", "text/event-stream", modelapi.EndingBlocked},
		"copied":                {"RECITATION", "text/event-stream", modelapi.EndingBlocked},
		"a call that is broken": {"MALFORMED_FUNCTION_CALL", "text/event-stream", modelapi.EndingNormal},
		"from the future":       {"ZORP", "text/event-stream", modelapi.EndingNormal},
		"no stream":             {"SAFETY", "application/json", modelapi.EndingNormal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := modelapi.NewCounter(tc.kind, 100)
			_, _ = fmt.Fprintf(c, "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"This much\"}]}}]}\n\n")
			_, _ = fmt.Fprintf(c, "data: {\"candidates\":[{\"finishReason\":%q}],\"usageMetadata\":{\"promptTokenCount\":9}}\n\n", tc.reason)
			c.Close()
			if got := c.Ending(); got != tc.want {
				t.Errorf("ending %d, want %d", got, tc.want)
			}
		})
	}
}

package modelapi

import (
	"fmt"
	"testing"
)

// TestGeminiEndingIsDetected: the ending of a streamed answer of Gemini is detected, whatever precedes it.
func TestGeminiEndingIsDetected(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, kind string
		want         Ending
	}{
		"done":             {"STOP", "text/event-stream", EndingNormal},
		"too long":         {"MAX_TOKENS", "text/event-stream", EndingTruncated},
		"blocked":          {"SAFETY", "text/event-stream", EndingBlocked},
		"copied":           {"RECITATION", "text/event-stream", EndingBlocked},
		"a malformed call": {"MALFORMED_FUNCTION_CALL", "text/event-stream", EndingNormal},
		"from the future":  {"ZORP", "text/event-stream", EndingNormal},
		"no stream":        {"SAFETY", "application/json", EndingNormal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := NewCounter(tc.kind, 100)
			_, _ = fmt.Fprintf(c, "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"This much\"}]}}]}\n\n")
			_, _ = fmt.Fprintf(c, "data: {\"candidates\":[{\"finishReason\":%q}],\"usageMetadata\":{\"promptTokenCount\":9}}\n\n", tc.reason)
			c.Close()
			if got := c.Ending(); got != tc.want {
				t.Errorf("ending %d, want %d", got, tc.want)
			}
		})
	}
}

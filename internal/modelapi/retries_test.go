package modelapi

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestStopRetries: an answer about a lasting limit makes each program give up at once, in whatever form the provider
// reports the limit.
func TestStopRetries(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		api        API
		before     string // Retry-After
		until      time.Duration
		after      string
		replaced   bool
		mustRemain string
	}{
		"claude, a unified limit":        {Anthropic, "", 5 * time.Hour, "18000", false, "the provider's body"},
		"claude, a short Retry-After":    {Anthropic, "5", time.Hour, "3600", false, "the provider's body"},
		"claude, a limit of two minutes": {Anthropic, "120", 2 * time.Minute, "301", false, "the provider's body"},
		"codex, would sleep for hours":   {OpenAI, "18000", 5 * time.Hour, "", false, "the provider's body"},
		"codex, no Retry-After":          {OpenAI, "", 5 * time.Hour, "", false, "the provider's body"},
		"gemini, in the header alone":    {Gemini, "3600", time.Hour, "3600", true, "Please retry in 3600s"},
		"gemini, would sleep":            {Gemini, "", 2 * time.Minute, "301", true, "Please retry in 301s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			answer := &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Content-Encoding": {"gzip"}}, Body: io.NopCloser(strings.NewReader("the provider's body"))}
			if test.before != "" {
				answer.Header.Set("Retry-After", test.before)
			}
			test.api.StopRetries(answer, now.Add(test.until), now)
			body, err := io.ReadAll(answer.Body)
			if err != nil {
				t.Fatal(err)
			}
			if got := answer.Header.Get("Retry-After"); got != test.after {
				t.Errorf("retry-after %q, want %q", got, test.after)
			}
			if !strings.Contains(string(body), test.mustRemain) || test.replaced != (answer.ContentLength == int64(len(body)) && len(body) > 0) {
				t.Errorf("got body %q of %d bytes", body, answer.ContentLength)
			}
			if test.replaced != (answer.Header.Get("Content-Encoding") == "") {
				t.Errorf("got Content-Encoding %q", answer.Header.Get("Content-Encoding"))
			}
			if answer.StatusCode != http.StatusTooManyRequests {
				t.Errorf("got status %d", answer.StatusCode)
			}
		})
	}
}

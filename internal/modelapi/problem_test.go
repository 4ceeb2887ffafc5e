package modelapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestClassifyError(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC)
	at := func(d time.Duration) time.Time { return now.Add(d) }
	tests := map[string]struct {
		api    API
		status int
		header string // NAME: VALUE, a line each
		body   string
		want   Problem
		until  time.Time
	}{
		"overloaded":             {Anthropic, 529, "Retry-After: 900", `{"type":"error","error":{"type":"overloaded_error"}}`, "", time.Time{}},
		"a fault":                {OpenAI, 500, "", "", "", time.Time{}},
		"slow down":              {Anthropic, 429, "Retry-After: 30", `{"type":"error","error":{"type":"rate_limit_error"}}`, "", time.Time{}},
		"says nothing":           {Anthropic, 429, "", "<html>", "", time.Time{}},
		"a long limit":           {Anthropic, 429, "Retry-After: 3600", "", ProblemLimit, at(time.Hour)},
		"a date":                 {Anthropic, 429, "Retry-After: Sat, 21 Nov 2026 23:30:00 GMT", "", ProblemLimit, at(90 * time.Minute)},
		"a date long ago":        {Anthropic, 429, "Retry-After: Fri, 20 Nov 2026 23:30:00 GMT", "", "", time.Time{}},
		"a subscription":         {Anthropic, 429, "Anthropic-Ratelimit-Unified-Status: rejected\nAnthropic-Ratelimit-Unified-Reset: 1795305600\nRetry-After: 5", "", ProblemLimit, time.Unix(1795305600, 0)},
		"one of its windows":     {Anthropic, 429, "Anthropic-Ratelimit-Unified-Status: rejected\nAnthropic-Ratelimit-Unified-5h-Reset: 1795309999\nAnthropic-Ratelimit-Unified-7d-Status: rejected\nAnthropic-Ratelimit-Unified-7d-Reset: 1795305600", "", ProblemLimit, time.Unix(1795305600, 0)},
		"one without its end":    {Anthropic, 429, "Anthropic-Ratelimit-Unified-Status: rejected", "", ProblemLimit, at(15 * time.Minute)},
		"one for half a minute":  {Anthropic, 429, "Anthropic-Ratelimit-Unified-Status: rejected\nRetry-After: 30", "", "", time.Time{}},
		"a subscription goes on": {Anthropic, 429, "Anthropic-Ratelimit-Unified-Status: allowed\nAnthropic-Ratelimit-Unified-Reset: 1795305600", "", "", time.Time{}},
		"beyond belief":          {Anthropic, 429, "Retry-After: 99999999", "", ProblemLimit, at(8 * 24 * time.Hour)},
		"codex":                  {OpenAI, 429, "", `{"error":{"type":"usage_limit_reached","message":"x","resets_at":1795305600}}`, ProblemLimit, time.Unix(1795305600, 0)},
		"codex, in seconds":      {OpenAI, 429, "", `{"error":{"type":"usage_limit_reached","resets_in_seconds":7200}}`, ProblemLimit, at(2 * time.Hour)},
		"requests of a day":      {OpenAI, 429, "X-Ratelimit-Remaining-Requests: 0\nX-Ratelimit-Reset-Requests: 6m0s", `{"error":{"code":"rate_limit_exceeded"}}`, ProblemLimit, at(6 * time.Minute)},
		"tokens of a minute":     {OpenAI, 429, "X-Ratelimit-Remaining-Tokens: 0\nX-Ratelimit-Reset-Tokens: 6s", `{"error":{"code":"rate_limit_exceeded"}}`, "", time.Time{}},
		"quota of a day": {Gemini, 429, "", `{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel"}]},{"retryDelay":"20s"}]}}`,
			ProblemLimit, time.Date(2026, 11, 22, 8, 0, 0, 0, time.UTC)},
		"quota of a minute": {Gemini, 429, "", `[{"error":{"code":429,"details":[{"violations":[{"quotaId":"GenerateRequestsPerMinute"}]},{"retryDelay":"20s"}]}}]`, "", time.Time{}},
		"a wrong key":       {Anthropic, 401, "", `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, ProblemKey, time.Time{}},
		"Gemini's":          {Gemini, 400, "", `{"error":{"code":400,"message":"API key not valid.","details":[{"reason":"API_KEY_INVALID"}]}}`, ProblemKey, time.Time{}},
		"not this model":    {OpenAI, 403, "", `{"error":{"type":"permission_error"}}`, "", time.Time{}},
		"a wrong request":   {Anthropic, 400, "", `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}`, "", time.Time{}},
		"no credit":         {Anthropic, 400, "", `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}`, ProblemCredit, time.Time{}},
		"no quota":          {OpenAI, 429, "Retry-After: 5", `{"error":{"type":"insufficient_quota","code":"insufficient_quota"}}`, ProblemCredit, time.Time{}},
		"to be paid":        {OpenAI, 402, "", "", ProblemCredit, time.Time{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			header := http.Header{}
			for line := range strings.Lines(test.header) {
				k, v, _ := strings.Cut(strings.TrimSpace(line), ": ")
				header.Set(k, v)
			}
			got, until := test.api.ClassifyError(test.status, header, []byte(test.body), now)
			if got != test.want || !until.Equal(test.until) {
				t.Errorf("%q until %s, want %q until %s", got, until, test.want, test.until)
			}
		})
	}
}

// FuzzClassifyError: the end of a limit is in the future and not too far away, whatever a provider sends.
func FuzzClassifyError(f *testing.F) {
	f.Add(429, "3600", `{"error":{"resets_at":1e99,"details":[{"retryDelay":"-5s"}]}}`)
	f.Add(429, "-1", `[{"error":{"resets_in_seconds":1e8}}]`)
	now := time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, status int, after, body string) {
		for _, api := range APIs() {
			got, until := api.ClassifyError(status, http.Header{"Retry-After": {after}}, []byte(body), now)
			if limit := got == ProblemLimit; limit != !until.IsZero() || limit && (!until.After(now) || until.Sub(now) > 9*24*time.Hour) {
				t.Errorf("%s: %q until %s", api, got, until)
			}
		}
	})
}

// TestFailStream: the event that ends a stream is one event in JSON with the message.
func TestFailStream(t *testing.T) {
	t.Parallel()
	for _, api := range APIs() {
		event := string(api.FailStream("permission_error", "no money\n\nleft"))
		data, ok := strings.CutSuffix(event[strings.Index(event, "data: ")+len("data: "):], "\n\n")
		var body struct {
			Error struct{ Message string }
		}
		if err := json.Unmarshal([]byte(data), &body); err != nil || !ok || body.Error.Message != "no money\n\nleft" || strings.Contains(data, "\n") {
			t.Errorf("%s: %q (%v)", api, event, err)
		}
	}
}

// TestCurrentUsage: the usage of a stream is known while it is read, and estimated if it ends before it reports usage.
func TestCurrentUsage(t *testing.T) {
	t.Parallel()
	delta := `{"type":"response.output_text.delta","delta":"` + strings.Repeat("x", 400) + `"}`
	c := NewCounter(sseType, 4000)
	defer c.Close()
	if got := c.Current(); got != (Usage{}) {
		t.Errorf("before the first byte: %+v", got)
	}
	if _, err := c.Write([]byte(stream(`{"type":"response.created","response":{"model":"gpt-x","usage":null}}`, delta, delta))); err != nil {
		t.Fatal(err)
	}
	want := Usage{Model: "gpt-x", Input: 1000, Output: 200}
	if got, ok := c.Close(); got != want || !ok {
		t.Errorf("incomplete answer: %+v, %v", got, ok)
	}
}

// TestFinalUsageWins: usage at the end of a stream is what the provider bills, however long the text is.
func TestFinalUsageWins(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("-", 4000)
	for name, events := range map[string][]string{
		"anthropic": {
			`{"type":"message_start","message":{"model":"m","usage":{"input_tokens":7,"output_tokens":1}}}`,
			`{"type":"content_block_delta","delta":{"type":"text_delta","text":"` + long + `"}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}`,
		},
		"openai": {
			`{"type":"response.created","response":{"model":"m","usage":null}}`,
			`{"type":"response.output_text.delta","delta":"` + long + `"}`,
			`{"type":"response.completed","response":{"model":"m","usage":{"input_tokens":7,"output_tokens":9}}}`,
		},
	} {
		c := NewCounter(sseType, 4000)
		if _, err := c.Write([]byte(stream(events...))); err != nil {
			t.Fatal(err)
		}
		if got, ok := c.Close(); !ok || got != (Usage{Model: "m", Input: 7, Output: 9}) {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
}

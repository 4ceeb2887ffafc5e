package modelapi

import (
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
		"overloaded":                     {Anthropic, 529, "Retry-After: 900", `{"type":"error","error":{"type":"overloaded_error"}}`, "", time.Time{}},
		"a fault":                        {OpenAI, 500, "", "", "", time.Time{}},
		"slow down":                      {Anthropic, 429, "Retry-After: 30", `{"type":"error","error":{"type":"rate_limit_error"}}`, "", time.Time{}},
		"says nothing":                   {Anthropic, 429, "", "<html>", "", time.Time{}},
		"a long limit":                   {Anthropic, 429, "Retry-After: 3600", "", ProblemLimit, at(time.Hour)},
		"a date":                         {Anthropic, 429, "Retry-After: Sat, 21 Nov 2026 23:30:00 GMT", "", ProblemLimit, at(90 * time.Minute)},
		"a date long ago":                {Anthropic, 429, "Retry-After: Fri, 20 Nov 2026 23:30:00 GMT", "", "", time.Time{}},
		"a subscription":                 {Anthropic, 429, "Anthropic-Ratelimit-Unified-Status: rejected\nAnthropic-Ratelimit-Unified-Reset: 1795305600\nRetry-After: 5", "", ProblemLimit, time.Unix(1795305600, 0)},
		"one of its windows":             {Anthropic, 429, "Anthropic-Ratelimit-Unified-Status: rejected\nAnthropic-Ratelimit-Unified-5h-Reset: 1795309999\nAnthropic-Ratelimit-Unified-7d-Status: rejected\nAnthropic-Ratelimit-Unified-7d-Reset: 1795305600", "", ProblemLimit, time.Unix(1795305600, 0)},
		"one without its end":            {Anthropic, 429, "Anthropic-Ratelimit-Unified-Status: rejected", "", ProblemLimit, at(15 * time.Minute)},
		"one for half a minute":          {Anthropic, 429, "Anthropic-Ratelimit-Unified-Status: rejected\nRetry-After: 30", "", "", time.Time{}},
		"a subscription without a limit": {Anthropic, 429, "Anthropic-Ratelimit-Unified-Status: allowed\nAnthropic-Ratelimit-Unified-Reset: 1795305600", "", "", time.Time{}},
		"beyond belief":                  {Anthropic, 429, "Retry-After: 99999999", "", ProblemLimit, at(8 * 24 * time.Hour)},
		"codex":                          {OpenAI, 429, "", `{"error":{"type":"usage_limit_reached","message":"x","resets_at":1795305600}}`, ProblemLimit, time.Unix(1795305600, 0)},
		"codex, in seconds":              {OpenAI, 429, "", `{"error":{"type":"usage_limit_reached","resets_in_seconds":7200}}`, ProblemLimit, at(2 * time.Hour)},
		"requests of a day":              {OpenAI, 429, "X-Ratelimit-Remaining-Requests: 0\nX-Ratelimit-Reset-Requests: 6m0s", `{"error":{"code":"rate_limit_exceeded"}}`, ProblemLimit, at(6 * time.Minute)},
		"tokens of a minute":             {OpenAI, 429, "X-Ratelimit-Remaining-Tokens: 0\nX-Ratelimit-Reset-Tokens: 6s", `{"error":{"code":"rate_limit_exceeded"}}`, "", time.Time{}},
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
				t.Errorf("%s: got %q until %s", api, got, until)
			}
		}
	})
}

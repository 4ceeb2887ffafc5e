package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/modelapi"
)

// TestLongRetryAfterIsDropped: programs that obey any Retry-After do not get a long one; the limit is stored anyway.
func TestLongRetryAfterIsDropped(t *testing.T) {
	t.Parallel()
	const limit = `{"error":{"type":"rate_limit_error","message":"slow down"}}`
	for name, tc := range map[string]struct {
		api    modelapi.API
		status int
		after  string
		want   string // sent to the program
		limit  time.Duration
	}{
		"an hour, obeyed":          {modelapi.OpenAI, 429, "3600", "", time.Hour},
		"an hour, not obeyed":      {modelapi.Anthropic, 429, "3600", "3600", time.Hour},
		"half a minute, obeyed":    {modelapi.OpenAI, 429, "30", "30", 0},
		"overload, obeyed":         {modelapi.OpenAI, 503, "900", "", 0},
		"overload, not obeyed":     {modelapi.Anthropic, 529, "900", "900", 0},
		"a word instead of a time": {modelapi.OpenAI, 429, "soon", "soon", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProviderEnd(t, tc.api)
			p.answerWith(tc.status, "Retry-After: "+tc.after, limit)
			path := "/v1/messages"
			if tc.api == modelapi.OpenAI {
				path = "/v1/responses"
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/llm/anthropic"+path, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+runToken)
			resp, err := webtest.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != tc.status || string(body) != limit {
				t.Errorf("got status %d, body %s, error %v", resp.StatusCode, body, err)
			}
			if got := resp.Header.Get("Retry-After"); got != tc.want {
				t.Errorf("Retry-After %q, want %q", got, tc.want)
			}
			if told := p.ledger.wait; (told != nil) != (tc.limit > 0) || told != nil && !told.Until.Equal(p.start.Add(tc.limit)) {
				t.Errorf("got stored wait %+v", told)
			}
		})
	}
}

// TestLastingLimitStopsRetries: programs get an answer about a lasting limit in a form in which they give up at once,
// in each API.
func TestLastingLimitStopsRetries(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		api        modelapi.API
		path, body string
		header     map[string]string
		long       bool   // its Retry-After is one of hours
		says       string // in the body
	}{
		"claude, a unified limit": {modelapi.Anthropic, "/v1/messages", `{"model":"claude-x","max_tokens":5}`,
			map[string]string{"Anthropic-Ratelimit-Unified-Status": "rejected", "Anthropic-Ratelimit-Unified-Reset": "4102444800"}, true, "theirs"},
		"claude, a short limit": {modelapi.Anthropic, "/v1/messages", `{"model":"claude-x","max_tokens":5}`, map[string]string{"Retry-After": "5"}, false, "theirs"},
		"codex":                 {modelapi.OpenAI, "/v1/responses", `{"model":"gpt-x"}`, map[string]string{"Retry-After": "18000"}, false, "theirs"},
		"gemini": {modelapi.Gemini, "/v1beta/models/gemini-x:generateContent", `{}`,
			map[string]string{"Retry-After": "18000"}, true, "Please retry in "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for k, v := range test.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(http.StatusTooManyRequests)
				_, _ = io.WriteString(w, `{"error":{"message":"theirs"}}`)
			}))
			t.Cleanup(api.Close)
			e := newVMEnd(t, someTask(), func(c *Config) {
				c.Providers = map[string]Provider{"p": {BaseURL: api.URL, Key: modelKey, Header: "X-Api-Key", API: test.api}}
			})
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.url+"/llm/p"+test.path, strings.NewReader(test.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+runToken)
			resp, err := webtest.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			after := resp.Header.Get("Retry-After")
			if resp.StatusCode != http.StatusTooManyRequests || !strings.Contains(string(body), test.says) || (len(after) >= 5) != test.long {
				t.Errorf("got status %d, retry-after %q, %s", resp.StatusCode, after, body)
			}
		})
	}
}

package gateway

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

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
		want   string // told to the program
		limit  time.Duration
	}{
		"an hour, obeyed":         {modelapi.OpenAI, 429, "3600", "", time.Hour},
		"an hour, not obeyed":     {modelapi.Anthropic, 429, "3600", "3600", time.Hour},
		"half a minute, obeyed":   {modelapi.OpenAI, 429, "30", "30", 0},
		"overload, obeyed":        {modelapi.OpenAI, 503, "900", "", 0},
		"overload, not obeyed":    {modelapi.Anthropic, 529, "900", "900", 0},
		"a word, which is no end": {modelapi.OpenAI, 429, "soon", "soon", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProvided(t, tc.api)
			p.says(tc.status, "Retry-After: "+tc.after, limit)
			path := "/v1/messages"
			if tc.api == modelapi.OpenAI {
				path = "/v1/responses"
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+"/llm/anthropic"+path, strings.NewReader("{}"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+runToken)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			body, err := io.ReadAll(resp.Body)
			if err != nil || resp.StatusCode != tc.status || string(body) != limit {
				t.Errorf("status %d, body %s, %v", resp.StatusCode, body, err)
			}
			if got := resp.Header.Get("Retry-After"); got != tc.want {
				t.Errorf("Retry-After %q, want %q", got, tc.want)
			}
			if told := p.ledger.told; (told != nil) != (tc.limit > 0) || told != nil && !told.Until.Equal(p.start.Add(tc.limit)) {
				t.Errorf("stored with the run: %+v", told)
			}
		})
	}
}

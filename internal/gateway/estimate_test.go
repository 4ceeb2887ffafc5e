package gateway_test

import (
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/gateway"
)

func TestEstimate(t *testing.T) {
	t.Parallel()
	long := `"` + strings.Repeat("x", 4000) + `"`
	tests := map[string]struct {
		api        gateway.API
		path, body string
		want       gateway.Usage
	}{
		"anthropic, whole":          {gateway.Anthropic, "/v1/messages", `{"model":"m","max_tokens":64000}`, gateway.Usage{Model: "m", Input: 8, Output: 64_000}},
		"anthropic, streamed":       {gateway.Anthropic, "/v1/messages", `{"model":"m","max_tokens":64000,"stream":true}`, gateway.Usage{Model: "m", Input: 11, Output: 8192}},
		"a short stream":            {gateway.Anthropic, "/v1/messages", `{"model":"m","max_tokens":64,"stream":true}`, gateway.Usage{Model: "m", Input: 10, Output: 64}},
		"by its length":             {gateway.Anthropic, "/v1/messages", `{"messages":` + long + `,"max_tokens":1}`, gateway.Usage{Input: 1007, Output: 1}},
		"openai, no bound":          {gateway.OpenAI, "/v1/responses", `{"model":"m"}`, gateway.Usage{Model: "m", Input: 3, Output: 32_768}},
		"openai, a bound":           {gateway.OpenAI, "/v1/responses", `{"max_output_tokens":100}`, gateway.Usage{Input: 6, Output: 100}},
		"chat, many at once":        {gateway.OpenAI, "/v1/chat/completions", `{"max_completion_tokens":100,"n":5}`, gateway.Usage{Input: 8, Output: 500}},
		"two values, the dearer":    {gateway.OpenAI, "/v1/chat/completions", `{"max_tokens":9000,"max_tokens":1,"stream":true,"stream":false}`, gateway.Usage{Input: 15, Output: 9000}},
		"more than any":             {gateway.OpenAI, "/v1/chat/completions", `{"max_tokens":1e300,"n":1e9}`, gateway.Usage{Input: 7, Output: 128 << 10 * 128}},
		"gemini, whole":             {gateway.Gemini, "/v1beta/models/g:generateContent", `{"generationConfig":{"maxOutputTokens":100,"candidateCount":2}}`, gateway.Usage{Model: "g", Input: 15, Output: 200}},
		"gemini, its other names":   {gateway.Gemini, "/v1beta/models/g:generateContent", `{"generation_config":{"max_output_tokens":100}}`, gateway.Usage{Model: "g", Input: 11, Output: 100}},
		"gemini, streamed":          {gateway.Gemini, "/v1beta/models/g:streamGenerateContent?alt=sse", `{}`, gateway.Usage{Model: "g", Input: 1, Output: 8192}},
		"gemini, a list":            {gateway.Gemini, "/v1beta/models/g:streamGenerateContent", `{}`, gateway.Usage{Model: "g", Input: 1, Output: 32_768}},
		"gemini, which of both":     {gateway.Gemini, "/v1beta/models/g:streamGenerateContent?alt=sse&alt=json", `{}`, gateway.Usage{Model: "g", Input: 1, Output: 32_768}},
		"anthropic, counting":       {gateway.Anthropic, "/v1/messages/count_tokens", `{"model":"m","max_tokens":64000}`, gateway.Usage{}},
		"gemini, counting":          {gateway.Gemini, "/v1beta/models/g:countTokens", `{}`, gateway.Usage{}},
		"nothing":                   {gateway.Anthropic, "/v1/messages", ``, gateway.Usage{Input: 1, Output: 32_768}},
		"not JSON":                  {gateway.Anthropic, "/v1/messages", `{"max_tokens":`, gateway.Usage{Input: 3, Output: 32_768}},
		"a list":                    {gateway.Anthropic, "/v1/messages", `[1]`, gateway.Usage{Input: 1, Output: 32_768}},
		"values of other kinds":     {gateway.Anthropic, "/v1/messages", `{"model":7,"max_tokens":"9","n":-3,"stream":"yes"}`, gateway.Usage{Input: 12, Output: 32_768}},
		"deeper, where it is prose": {gateway.Anthropic, "/v1/messages", `{"messages":[{"max_tokens":9,"stream":true}]}`, gateway.Usage{Input: 11, Output: 32_768}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, err := url.Parse(test.path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, test.api.Estimate(u.Path, u.Query(), []byte(test.body))); diff != "" {
				t.Errorf("estimate (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzEstimate: whatever is asked, the estimate ends, is never negative, and bounds what one call can count for.
func FuzzEstimate(f *testing.F) {
	f.Add("/v1/messages", []byte(`{"model":"m","max_tokens":64000,"stream":true}`))
	f.Add("/v1beta/models/g:generateContent", []byte(`{"generationConfig":{"maxOutputTokens":1e9}}`))
	f.Fuzz(func(t *testing.T, path string, body []byte) {
		for _, api := range gateway.APIs() {
			if u := api.Estimate(path, nil, body); u.Input < 0 || u.Output < 0 || u.Output > 128<<10*128 || u.Input > int64(len(body))+1 {
				t.Errorf("%s: %+v", api, u)
			}
		}
	})
}

package modelapi

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseRequest(t *testing.T) {
	t.Parallel()
	long := `"` + strings.Repeat("x", 4000) + `"`
	tests := map[string]struct {
		api        API
		path, body string
		want       Usage
	}{
		"anthropic, whole":          {Anthropic, "/v1/messages", `{"model":"m","max_tokens":64000}`, Usage{Model: "m", Input: 8, Output: 64_000}},
		"anthropic, streamed":       {Anthropic, "/v1/messages", `{"model":"m","max_tokens":64000,"stream":true}`, Usage{Model: "m", Input: 11, Output: 8192}},
		"a short stream":            {Anthropic, "/v1/messages", `{"model":"m","max_tokens":64,"stream":true}`, Usage{Model: "m", Input: 10, Output: 64}},
		"by its length":             {Anthropic, "/v1/messages", `{"messages":` + long + `,"max_tokens":1}`, Usage{Input: 1007, Output: 1}},
		"openai, no bound":          {OpenAI, "/v1/responses", `{"model":"m"}`, Usage{Model: "m", Input: 3, Output: 128 << 10}},
		"openai, a bound":           {OpenAI, "/v1/responses", `{"max_output_tokens":100}`, Usage{Input: 6, Output: 100}},
		"openai, another API's":     {OpenAI, "/v1/responses", `{"max_tokens":100}`, Usage{Input: 4, Output: 128 << 10}},
		"openai, another's again":   {OpenAI, "/v1/chat/completions", `{"max_output_tokens":100}`, Usage{Input: 6, Output: 128 << 10}},
		"anthropic, another API's":  {Anthropic, "/v1/messages", `{"max_completion_tokens":100}`, Usage{Input: 7, Output: 128 << 10}},
		"chat, both bounds":         {OpenAI, "/v1/chat/completions", `{"max_tokens":100,"max_completion_tokens":200}`, Usage{Input: 11, Output: 200}},
		"chat, one of them nothing": {OpenAI, "/v1/chat/completions", `{"max_tokens":100,"max_completion_tokens":null}`, Usage{Input: 11, Output: 128 << 10}},
		"two values, no bound":      {OpenAI, "/v1/chat/completions", `{"max_tokens":9000,"max_tokens":1}`, Usage{Input: 8, Output: 128 << 10}},
		"two streams, none":         {OpenAI, "/v1/chat/completions", `{"stream":true,"stream":false}`, Usage{Input: 7, Output: 128 << 10}},
		"more than any":             {OpenAI, "/v1/chat/completions", `{"max_tokens":1e300}`, Usage{Input: 5, Output: 128 << 10}},
		"a fraction":                {OpenAI, "/v1/chat/completions", `{"max_tokens":1.5}`, Usage{Input: 4, Output: 2}},
		"gemini, whole":             {Gemini, "/v1beta/models/g:generateContent", `{"generationConfig":{"maxOutputTokens":100}}`, Usage{Model: "g", Input: 11, Output: 100}},
		"gemini, not in its place":  {Gemini, "/v1beta/models/g:generateContent", `{"maxOutputTokens":100}`, Usage{Model: "g", Input: 5, Output: 128 << 10}},
		"gemini, two of them":       {Gemini, "/v1beta/models/g:generateContent", `{"generationConfig":{"maxOutputTokens":100},"generation_config":{}}`, Usage{Model: "g", Input: 16, Output: 128 << 10}},
		"gemini, its other names":   {Gemini, "/v1beta/models/g:generateContent", `{"generation_config":{"max_output_tokens":100}}`, Usage{Model: "g", Input: 11, Output: 100}},
		"gemini, streamed":          {Gemini, "/v1beta/models/g:streamGenerateContent?alt=sse", `{}`, Usage{Model: "g", Input: 1, Output: 8192}},
		"gemini, a list":            {Gemini, "/v1beta/models/g:streamGenerateContent", `{}`, Usage{Model: "g", Input: 1, Output: 128 << 10}},
		"gemini, not passed on":     {Gemini, "/v1beta/models/g:streamGenerateContent?$alt=sse", `{}`, Usage{Model: "g", Input: 1, Output: 128 << 10}},
		"gemini, both fields":       {Gemini, "/v1beta/models/g:streamGenerateContent?alt=sse&alt=json", `{}`, Usage{Model: "g", Input: 1, Output: 128 << 10}},
		"anthropic, counting":       {Anthropic, "/v1/messages/count_tokens", `{"model":"m","max_tokens":64000}`, Usage{}},
		"gemini, counting":          {Gemini, "/v1beta/models/g:countTokens", `{}`, Usage{}},
		"nothing":                   {Anthropic, "/v1/messages", ``, Usage{Input: 1, Output: 128 << 10}},
		"not JSON":                  {Anthropic, "/v1/messages", `{"max_tokens":`, Usage{Input: 3, Output: 128 << 10}},
		"a list":                    {Anthropic, "/v1/messages", `[1]`, Usage{Input: 1, Output: 128 << 10}},
		"values of other kinds":     {Anthropic, "/v1/messages", `{"model":7,"max_tokens":"9","n":-3,"stream":"yes"}`, Usage{Input: 12, Output: 128 << 10}},
		"deeper, in a text":         {Anthropic, "/v1/messages", `{"messages":[{"max_tokens":9,"stream":true}]}`, Usage{Input: 11, Output: 128 << 10}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u, err := url.Parse(test.path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, test.api.ParseRequest(u.Path, u.Query(), []byte(test.body)).Usage); diff != "" {
				t.Errorf("estimate (-want +got):\n%s", diff)
			}
		})
	}
}

// FuzzParseRequest: the estimate of any request is not negative and bounds what one call can count; the body that is
// sent is valid JSON if the request is, with the right limit.
func FuzzParseRequest(f *testing.F) {
	f.Add("/v1/messages", []byte(`{"model":"m","max_tokens":64000,"stream":true}`))
	f.Add("/v1beta/models/g:generateContent", []byte(`{"generationConfig":{"maxOutputTokens":1e9}}`))
	f.Add("/v1/chat/completions", []byte(` {"stream" : true , "stream_options": {"include_usage":false}, "max_tokens":null}`))
	f.Add("/v1/chat/completions", []byte(`{"stream":1,"\u006daxtokens":{}}`))
	f.Add("/v1/responses", []byte(`{ }`))
	f.Fuzz(func(t *testing.T, path string, body []byte) {
		for _, api := range APIs() {
			q := api.ParseRequest(path, nil, body)
			if u := q.Usage; u.Input < 0 || u.Output < 0 || u.Output > q.MaxOutput || q.MaxOutput > 128<<10 || q.MinOutput > q.MaxOutput || u.Input > int64(len(body))+1 {
				t.Errorf("%s: got %+v", api, u)
			}
			sent := bytes.Join(q.Body(10, false), nil)
			if !json.Valid(body) || q.Ambiguous != nil || !q.CanLimitOutput() {
				continue
			}
			again := api.ParseRequest(path, nil, sent)
			if !json.Valid(sent) || again.MaxOutput != 10 || again.AddsUsageOption() || again.Ambiguous != nil {
				t.Errorf("%s %s: %q became %q, bounded to %d", api, path, body, sent, again.MaxOutput)
			}
		}
	})
}

package gateway

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/gateway/gatewaytest"
	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// recordingEnd is the end of a VM whose model records the bodies that it receives, and answers each without usage.
type recordingEnd struct {
	*vmEnd
	books *taskLedger
	api   modelapi.API

	mu     sync.Mutex
	bodies []string
}

func newRecordingEnd(t *testing.T, api modelapi.API, change func(*Config, *taskLedger)) *recordingEnd {
	t.Helper()
	a := &recordingEnd{books: &taskLedger{task: *someTask()}, api: api}
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || int64(len(body)) != r.ContentLength {
			t.Errorf("got %d of %d bytes, error %v", len(body), r.ContentLength, err)
		}
		a.mu.Lock()
		a.bodies = append(a.bodies, string(body))
		a.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{}`)
	}))
	t.Cleanup(model.Close)
	a.vmEnd = newVMEnd(t, nil, func(c *Config) {
		c.Providers = map[string]Provider{"m": {BaseURL: model.URL, Key: modelKey, Header: "X-Api-Key", API: api}}
		c.Tasks, c.Ledger, c.Prices, c.QueueTimeout = a.books, a.books, modelapi.Prices{"m": {Input: 1, Output: 10}}, time.Millisecond
		if change != nil {
			change(c, a.books)
		}
	})
	return a
}

// post makes a call.
func (a *recordingEnd) post(t *testing.T, path, body string) (status int, answer string) {
	t.Helper()
	return sendBody(t, webtest.Client(), http.MethodPost, a.url+"/llm/m"+path, body, gatewaytest.Bearer(runToken))
}

// received returns the bodies that the model received.
func (a *recordingEnd) received() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bodies
}

// sendBody sends a request with a body.
func sendBody(t *testing.T, client *http.Client, method, url, body string, headers map[string]string) (int, string) {
	t.Helper()
	return gatewaytest.Send(t, client, gatewaytest.Request{Method: method, URL: url, Body: body, Header: headers})
}

const (
	chatPath      = "/v1/chat/completions"
	responsesPath = "/v1/responses"
	messagesPath  = "/v1/messages"
	geminiPath    = "/v1beta/models/m:generateContent"
	geminiStream  = "/v1beta/models/m:streamGenerateContent?alt=sse"
)

// TestMultipleAnswersAreDenied: no call gets more than one answer, whatever budget is left and however it requests
// them.
func TestMultipleAnswersAreDenied(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		api        modelapi.API
		path, body string
		want       int
	}{
		"n":                           {modelapi.OpenAI, chatPath, `{"model":"m","n":128}`, 403},
		"n, streamed":                 {modelapi.OpenAI, chatPath, `{"model":"m","n":2,"stream":true}`, 403},
		"n, a fraction":               {modelapi.OpenAI, chatPath, `{"model":"m","n":1.5}`, 403},
		"n, huge":                     {modelapi.OpenAI, chatPath, `{"model":"m","n":1e400}`, 403},
		"n, a string":                 {modelapi.OpenAI, chatPath, `{"model":"m","n":"128"}`, 403},
		"n, negative":                 {modelapi.OpenAI, chatPath, `{"model":"m","n":-1}`, 403},
		"n, a list":                   {modelapi.OpenAI, chatPath, `{"model":"m","n":[128]}`, 403},
		"n, an empty list":            {modelapi.OpenAI, chatPath, `{"model":"m","n":[]}`, 403},
		"n, an object":                {modelapi.OpenAI, chatPath, `{"model":"m","n":{"n":128}}`, 403},
		"n, twice":                    {modelapi.OpenAI, chatPath, `{"model":"m","n":128,"n":1}`, 403},
		"n, escaped":                  {modelapi.OpenAI, chatPath, `{"model":"m","\u006e":128}`, 403},
		"N":                           {modelapi.OpenAI, chatPath, `{"model":"m","N":128}`, 403},
		"explicitly one":              {modelapi.OpenAI, chatPath, `{"model":"m","n":1}`, 200},
		"one, as a float":             {modelapi.OpenAI, chatPath, `{"model":"m","n":1.0}`, 200},
		"null":                        {modelapi.OpenAI, chatPath, `{"model":"m","n":null}`, 200},
		"n in a tool's parameters":    {modelapi.OpenAI, chatPath, `{"model":"m","tools":[{"type":"function","function":{"name":"f","parameters":{"n":{"type":"number"}}}}]}`, 200},
		"best_of":                     {modelapi.OpenAI, chatPath, `{"model":"m","best_of":20}`, 403},
		"num_return_sequences":        {modelapi.OpenAI, chatPath, `{"model":"m","num_return_sequences":20}`, 403},
		"beams":                       {modelapi.OpenAI, chatPath, `{"model":"m","use_beam_search":true}`, 403},
		"a prediction":                {modelapi.OpenAI, chatPath, `{"model":"m","prediction":{"type":"content","content":"x"}}`, 403},
		"responses":                   {modelapi.OpenAI, responsesPath, `{"model":"m","n":128}`, 403},
		"anthropic":                   {modelapi.Anthropic, messagesPath, `{"model":"m","max_tokens":9,"n":128}`, 403},
		"gemini":                      {modelapi.Gemini, geminiPath, `{"generationConfig":{"candidateCount":8}}`, 403},
		"gemini, snake case":          {modelapi.Gemini, geminiPath, `{"generation_config":{"candidate_count":8}}`, 403},
		"gemini, mixed":               {modelapi.Gemini, geminiPath, `{"generation_config":{"candidateCount":8}}`, 403},
		"gemini, streamed":            {modelapi.Gemini, geminiStream, `{"generationConfig":{"candidateCount":8}}`, 403},
		"gemini, in a list":           {modelapi.Gemini, geminiPath, `{"generationConfig":[{"candidateCount":8}]}`, 403},
		"gemini, two configurations":  {modelapi.Gemini, geminiPath, `{"generationConfig":{"candidateCount":8},"generationConfig":{}}`, 403},
		"gemini, both configurations": {modelapi.Gemini, geminiPath, `{"generationConfig":{},"generation_config":{}}`, 403},
		"gemini, one":                 {modelapi.Gemini, geminiPath, `{"generationConfig":{"candidateCount":1}}`, 200},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newRecordingEnd(t, test.api, nil)
			status, answer := a.post(t, test.path, test.body)
			if status != test.want || (len(a.received()) > 0) != (test.want == 200) || status == 403 && !strings.Contains(answer, "errand: ") {
				t.Errorf("status %d, want %d: %s; the model received %q", status, test.want, answer, a.received())
			}
		})
	}
}

// TestOutputIsLimitedToTheCaps: the output of a call that is not streamed is limited to what every cap leaves; if that
// is too little for an answer, the call is denied and the reason is stored with the run.
func TestOutputIsLimitedToTheCaps(t *testing.T) {
	t.Parallel()
	left := func(micro int64) func(*Config, *taskLedger) {
		return func(_ *Config, b *taskLedger) {
			b.task.Money.CapMicroUSD, b.task.Money.MicroUSD = 5_000_000, 5_000_000-micro
		}
	}
	tests := map[string]struct {
		api    modelapi.API
		path   string
		body   string
		change func(*Config, *taskLedger)
		want   string // that reaches the model; empty for a refusal
	}{
		"plenty":                     {modelapi.OpenAI, chatPath, `{"model":"m","max_tokens":64000}`, left(1_000_000), `{"model":"m","max_tokens":64000}`},
		"plenty, no bound":           {modelapi.OpenAI, chatPath, `{"model":"m"}`, left(2_000_000), `{"model":"m"}`},
		"no cap":                     {modelapi.OpenAI, chatPath, `{"model":"m"}`, nil, `{"model":"m"}`},
		"chat":                       {modelapi.OpenAI, chatPath, `{"model":"m","max_tokens":64000}`, left(100_010), `{"model":"m","max_tokens":10000}`},
		"chat, newer":                {modelapi.OpenAI, chatPath, `{ "max_completion_tokens" : 64000 ,"model":"m"}`, left(100_013), `{ "max_completion_tokens" : 10000 ,"model":"m"}`},
		"chat, no bound":             {modelapi.OpenAI, chatPath, `{"model":"m"}`, left(100_004), `{"max_completion_tokens":10000,"model":"m"}`},
		"chat, not a bound":          {modelapi.OpenAI, chatPath, `{"model":"m","max_tokens":null}`, left(100_010), `{"model":"m","max_tokens":10000}`},
		"chat, a string":             {modelapi.OpenAI, chatPath, `{"model":"m","max_tokens":"9"}`, left(100_010), `{"model":"m","max_tokens":10000}`},
		"chat, negative":             {modelapi.OpenAI, chatPath, `{"model":"m","max_tokens":-1}`, left(100_010), `{"model":"m","max_tokens":10000}`},
		"chat, huge":                 {modelapi.OpenAI, chatPath, `{"model":"m","max_tokens":1e99}`, left(100_010), `{"model":"m","max_tokens":10000}`},
		"chat, another API's":        {modelapi.OpenAI, chatPath, `{"model":"m","max_output_tokens":1}`, left(100_010), `{"max_completion_tokens":10000,"model":"m","max_output_tokens":1}`},
		"chat, not streamed at last": {modelapi.OpenAI, chatPath, `{"model":"m","stream":false}`, left(100_010), `{"max_completion_tokens":10000,"model":"m","stream":false}`},
		"responses":                  {modelapi.OpenAI, responsesPath, `{"model":"m","max_output_tokens":64000}`, left(100_011), `{"model":"m","max_output_tokens":10000}`},
		"responses, no bound":        {modelapi.OpenAI, responsesPath, `{}`, left(100_001), `{"max_output_tokens":10000}`},
		"responses, a chat's bound":  {modelapi.OpenAI, responsesPath, `{"model":"m","max_tokens":1}`, left(100_010), `{"max_output_tokens":10000,"model":"m","max_tokens":1}`},
		"anthropic":                  {modelapi.Anthropic, messagesPath, `{"model":"m","max_tokens":64000}`, left(100_010), `{"model":"m","max_tokens":10000}`},
		"anthropic, a fraction":      {modelapi.Anthropic, messagesPath, `{"model":"m","max_tokens":64000.5}`, left(100_010), `{"model":"m","max_tokens":10000}`},
		"anthropic, thinks less":     {modelapi.Anthropic, messagesPath, `{"model":"m","max_tokens":64000,"thinking":{"budget_tokens":2000}}`, left(100_020), `{"model":"m","max_tokens":10000,"thinking":{"budget_tokens":2000}}`},
		"anthropic, thinks more":     {modelapi.Anthropic, messagesPath, `{"model":"m","max_tokens":64000,"thinking":{"budget_tokens":20000}}`, left(100_020), ""},
		"gemini":                     {modelapi.Gemini, geminiPath, `{"generationConfig":{"maxOutputTokens":64000}}`, left(100_012), `{"generationConfig":{"maxOutputTokens":10000}}`},
		"gemini, snake case":         {modelapi.Gemini, geminiPath, `{"generation_config":{"max_output_tokens":64000}}`, left(100_013), `{"generation_config":{"max_output_tokens":10000}}`},
		"gemini, no bound":           {modelapi.Gemini, geminiPath, `{"generationConfig":{"topK":1}}`, left(100_010), `{"generationConfig":{"maxOutputTokens":10000,"topK":1}}`},
		"gemini, no configuration":   {modelapi.Gemini, geminiPath, `{"contents":[]}`, left(100_010), `{"generationConfig":{"maxOutputTokens":10000},"contents":[]}`},
		"gemini, an empty one":       {modelapi.Gemini, geminiPath, `{"generationConfig":{ }}`, left(100_010), `{"generationConfig":{"maxOutputTokens":10000 }}`},
		"gemini, a list of events":   {modelapi.Gemini, "/v1beta/models/m:streamGenerateContent", `{}`, left(100_001), `{"generationConfig":{"maxOutputTokens":10000}}`},
		"gemini, a list in the end":  {modelapi.Gemini, "/v1beta/models/m:streamGenerateContent?$alt=sse", `{}`, left(100_001), `{"generationConfig":{"maxOutputTokens":10000}}`},
		"a cent":                     {modelapi.OpenAI, chatPath, `{"model":"m","max_tokens":64000}`, left(10_000), ""},
		"a cent, asked for less":     {modelapi.OpenAI, chatPath, `{"model":"m","max_tokens":900}`, left(10_000), `{"model":"m","max_tokens":900}`},
		"a long request":             {modelapi.OpenAI, chatPath, `{"model":"m","messages":"` + strings.Repeat("x", 400_000) + `"}`, left(100_000), ""},
		"a run's money": {modelapi.OpenAI, chatPath, `{"model":"m"}`, func(_ *Config, b *taskLedger) { b.task.Settings.Limits.RunMicroUSD = 100_004 },
			`{"max_completion_tokens":10000,"model":"m"}`},
		"a task's tokens": {modelapi.OpenAI, chatPath, `{"model":"m"}`, func(_ *Config, b *taskLedger) { b.task.Money.CapTokens = 10_003 },
			`{"max_completion_tokens":10000,"model":"m"}`},
		"a run's tokens": {modelapi.OpenAI, chatPath, `{"model":"m"}`, func(_ *Config, b *taskLedger) { b.task.Settings.Limits.RunTokens = 10_003 },
			`{"max_completion_tokens":10000,"model":"m"}`},
		"of all tasks": {modelapi.OpenAI, chatPath, `{"model":"m"}`, func(_ *Config, b *taskLedger) { b.caps.CapMicroUSD = 100_004 },
			`{"max_completion_tokens":10000,"model":"m"}`},
		"of all tasks, too little": {modelapi.OpenAI, chatPath, `{"model":"m"}`, func(_ *Config, b *taskLedger) { b.caps.CapMicroUSD = 10_000 }, ""},
		"a stream":                 {modelapi.Anthropic, messagesPath, `{"model":"m","max_tokens":64000,"stream":true}`, left(1), `{"model":"m","max_tokens":64000,"stream":true}`},
		"a stream, perhaps":        {modelapi.Anthropic, messagesPath, `{"model":"m","max_tokens":64000,"stream":1}`, left(1), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newRecordingEnd(t, test.api, test.change)
			status, answer := a.post(t, test.path, test.body)
			if test.want != "" {
				if got := a.received(); status != 200 || len(got) != 1 || got[0] != test.want {
					t.Errorf("status %d: %s; the model received %q, want %q", status, answer, got, test.want)
				}
				return
			}
			if status != 403 || len(a.received()) > 0 || !strings.Contains(answer, "too little") {
				t.Errorf("got status %d: %s; the model received %.200q", status, answer, a.received())
			}
			if a.books.wait == nil || a.books.wait.Kind != state.WaitMoney {
				t.Errorf("the reason was not stored with the run: got %+v", a.books.wait)
			}
		})
	}
}

// TestImagesReserveLess: a call with an image is made although its length as text would exceed the cap; if its answer reports no
// usage, that estimate is charged. A text that is called an image is denied.
func TestImagesReserveLess(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		begin string
		want  int
	}{"an image": {"\x89PNG\r\n\x1a\n", 200}, "a text": {"Read this.", 403}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := base64.StdEncoding.EncodeToString([]byte(tc.begin + strings.Repeat("\x00", 600_000)))
			body := `{"model":"m","max_tokens":2000,"messages":[{"role":"user","content":[{"type":"image","source":` +
				`{"type":"base64","media_type":"image/png","data":"` + data + `"}}]}]}`
			a := newRecordingEnd(t, modelapi.Anthropic, func(_ *Config, b *taskLedger) { b.task.Money.CapMicroUSD = 100_000 })
			status, answer := a.post(t, messagesPath, body)
			if status != tc.want {
				t.Fatalf("got status %d: %s", status, answer)
			}
			a.books.mu.Lock()
			defer a.books.mu.Unlock()
			if got := a.books.task.Money.InputTokens; tc.want == 200 && (got < 10_000 || got > 10_100) || tc.want != 200 && got != 0 {
				t.Errorf("%d input tokens were charged", got)
			}
		})
	}
}

// TestReachedCapTakesPrecedence: if a cap of all tasks is reached, the task waits for it even if its own cap, for which
// it would fail, leaves too little for the call.
func TestReachedCapTakesPrecedence(t *testing.T) {
	t.Parallel()
	a := newRecordingEnd(t, modelapi.Anthropic, func(_ *Config, b *taskLedger) {
		b.task.Money.CapMicroUSD, b.task.Money.MicroUSD = 5_000_000, 4_999_000
		b.caps.CapMicroUSD, b.caps.MicroUSD = 1_000_000, 1_000_000
	})
	status, answer := a.post(t, messagesPath, `{"model":"m","max_tokens":64000}`)
	if status != 403 || !strings.Contains(answer, "today's cap is reached") || a.books.wait == nil || a.books.wait.Detail != "today's cap is reached" {
		t.Errorf("got status %d: %s; stored wait: %+v", status, answer, a.books.wait)
	}
}

// TestUsageIsRequested: a streamed chat reports its usage, whatever its program requests.
func TestUsageIsRequested(t *testing.T) {
	t.Parallel()
	const usage = `"stream_options":{"include_usage":true}`
	tests := map[string]struct {
		path, body string
		want       string // that reaches the model; empty for a refusal
	}{
		"asked for":         {chatPath, `{"model":"m","stream":true,` + usage + `}`, `{"model":"m","stream":true,` + usage + `}`},
		"not set":           {chatPath, `{"model":"m","stream":true}`, `{` + usage + `,"model":"m","stream":true}`},
		"refused":           {chatPath, `{"stream":true,"stream_options":{"include_usage":false},"model":"m"}`, `{"stream":true,` + usage + `,"model":"m"}`},
		"null":              {chatPath, `{"stream":true,"stream_options":null}`, `{"stream":true,` + usage + `}`},
		"null within":       {chatPath, `{"stream":true,"stream_options":{"include_usage":null}}`, `{"stream":true,` + usage + `}`},
		"twice within":      {chatPath, `{"stream":true,"stream_options":{"include_usage":true,"include_usage":false}}`, `{"stream":true,` + usage + `}`},
		"other options":     {chatPath, `{"stream":true,"stream_options":{"include_obfuscation":false}}`, `{"stream":true,` + usage + `}`},
		"a list":            {chatPath, `{"stream":true,"stream_options":[]}`, `{"stream":true,` + usage + `}`},
		"escaped":           {chatPath, `{"stream":true,"stream\u005foptions":{"include_usage":false}}`, `{"stream":true,"stream\u005foptions":{"include_usage":true}}`},
		"twice":             {chatPath, `{"stream":true,` + usage + `,"stream_options":{"include_usage":false}}`, ""},
		"in capitals":       {chatPath, `{"stream":true,` + usage + `,"Stream_Options":{"include_usage":false}}`, ""},
		"in camel case":     {chatPath, `{"stream":true,"streamOptions":{"include_usage":false}}`, ""},
		"with a long s":     {chatPath, `{"stream":true,` + usage + `,"ſtream_options":{"include_usage":false}}`, ""},
		"a long s, escaped": {chatPath, `{"stream":true,"\u017ftream_options":{"include_usage":false}}`, ""},
		"two streams":       {chatPath, `{"stream":false,"stream":true}`, ""},
		"a stream, perhaps": {chatPath, `{"stream":1}`, `{` + usage + `,"stream":1}`},
		"not streamed":      {chatPath, `{"stream":false}`, `{"stream":false}`},
		"stream not set":    {chatPath, `{"model":"m"}`, `{"model":"m"}`},
		"without a version": {"/chat/completions", `{"stream":true}`, `{` + usage + `,"stream":true}`},
		"responses":         {responsesPath, `{"stream":true}`, `{"stream":true}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newRecordingEnd(t, modelapi.OpenAI, nil)
			status, answer := a.post(t, test.path, test.body)
			got := fmt.Sprint(strings.Join(a.received(), ""))
			if got != test.want || status != 200 && (test.want != "" || status != 403) {
				t.Errorf("status %d: %s; the model received %q, want %q", status, answer, got, test.want)
			}
			if got != "" && !json.Valid([]byte(got)) {
				t.Errorf("the model received invalid JSON: got %q", got)
			}
		})
	}
}

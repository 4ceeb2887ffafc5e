package gateway

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/internal/gateway/gatewaytest"
	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// modelLimitedEnd is the end of a VM whose run may call some models, with what the providers received and what was
// denied.
type modelLimitedEnd struct {
	*vmEnd
	mu       sync.Mutex
	received []string // bodies
	denied   []egress.Request
}

func newModelLimitedEnd(t *testing.T, may AllowedModels) *modelLimitedEnd {
	t.Helper()
	w := &modelLimitedEnd{}
	api := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.mu.Lock()
		w.received = append(w.received, string(body))
		w.mu.Unlock()
		_, _ = io.WriteString(rw, "{}")
	}))
	t.Cleanup(api.Close)
	w.vmEnd = newVMEnd(t, someTask(), func(c *Config) {
		c.Providers = map[string]Provider{}
		for _, a := range modelapi.APIs() {
			c.Providers[string(a)] = Provider{BaseURL: api.URL, Key: modelKey, Header: "X-Api-Key", API: a}
		}
		c.AllowedModels = func(*state.Task) AllowedModels { return may }
		c.Denied = func(_ *state.Task, r egress.Request) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.denied = append(w.denied, r)
		}
	})
	return w
}

// call calls a provider as the run does, and returns the response and its body.
func (w *modelLimitedEnd) call(t *testing.T, method, path, body string) (*http.Response, string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+runToken)
	resp, err := webtest.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(answer)
}

// TestModelAndFeaturesAreChecked: a run can call only its own models, and no denied features, in any API.
func TestModelAndFeaturesAreChecked(t *testing.T) {
	t.Parallel()
	const claude, gpt, gemini = "/llm/anthropic/v1/messages", "/llm/openai/v1/responses", "/llm/gemini/v1beta/models/"
	tests := map[string]struct {
		method, path, body string
		says               string // empty: it reaches the provider
	}{
		"its own":                {http.MethodPost, claude, `{"model":"small-1","messages":[]}`, ""},
		"a dated edition":        {http.MethodPost, claude + "/count_tokens", `{"model":"small-1-20260115"}`, ""},
		"a helper":               {http.MethodPost, gpt, `{"model":"tiny"}`, ""},
		"in the path":            {http.MethodPost, gemini + "small-1:generateContent", `{}`, ""},
		"the list of models":     {http.MethodGet, "/llm/openai/v1/models", "", ""},
		"another":                {http.MethodPost, claude, `{"model":"dear"}`, `{"error":{"message":"errand: this run may call small-1, tiny, not dear","type":"permission_error"}`},
		"another, OpenAI":        {http.MethodPost, gpt, `{"model":"dear"}`, `"code":"permission_error"`},
		"another, in the path":   {http.MethodPost, gemini + "dear:streamGenerateContent", `{"model":"small-1"}`, `"status":"PERMISSION_DENIED"`},
		"two":                    {http.MethodPost, claude, `{"model":"small-1","model":"dear"}`, "the body has 2 keys for it"},
		"no JSON":                {http.MethodPost, claude, `model=dear`, "its body is not JSON"},
		"a tool of the provider": {method: http.MethodPost, path: claude, body: `{"model":"small-1","mcp_servers":[{"url":"https://x.example"}]}`, says: "mcp_servers of the provider is not allowed"},
		"content by its address": {method: http.MethodPost, path: claude, body: `{"model":"small-1","messages":[{"content":[{"type":"image","source":{"type":"url","url":"https://x.example"}}]}]}`, says: "url of the provider is not allowed unless the operator sets models.anthropic.web_tools"},
		"stored content":         {method: http.MethodPost, path: gpt, body: `{"model":"tiny","previous_response_id":"resp_1"}`, says: "stored in the provider's account, as previous_response_id does"},
		"a background answer":    {method: http.MethodPost, path: gpt, body: `{"model":"tiny","background":true}`, says: "where it is counted; background is not allowed"},
		"a surcharge":            {method: http.MethodPost, path: claude, body: `{"model":"small-1","speed":"fast"}`, says: "standard price; speed fast is not allowed"},
		"more than anybody has":  {http.MethodPost, claude, `{"model":"small-1","system":"` + strings.Repeat("x", 33<<20) + `"}`, "may have at most 33554432 bytes"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newModelLimitedEnd(t, AllowedModels{Names: []string{"small-1", "tiny"}})
			resp, answer := w.call(t, test.method, test.path, test.body)
			w.mu.Lock()
			defer w.mu.Unlock()
			if test.says == "" {
				if resp.StatusCode != http.StatusOK || len(w.received) != 1 || w.received[0] != test.body || len(w.denied) != 0 {
					t.Errorf("got status %d %s; the provider received %q; denied %v", resp.StatusCode, answer, w.received, w.denied)
				}
				return
			}
			if resp.StatusCode != http.StatusForbidden || !strings.Contains(answer, test.says) {
				t.Errorf("status %d: %s; want %s", resp.StatusCode, answer, test.says)
			}
			if len(w.received) != 0 {
				t.Errorf("got request of the provider %.200q", w.received)
			}
			if large := strings.Contains(test.says, "bytes"); large != (len(w.denied) == 0) {
				t.Errorf("denied: got %+v", w.denied)
			}
		})
	}
}

// TestModelIsPending: while the model of a run is not stored yet, other calls have to be retried; a run without a model
// may call any.
func TestModelIsPending(t *testing.T) {
	t.Parallel()
	w := newModelLimitedEnd(t, AllowedModels{Names: []string{"small-1"}, Pending: true})
	resp, answer := w.call(t, http.MethodPost, "/llm/anthropic/v1/messages", `{"model":"other"}`)
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "1" || len(w.received) != 0 {
		t.Errorf("got status %d: %s; the provider received %q", resp.StatusCode, answer, w.received)
	}
	if resp, answer = w.call(t, http.MethodPost, "/llm/anthropic/v1/messages", `{"model":"small-1"}`); resp.StatusCode != http.StatusOK {
		t.Errorf("its own model: got status %d: %s", resp.StatusCode, answer)
	}
	w = newModelLimitedEnd(t, AllowedModels{})
	if resp, answer = w.call(t, http.MethodPost, "/llm/anthropic/v1/messages", `{"model":"whatever"}`); resp.StatusCode != http.StatusOK {
		t.Errorf("a run without a model: got status %d: %s", resp.StatusCode, answer)
	}
}

// TestWebTools: tools of the provider, by which a VM could reach denied hosts, are denied unless the operator allows
// them.
func TestWebTools(t *testing.T) {
	t.Parallel()
	const body = `{"model":"any","tools":[{"type":"web_fetch_20250910","name":"web_fetch"}]}`
	for _, allowed := range []bool{false, true} {
		task, noted := someTask(), make(chan egress.Request, 1)
		w := newVMEnd(t, task, func(c *Config) {
			up := c.Providers["anthropic"]
			up.WebTools = allowed
			c.Providers["anthropic"] = up
			c.Denied = func(_ *state.Task, r egress.Request) { noted <- r }
		})
		h := &modelLimitedEnd{vmEnd: w}
		resp, answer := h.call(t, http.MethodPost, modelPath, body)
		if allowed {
			if resp.StatusCode != http.StatusOK || w.Count() != 1 {
				t.Errorf("allowed: got status %d: %s", resp.StatusCode, answer)
			}
			continue
		}
		if resp.StatusCode != http.StatusForbidden || w.Count() != 0 || !strings.Contains(answer, "list of hosts; web_fetch_20250910 of") {
			t.Errorf("got status %d: %s", resp.StatusCode, answer)
		}
		if r := <-noted; r.Host != "tool web_fetch_20250910" || r.Allowed {
			t.Errorf("denied: got %+v", r)
		}
	}
}

// TestModelOfTheRun: without configured models a run can only call the model that it was started with.
func TestModelOfTheRun(t *testing.T) {
	t.Parallel()
	task := someTask()
	task.Run.Model = "small-1"
	w := newVMEnd(t, task, nil)
	if status, answer := send(t, webtest.Client(), http.MethodPost, w.url+modelPath, gatewaytest.Bearer(runToken)); status != http.StatusForbidden || w.Count() != 0 {
		t.Errorf("got status %d: %s", status, answer)
	}
}

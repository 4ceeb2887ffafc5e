package gateway

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/modelapi"
)

// newHeaderEnd returns the end of a VM whose provider answers with the header.
func newHeaderEnd(t *testing.T, api modelapi.API, key string, header http.Header) (w *vmEnd, got func() *http.Request) {
	t.Helper()
	asked := make(chan *http.Request, 1)
	provider := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		asked <- r.Clone(context.Background())
		for name, values := range header {
			rw.Header()[name] = values
		}
		_, _ = io.WriteString(rw, "{}")
	}))
	t.Cleanup(provider.Close)
	w = newVMEnd(t, someTask(), func(c *Config) {
		c.Providers = map[string]Provider{"m": {BaseURL: provider.URL, Key: modelKey, Header: key, API: api}}
	})
	return w, func() *http.Request { return <-asked }
}

// calls makes a call with a header and returns the answer, read to its end.
func calls(t *testing.T, w *vmEnd, path string, header map[string]string) *http.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+"/llm/m"+path, strings.NewReader(`{"model":"any"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+runToken)
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := webtest.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("got status %d", resp.StatusCode)
	}
	return resp
}

// TestRequestHeaders: the provider gets what programs send about themselves, and nothing by which a VM could choose who
// pays, the server behind a proxy, or the parts of an answer.
func TestRequestHeaders(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		api    modelapi.API
		key    string // the header of ours
		path   string
		sent   map[string]string
		passes []string
		query  string
	}{
		"Claude Code": {
			modelapi.Anthropic, "X-Api-Key", "/v1/messages?beta=true",
			map[string]string{
				"Anthropic-Version": "2023-06-01", "Anthropic-Beta": "claude-code-20250219", "X-App": "cli", "X-Claude-Code-Session-Id": "0d5c", "X-Stainless-Retry-Count": "0",
				"X-Portkey-Custom-Host": "x", "X-Litellm-Api-Base": "x", "Anthropic-Workspace-Id": "x", "Cookie": "a=b", "X-Forwarded-For": "10.0.0.1", "Content-Encoding": "identity",
			},
			[]string{"Anthropic-Beta", "Anthropic-Version", "X-App", "X-Claude-Code-Session-Id", "X-Stainless-Retry-Count"}, "beta=true",
		},
		"Codex": {
			modelapi.OpenAI, "Authorization", "/v1/responses",
			map[string]string{
				"Originator": "codex_exec", "Session-Id": "1", "Thread-Id": "1", "X-Client-Request-Id": "1", "X-Codex-Turn-Metadata": "{}", "Accept": "text/event-stream",
				"Openai-Organization": "org-x", "Openai-Project": "proj_x", "Chatgpt-Account-Id": "x",
			},
			[]string{"Accept", "Originator", "Session-Id", "Thread-Id", "X-Client-Request-Id", "X-Codex-Turn-Metadata"}, "",
		},
		"Gemini CLI": {
			modelapi.Gemini, "X-Goog-Api-Key", "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse&key=x&fields=candidates&%24userProject=x&access_token=x",
			map[string]string{"X-Goog-Api-Client": "google-genai-sdk", "X-Goog-User-Project": "x", "X-Http-Method-Override": "GET", "X-Goog-Fieldmask": "candidates"},
			[]string{"X-Goog-Api-Client"}, "alt=sse",
		},
		"in another form": {modelapi.Gemini, "X-Goog-Api-Key", "/v1beta/models/gemini-3-pro:generateContent?alt=proto", nil, nil, ""},
		"a key of another name": {
			modelapi.OpenAI, "Api-Key", "/v1/responses?api-version=2026-01-01", map[string]string{"Api-Key": "the VM's"}, nil, "api-version=2026-01-01",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, got := newHeaderEnd(t, test.api, test.key, nil)
			calls(t, w, test.path, test.sent)
			r := got()
			if key := strings.TrimPrefix(r.Header.Get(test.key), "Bearer "); key != modelKey {
				t.Errorf("got key %q", key)
			}
			if kind := r.Header.Get("Content-Type"); kind != "application/json" {
				t.Errorf("got content type %q", kind)
			}
			if r.URL.RawQuery != test.query {
				t.Errorf("query %q, want %q", r.URL.RawQuery, test.query)
			}
			want := http.Header{}
			for _, name := range test.passes {
				want.Set(name, test.sent[name])
			}
			for _, always := range []string{test.key, "Content-Type", "Content-Length", "Accept-Encoding", "User-Agent"} {
				r.Header.Del(always)
			}
			if diff := cmp.Diff(want, r.Header); diff != "" {
				t.Errorf("header at the provider (-want +got):\n%s", diff)
			}
		})
	}
}

// TestResponseHeaders: programs get rate limits and when to retry, and nothing about the account.
func TestResponseHeaders(t *testing.T) {
	t.Parallel()
	want := http.Header{
		"Content-Type": {"application/json"}, "Retry-After": {"3"}, "X-Should-Retry": {"true"}, "Request-Id": {"req_1"}, "X-Request-Id": {"req_2"},
		"Anthropic-Ratelimit-Requests-Remaining": {"1"}, "X-Ratelimit-Reset-Tokens": {"1s"},
	}
	said := want.Clone()
	for _, name := range []string{"Set-Cookie", "Openai-Organization", "Openai-Project", "Anthropic-Organization-Id", "X-Codex-Plan-Type", "Server", "Via", "Alt-Svc"} {
		said.Set(name, "the operator")
	}
	w, got := newHeaderEnd(t, modelapi.Anthropic, "X-Api-Key", said)
	resp := calls(t, w, "/v1/messages", nil)
	got()
	resp.Header.Del("Date")
	resp.Header.Del("Content-Length")
	if diff := cmp.Diff(want, resp.Header); diff != "" {
		t.Errorf("header at the VM (-want +got):\n%s", diff)
	}
}

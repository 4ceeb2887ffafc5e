package gateway

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/forward"
	"github.com/errand-bot/errand/internal/gateway/gatewaytest"
	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

const (
	modelKey = "sk-the-real-key"
	runToken = "errand-the-token-of-the-run"
	run      = "7-1-4"
)

// tasks returns one task.
type tasks struct{ task *state.Task }

func (f tasks) Task(context.Context, state.TaskKey) (*state.Task, error) { return f.task, nil }

func someTask() *state.Task {
	return &state.Task{
		Key: state.TaskKey{Repo: 7, Issue: 1}, TaskIssue: state.TaskIssue{Repo: state.Repo{ID: 7, Owner: "acme", Name: "shop"}},
		TaskRuns: state.TaskRuns{Run: &state.Run{ID: run, Kind: state.RunImplement, State: state.RunActive, RunLaunch: state.RunLaunch{VM: "errand-7-1-1"}}},
	}
}

// vmEnd is the gateway as one VM reaches it, before a model.
type vmEnd struct {
	gateway *Gateway
	vm      http.Handler
	url     string // of vm
	close   func() // closes vm's server after its calls have ended

	*gatewaytest.Upstream // the model's provider
}

func newVMEnd(t *testing.T, task *state.Task, change func(*Config)) *vmEnd {
	t.Helper()
	w := &vmEnd{Upstream: gatewaytest.NewUpstream(t)}
	cfg := Config{
		Tasks: tasks{task: task}, Log: zerolog.Nop(), Ledger: &ledger{},
		Providers: map[string]Provider{
			"anthropic": {BaseURL: w.URL + "/anthropic", Key: modelKey, Header: "X-Api-Key", API: modelapi.Anthropic},
			"openai":    {BaseURL: w.URL + "/openai", Key: modelKey, Header: "Authorization", API: modelapi.OpenAI},
			"gone":      {BaseURL: "http://127.0.0.1:1", Key: modelKey, Header: "X-Api-Key", API: modelapi.Anthropic},
		},
	}
	if change != nil {
		change(&cfg)
	}
	cfg.Transport = forward.NewTransport(cfg.IdleTimeout)
	w.gateway = New(cfg)
	memory := NewBodyMemory()
	w.vm = http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		task, err := cfg.Tasks.Task(r.Context(), someTask().Key)
		if err != nil {
			t.Error(err)
			return
		}
		w.gateway.Serve(rw, r, task, memory)
	})
	end := httptest.NewServer(w.vm)
	t.Cleanup(end.Close)
	w.url, w.close = end.URL, end.Close
	return w
}

// send sends a request as a program on the VM does.
func send(t *testing.T, client *http.Client, method, url string, headers map[string]string) (int, string) {
	t.Helper()
	return sendBody(t, client, method, url, `"body;"`, headers)
}

const modelPath = "/llm/anthropic/v1/messages"

// TestModelCallsAreForwarded: calls are forwarded with errand's key, and without anything that the VM sent to
// authenticate itself.
func TestModelCallsAreForwarded(t *testing.T) {
	t.Parallel()
	w := newVMEnd(t, someTask(), nil)
	const token = runToken
	headers := gatewaytest.Bearer(token)
	for _, name := range []string{"X-Api-Key", "X-Goog-Api-Key", "Cookie"} {
		headers[name] = token
	}
	headers["Anthropic-Version"] = "2023-06-01"
	for name, test := range map[string]struct{ path, header, want, at string }{
		"a key":    {"/llm/anthropic/v1/messages?beta=true&key=" + token, "X-Api-Key", modelKey, "/anthropic/v1/messages?beta=true"},
		"a bearer": {"/llm/openai/v1/responses", "Authorization", "Bearer " + modelKey, "/openai/v1/responses"},
	} {
		status, body := send(t, webtest.Client(), http.MethodPost, w.url+test.path, headers)
		got := w.Last()
		if status != http.StatusOK || body != `"body;"from upstream` || got == nil {
			t.Fatalf("%s: status %d: %s", name, status, body)
		}
		if got.Header.Get(test.header) != test.want || got.URL.String() != test.at || got.Header.Get("Anthropic-Version") == "" {
			t.Errorf("%s: got request of the provider %s %v", name, got.URL, got.Header)
		}
		if all := fmt.Sprint(got.URL, got.Header); strings.Contains(all, token) {
			t.Errorf("%s: the VM's token was forwarded: %s", name, all)
		}
	}
}

// TestStreamsAreNotBuffered: each part of an answer arrives when the model sends it.
func TestStreamsAreNotBuffered(t *testing.T) {
	t.Parallel()
	heard := make(chan struct{})
	model := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(rw, "data: one\n")
		_ = http.NewResponseController(rw).Flush()
		select {
		case <-heard:
			_, _ = io.WriteString(rw, "data: two\n")
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(model.Close)
	w := newVMEnd(t, someTask(), func(c *Config) {
		c.Providers = map[string]Provider{"anthropic": {BaseURL: model.URL, Key: modelKey, Header: "X-Api-Key", API: modelapi.Anthropic}}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+modelPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", runToken)
	resp, err := webtest.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	if !lines.Scan() || lines.Text() != "data: one" {
		t.Fatalf("got first line %q: %v", lines.Text(), lines.Err())
	}
	close(heard)
	if !lines.Scan() || lines.Text() != "data: two" {
		t.Fatalf("got second line %q: %v", lines.Text(), lines.Err())
	}
}

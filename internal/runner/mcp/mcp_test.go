package mcp_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/errand-bot/errand/internal/callback/tools"
	"github.com/errand-bot/errand/internal/runner/mcp"
)

// tether simulates the orchestrator behind the tether's end.
type tether struct {
	answers []func(http.ResponseWriter)

	mu    sync.Mutex
	calls []tools.Call
	paths []string
	auth  []string
}

func (h *tether) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	data, _ := io.ReadAll(r.Body)
	var c tools.Call
	_ = json.Unmarshal(data, &c)
	h.calls, h.paths, h.auth = append(h.calls, c), append(h.paths, r.Method+" "+r.URL.Path), append(h.auth, r.Header.Get("Authorization"))
	h.answers[min(len(h.calls), len(h.answers))-1](w)
}

func status(code int) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { http.Error(w, "not now", code) }
}

func cut(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

func answer(a tools.Answer) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) { _ = json.NewEncoder(w).Encode(a) }
}

// connect starts the server before a tether and connects to it as an agent's CLI does.
func connect(t *testing.T, h *tether) *sdk.ClientSession {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("errand-token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ours, theirs := sdk.NewInMemoryTransports()
	served := make(chan error, 1)
	go func() {
		served <- mcp.Serve(t.Context(), mcp.Config{URL: srv.URL + "/", TokenFile: file, Version: "test", Patience: 20 * time.Second, Pause: time.Millisecond}, ours)
	}()
	s, err := sdk.NewClient(&sdk.Implementation{Name: "test"}, nil).Connect(t.Context(), theirs, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = s.Close()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return s
}

func call(t *testing.T, s *sdk.ClientSession, tool string, arguments map[string]any) (string, bool) {
	t.Helper()
	res, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		t.Fatal(err)
	}
	return res.Content[0].(*sdk.TextContent).Text, res.IsError
}

// TestTools: an agent's CLI sees the tools with their parameters.
func TestTools(t *testing.T) {
	t.Parallel()
	s := connect(t, &tether{})
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		schema, err := json.Marshal(tool.InputSchema)
		if err != nil || tool.Description == "" || !strings.Contains(string(schema), `"properties"`) {
			t.Errorf("%s: %s (%v)", tool.Name, schema, err)
		}
	}
	slices.Sort(names)
	want := tools.Names()
	slices.Sort(want)
	if !slices.Equal(names, want) {
		t.Errorf("tools %v, want %v", names, want)
	}
}

// TestCallIsRepeated: a call is sent again with the same id while the tether is interrupted or errand is unavailable.
func TestCallIsRepeated(t *testing.T) {
	t.Parallel()
	h := &tether{answers: []func(http.ResponseWriter){cut, status(http.StatusServiceUnavailable), status(http.StatusBadGateway), answer(tools.Answer{Text: "Kept."})}}
	s := connect(t, h)
	if text, bad := call(t, s, tools.Note, map[string]any{"kind": "fact", "text": "x"}); text != "Kept." || bad {
		t.Errorf("%q, error %v", text, bad)
	}
	if n := len(h.calls); n != 4 {
		t.Fatalf("%d calls", n)
	}
	for i, c := range h.calls {
		if c.ID != h.calls[0].ID || len(c.ID) < 8 || h.paths[i] != "POST /callback/note" || h.auth[i] != "Bearer errand-token" || !strings.Contains(string(c.Arguments), `"text":"x"`) {
			t.Errorf("call %d: %+v %s %s", i, c, h.paths[i], h.auth[i])
		}
	}
	call(t, s, tools.Note, map[string]any{"kind": "fact", "text": "x"})
	if last := h.calls[len(h.calls)-1]; last.ID == h.calls[0].ID {
		t.Error("another call has the same id")
	}
}

// TestRefusals: a refusal by errand becomes a tool error with its text, and is not retried.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter)
		want   string
	}{
		"refused":      {answer(tools.Answer{Text: "too many", Refused: true}), "too many"},
		"unauthorised": {status(http.StatusUnauthorized), "401"},
		"no JSON":      {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<html>") }, "read errand's answer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &tether{answers: []func(http.ResponseWriter){c.answer}}
			if text, bad := call(t, connect(t, h), tools.Ask, map[string]any{"question": "?"}); !bad || !strings.Contains(text, c.want) {
				t.Errorf("%q, error %v", text, bad)
			}
			if len(h.calls) != 1 {
				t.Errorf("%d calls", len(h.calls))
			}
		})
	}
}

// TestTokenFile: a token that others can read is refused.
func TestTokenFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, file + "-gone"} {
		if err := mcp.Serve(t.Context(), mcp.Config{URL: "http://127.0.0.1:1", TokenFile: path}, nil); err == nil {
			t.Errorf("%s is used", path)
		}
	}
}

package tether_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/forward"
	"github.com/errand-bot/errand/internal/gateway"
	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/internal/tether"
	"github.com/errand-bot/errand/state"
)

// singleTask is a store with one task.
type singleTask struct{ task *state.Task }

func (o singleTask) Task(context.Context, state.TaskKey) (*state.Task, error) { return o.task, nil }

// world is a handler before upstreams that return what they received.
type world struct {
	handler *tether.Handler
	peer    tether.Peer
	task    *state.Task
}

func newWorld(t *testing.T) *world {
	t.Helper()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		_, _ = io.WriteString(w, strings.Join([]string{r.Method, r.URL.RequestURI(), r.Header.Get("X-Api-Key"), password, r.Header.Get("Cookie")}, " "))
	}))
	t.Cleanup(up.Close)
	w := &world{peer: tether.Peer{VM: "vm-1", Task: state.TaskKey{Repo: 7, Issue: 1}}}
	w.task = &state.Task{Key: w.peer.Task, TaskIssue: state.TaskIssue{Repo: state.Repo{Owner: "acme", Name: "slug"}}, TaskPhase: state.TaskPhase{Phase: state.PhaseImplementing},
		TaskRuns: state.TaskRuns{Run: &state.Run{ID: "7-1-2", Kind: state.RunImplement, State: state.RunActive, RunLaunch: state.RunLaunch{VM: "vm-1"}}}}
	cfg := configs{Config: tether.Config{Tasks: singleTask{w.task}, Key: []byte("0123456789abcdef0123456789abcdef"), Log: zerolog.Nop()}}
	cfg.gateway.Providers = map[string]gateway.Provider{"anthropic": {BaseURL: up.URL + "/team/a", Key: "model-key", Header: "X-Api-Key", API: modelapi.Anthropic}}
	cfg.git.Repository = func(context.Context, *state.Task) (string, string, error) {
		return up.URL + "/acme/slug.git", "git-token", nil
	}
	w.handler = cfg.handler(forward.NewTransport(0))
	return w
}

// ask sends a request with a token, and returns the status and the answer.
func (w *world) ask(method, target, token string) (int, string) {
	r := httptest.NewRequest(method, target, strings.NewReader(""))
	r.Header.Set("Authorization", "Bearer "+token)
	r.Header.Set("Cookie", "from=vm")
	rec := httptest.NewRecorder()
	w.handler.For(w.peer).ServeHTTP(rec, r)
	return rec.Code, strings.TrimSpace(rec.Body.String())
}

// TestTokensLimitWhatAVMReaches: what a VM reaches with each token, and what arrives there.
func TestTokensLimitWhatAVMReaches(t *testing.T) {
	t.Parallel()
	const model, refs = "/llm/anthropic/v1/messages", "/git/acme/slug/info/refs?service=git-upload-pack"
	for name, c := range map[string]struct {
		method, target string
		token          func(*world) string // nil: of the active run
		change         func(*state.Task)
		status         int
		arrives        string
	}{
		"the model":                {method: "POST", target: model, status: 200, arrives: "POST /team/a/v1/messages model-key  "},
		"another method":           {target: model, status: 403},
		"another provider":         {target: "/llm/openai/v1/models", status: 404},
		"out of the base":          {target: "/llm/anthropic/..%2f..%2fteam/b/v1", status: 400},
		"out of the base, escaped": {target: "/llm/anthropic/%2e%2e/%2e%2e/admin", status: 400},
		"no token":                 {target: model, token: func(*world) string { return "" }, status: 401},
		"an earlier run":           {target: model, token: func(w *world) string { return w.handler.RunToken("7-1-1") }, status: 401},
		"the runner has no model":  {target: model, token: func(w *world) string { return w.handler.VMToken("vm-1") }, status: 401},
		"a run that was stopped":   {target: model, change: func(t *state.Task) { t.Run.State = state.RunStopping }, status: 401},
		"checks":                   {target: model, change: func(t *state.Task) { t.Run.Kind = state.RunCheck }, status: 401},
		"a run on another VM":      {target: model, change: func(t *state.Task) { t.Run.VM = "vm-2" }, status: 401},
		"between runs":             {target: model, change: func(t *state.Task) { t.Run = nil }, status: 401},
		"the repository":           {target: refs, status: 200, arrives: "GET /acme/slug.git/info/refs?service=git-upload-pack  git-token "},
		"the repository for the runner": {target: refs, token: func(w *world) string { return w.handler.VMToken("vm-1") },
			change: func(t *state.Task) { t.Run = nil }, status: 200, arrives: "GET /acme/slug.git/info/refs?service=git-upload-pack  git-token "},
		"another VM's token":        {target: refs, token: func(w *world) string { return w.handler.VMToken("vm-2") }, status: 401},
		"a second service":          {target: refs + "&service=git-receive-pack", status: 200, arrives: "GET /acme/slug.git/info/refs?service=git-upload-pack  git-token "},
		"a push":                    {target: "/git/acme/slug/info/refs?service=git-receive-pack", status: 403},
		"a pack for a push":         {method: "POST", target: "/git/acme/slug/git-receive-pack", status: 403},
		"a fetch":                   {method: "POST", target: "/git/acme/slug.git/git-upload-pack?x=y", status: 200, arrives: "POST /acme/slug.git/git-upload-pack  git-token "},
		"another repository":        {target: "/git/acme/other/info/refs?service=git-upload-pack", status: 403},
		"another repository, by ..": {target: "/git/acme/slug/..%2fother/info/refs?service=git-upload-pack", status: 400},
		"its files":                 {target: "/git/acme/slug/HEAD", status: 403},
		"anything else":             {target: "/admin", status: 404},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			token := w.handler.RunToken(w.task.Run.ID)
			if c.token != nil {
				token = c.token(w)
			}
			if c.change != nil {
				c.change(w.task)
			}
			if c.method == "" {
				c.method = http.MethodGet
			}
			status, body := w.ask(c.method, c.target, token)
			if status != c.status {
				t.Fatalf("status %d, want %d: %s", status, c.status, body)
			}
			if c.status == http.StatusOK {
				if diff := cmp.Diff(strings.TrimSpace(c.arrives), body); diff != "" {
					t.Errorf("received upstream (-want +got):\n%s", diff)
				}
			}
		})
	}
}

package tether_test

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/forward"
	"github.com/errand-bot/errand/internal/gateway"
	"github.com/errand-bot/errand/internal/gateway/gatewaytest"
	"github.com/errand-bot/errand/internal/gitproxy"
	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/internal/tether"
	"github.com/errand-bot/errand/state"
)

const (
	modelKey  = "sk-the-real-key"
	readToken = "ghs_the-read-token"
	vm        = "errand-7-1-1"
	run       = "7-1-4"
)

// tasks returns one task.
type tasks struct {
	task *state.Task
	err  error
}

func (f tasks) Task(_ context.Context, key state.TaskKey) (*state.Task, error) {
	if f.task == nil || f.task.Key != key {
		return nil, f.err
	}
	return f.task, f.err
}

func someTask() *state.Task {
	return &state.Task{
		Key: state.TaskKey{Repo: 7, Issue: 1}, TaskIssue: state.TaskIssue{Repo: state.Repo{ID: 7, Owner: "acme", Name: "shop"}},
		TaskRuns: state.TaskRuns{Run: &state.Run{ID: run, Kind: state.RunImplement, State: state.RunActive, RunLaunch: state.RunLaunch{VM: vm}}},
	}
}

// end is the handler of one VM, before servers that stand for a model and for GitHub.
type end struct {
	handler *tether.Handler
	url     string // of the VM's end

	*gatewaytest.Upstream // the model and GitHub
}

// configs are the configurations of a handler, its gateway and its proxy.
type configs struct {
	tether.Config
	gateway gateway.Config
	git     gitproxy.Config
}

// handler returns a handler. It sets what all handlers need.
func (c configs) handler(transport http.RoundTripper) *tether.Handler {
	c.gateway.Tasks, c.gateway.Ledger, c.gateway.Transport, c.gateway.Log = c.Tasks, noLedger{}, transport, c.Log
	c.git.Transport, c.git.Log = transport, c.Log
	c.Gateway, c.Git = gateway.New(c.gateway), gitproxy.New(c.git)
	return tether.New(c.Config)
}

// noLedger is a ledger without caps that stores nothing.
type noLedger struct{}

func (noLedger) CapReached(context.Context, state.Money, state.Money, bool) (*state.Waiting, error) {
	return nil, nil
}

func (noLedger) Left(context.Context, state.Money, bool) (state.Remaining, error) {
	return state.Unlimited(), nil
}

func (noLedger) Record(context.Context, gateway.UsageRecord) error {
	return nil
}

func newEnd(t *testing.T, task *state.Task, change func(*configs)) *end {
	t.Helper()
	w := &end{Upstream: gatewaytest.NewUpstream(t)}
	cfg := configs{Config: tether.Config{Tasks: tasks{task: task}, Key: []byte("a secret of the deployment"), Log: zerolog.Nop()}}
	cfg.gateway.Providers = map[string]gateway.Provider{
		"anthropic": {BaseURL: w.URL + "/anthropic", Key: modelKey, Header: "X-Api-Key", API: modelapi.Anthropic},
		"openai":    {BaseURL: w.URL + "/openai", Key: modelKey, Header: "Authorization", API: modelapi.OpenAI},
		"gone":      {BaseURL: "http://127.0.0.1:1", Key: modelKey, Header: "X-Api-Key", API: modelapi.Anthropic},
	}
	cfg.git.Repository = func(context.Context, *state.Task) (string, string, error) {
		return w.URL + "/acme/shop.git", readToken, nil
	}
	if change != nil {
		change(&cfg)
	}
	w.handler = cfg.handler(forward.NewTransport(0))
	end := httptest.NewServer(w.handler.For(tether.Peer{VM: vm, Task: state.TaskKey{Repo: 7, Issue: 1}}))
	t.Cleanup(end.Close)
	w.url = end.URL
	return w
}

// ask sends a request as a program on the VM does.
func ask(t *testing.T, client *http.Client, method, url string, headers map[string]string) (int, string) {
	t.Helper()
	return gatewaytest.Send(t, client, gatewaytest.Request{Method: method, URL: url, Body: `"body;"`, Header: headers})
}

func basic(token string) map[string]string {
	return map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte("errand:"+token))}
}

const (
	modelPath = "/llm/anthropic/v1/messages"
	fetchPath = "/git/acme/shop.git/info/refs?service=git-upload-pack"
)

// TestTokens: what each token gives access to, by the state of the task.
func TestTokens(t *testing.T) {
	t.Parallel()
	plain := tether.New(tether.Config{Key: []byte("a secret of the deployment")})
	before := tether.New(tether.Config{Key: []byte("the previous secret")})
	runToken, vmToken := plain.RunToken(run), plain.VMToken(vm)
	tests := map[string]struct {
		headers    map[string]string
		change     func(*state.Task)
		model, git int
	}{
		"the run's":               {gatewaytest.Bearer(runToken), nil, 200, 200},
		"the run's, as a key":     {map[string]string{"X-Api-Key": runToken}, nil, 200, 200},
		"the run's, as Google's":  {map[string]string{"X-Goog-Api-Key": runToken}, nil, 200, 200},
		"the run's, as git's":     {basic(runToken), nil, 200, 200},
		"the VM's":                {basic(vmToken), nil, 401, 200},
		"none":                    {nil, nil, 401, 401},
		"empty":                   {gatewaytest.Bearer(""), nil, 401, 401},
		"another":                 {gatewaytest.Bearer("errand-0000"), nil, 401, 401},
		"another VM's":            {gatewaytest.Bearer(plain.VMToken("errand-7-2-1")), nil, 401, 401},
		"an earlier run's":        {gatewaytest.Bearer(plain.RunToken("7-1-3")), nil, 401, 401},
		"the model's own key":     {gatewaytest.Bearer(modelKey), nil, 401, 401},
		"of another deployment":   {gatewaytest.Bearer(tether.New(tether.Config{Key: []byte("x")}).RunToken(run)), nil, 401, 401},
		"of the previous key":     {gatewaytest.Bearer(before.RunToken(run)), nil, 200, 200},
		"the VM's, of that key":   {basic(before.VMToken(vm)), nil, 401, 200},
		"another run's, of it":    {gatewaytest.Bearer(before.RunToken("7-1-3")), nil, 401, 401},
		"of an empty key":         {gatewaytest.Bearer(tether.New(tether.Config{}).RunToken(run)), nil, 401, 401},
		"no run":                  {gatewaytest.Bearer(runToken), func(t *state.Task) { t.Run = nil }, 401, 401},
		"no run, the VM's":        {gatewaytest.Bearer(vmToken), func(t *state.Task) { t.Run = nil }, 401, 200},
		"a run on another VM":     {gatewaytest.Bearer(runToken), func(t *state.Task) { t.Run.VM = "errand-7-1-2" }, 401, 401},
		"a run that is launching": {gatewaytest.Bearer(runToken), func(t *state.Task) { t.Run.VM, t.Run.State = "", state.RunLaunching }, 200, 200},
		"a run that is stopping":  {gatewaytest.Bearer(runToken), func(t *state.Task) { t.Run.State = state.RunStopping }, 401, 200},
		"checks":                  {gatewaytest.Bearer(runToken), func(t *state.Task) { t.Run.Kind = state.RunCheck }, 401, 200},
		"another task":            {gatewaytest.Bearer(runToken), func(t *state.Task) { t.Key.Issue = 2 }, 503, 503},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := someTask()
			if test.change != nil {
				test.change(task)
			}
			w := newEnd(t, task, func(c *configs) { c.PreviousKey = []byte("the previous secret") })
			for _, try := range []struct {
				method, path string
				want         int
			}{{http.MethodPost, modelPath, test.model}, {http.MethodGet, fetchPath, test.git}} {
				before := w.Count()
				status, body := ask(t, webtest.Client(), try.method, w.url+try.path, test.headers)
				if status != try.want || (w.Count() > before) != (try.want == 200) {
					t.Errorf("%s: status %d, want %d: %s", try.path, status, try.want, body)
				}
			}
		})
	}
}

func TestStoreFails(t *testing.T) {
	t.Parallel()
	w := newEnd(t, nil, func(c *configs) { c.Tasks = tasks{err: errors.New("no disk")} })
	status, body := ask(t, webtest.Client(), http.MethodPost, w.url+modelPath, gatewaytest.Bearer(w.handler.RunToken(run)))
	if status != http.StatusServiceUnavailable || strings.Contains(body, "disk") {
		t.Errorf("status %d: %s", status, body)
	}
}

func TestNothingElse(t *testing.T) {
	t.Parallel()
	w := newEnd(t, someTask(), nil)
	for path, want := range map[string]int{
		"/":                               http.StatusNotFound,
		"/callback":                       http.StatusNotFound,
		"/llm":                            http.StatusNotFound,
		"/llm/unknown/v1/messages":        http.StatusNotFound,
		"/llm/gone/v1/messages":           http.StatusBadGateway,
		"/llm/anthropic/v1/files":         http.StatusForbidden,
		"/llm/anthropic/v1/responses":     http.StatusForbidden,
		"/llm/anthropic/%2e%2e/%2e%2e/x":  http.StatusBadRequest,
		"/llm/anthropic/..%2f..%2fx":      http.StatusBadRequest,
		"/git/acme/shop.git/%2e%2e/other": http.StatusBadRequest,
	} {
		status, body := ask(t, webtest.Client(), http.MethodPost, w.url+path, gatewaytest.Bearer(w.handler.RunToken(run)))
		if status != want || strings.Contains(body, "127.0.0.1:1") {
			t.Errorf("%s: status %d, want %d: %s", path, status, want, body)
		}
	}
	if got := w.Last(); got != nil {
		t.Errorf("upstream received %s", got.URL)
	}
}

// TestRequestsOfAVMAreLimited: a VM may have a limited number of requests of all kinds in flight; the next one is denied
// temporarily, in the form that its program understands.
func TestRequestsOfAVMAreLimited(t *testing.T) {
	t.Parallel()
	const most = 64
	came, let := make(chan struct{}, most+1), make(chan struct{})
	forge := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		came <- struct{}{}
		<-let
	}))
	t.Cleanup(forge.Close)
	w := newEnd(t, someTask(), func(c *configs) {
		c.git.Repository = func(context.Context, *state.Task) (string, string, error) {
			return forge.URL + "/x.git", readToken, nil
		}
	})
	token := gatewaytest.Bearer(w.handler.RunToken(run))
	var wait sync.WaitGroup
	for range most {
		wait.Go(func() {
			if status, body := ask(t, webtest.Client(), http.MethodGet, w.url+fetchPath, token); status != http.StatusOK {
				t.Errorf("status %d: %s", status, body)
			}
		})
	}
	for range most {
		<-came
	}
	for path, says := range map[string]string{modelPath: `"type":"rate_limit_error"`, fetchPath: "errand: a VM may have at most 64 requests"} {
		status, body := ask(t, webtest.Client(), http.MethodPost, w.url+path, token)
		if status != http.StatusTooManyRequests || !strings.Contains(body, says) {
			t.Errorf("%s: status %d: %s", path, status, body)
		}
	}
	close(let)
	wait.Wait()
	if status, body := ask(t, webtest.Client(), http.MethodGet, w.url+fetchPath, token); status != http.StatusOK {
		t.Errorf("afterwards: status %d: %s", status, body)
	}
}

// FuzzPaths: of all paths that a VM can request, only those of the model and of fetches of the task's repository are forwarded.
func FuzzPaths(f *testing.F) {
	for _, path := range []string{modelPath, fetchPath, "/git/acme/shop/../../x/y/git-upload-pack", "/llm/openai//x", "/llm/../git/acme/shop/git-upload-pack", "/git/acme/shop.git%2f..%2f"} {
		f.Add(path)
	}
	task := someTask()
	var got *url.URL
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.URL }))
	f.Cleanup(upstream.Close)
	cfg := configs{Config: tether.Config{Tasks: tasks{task: task}, Key: []byte("k"), Log: zerolog.Nop()}}
	cfg.gateway.Providers = map[string]gateway.Provider{"anthropic": {BaseURL: upstream.URL + "/model", Key: modelKey, Header: "X-Api-Key", API: modelapi.Anthropic}}
	cfg.git.Repository = func(context.Context, *state.Task) (string, string, error) {
		return upstream.URL + "/repo", readToken, nil
	}
	h := cfg.handler(forward.NewTransport(0))
	handler := h.For(tether.Peer{VM: vm, Task: task.Key})
	f.Fuzz(func(t *testing.T, path string) {
		u, err := url.ParseRequestURI(path)
		if err != nil || !strings.HasPrefix(path, "/") {
			return
		}
		got = nil
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.URL, r.RequestURI = u, path
		r.Header.Set("Authorization", "Bearer "+h.RunToken(run))
		handler.ServeHTTP(httptest.NewRecorder(), r)
		if got == nil {
			return
		}
		if got.Path != "/model/v1/messages" && got.Path != "/model/v1/messages/count_tokens" && got.Path != "/repo/git-upload-pack" {
			t.Errorf("%q requested %s from upstream", path, got)
		}
	})
}

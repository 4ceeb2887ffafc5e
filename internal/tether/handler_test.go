package tether_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/gateway"
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

// tasks answers with one task.
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

// end is the handler of one VM between a client and what stands for the model and for GitHub.
type end struct {
	handler *tether.Handler
	url     string // of the VM's end

	mu   sync.Mutex
	seen []*http.Request // what upstream got
}

func newEnd(t *testing.T, task *state.Task, change func(*tether.Config)) *end {
	t.Helper()
	w := &end{}
	upstream := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.seen = append(w.seen, r.Clone(context.Background()))
		w.mu.Unlock()
		_, _ = io.Copy(rw, r.Body)
		_, _ = io.WriteString(rw, "from upstream")
	}))
	t.Cleanup(upstream.Close)
	cfg := tether.Config{
		Tasks: tasks{task: task}, Key: []byte("a secret of the deployment"), Log: zerolog.Nop(), Ledger: &ledger{},
		Models: map[string]gateway.Upstream{
			"anthropic": {BaseURL: upstream.URL + "/anthropic", Key: modelKey, Header: "X-Api-Key", API: modelapi.Anthropic},
			"openai":    {BaseURL: upstream.URL + "/openai", Key: modelKey, Header: "Authorization", API: modelapi.OpenAI},
			"gone":      {BaseURL: "http://127.0.0.1:1", Key: modelKey, Header: "X-Api-Key", API: modelapi.Anthropic},
		},
		Git: func(context.Context, *state.Task) (string, string, error) {
			return upstream.URL + "/acme/shop.git", readToken, nil
		},
	}
	if change != nil {
		change(&cfg)
	}
	w.handler = tether.New(cfg)
	end := httptest.NewServer(w.handler.For(tether.Peer{VM: vm, Task: state.TaskKey{Repo: 7, Issue: 1}}))
	t.Cleanup(end.Close)
	w.url = end.URL
	return w
}

// count returns how often upstream was asked.
func (w *end) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.seen)
}

// last returns what upstream got last, nil if nothing.
func (w *end) last() *http.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.seen) == 0 {
		return nil
	}
	return w.seen[len(w.seen)-1]
}

// ask sends a request as something on the VM would.
func ask(t *testing.T, client *http.Client, method, url string, headers map[string]string) (int, string) {
	t.Helper()
	return askFor(t, client, method, url, `"body;"`, headers)
}

func bearer(token string) map[string]string {
	return map[string]string{"Authorization": "Bearer " + token}
}

func basic(token string) map[string]string {
	return map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte("errand:"+token))}
}

const (
	modelPath = "/llm/anthropic/v1/messages"
	fetchPath = "/git/acme/shop.git/info/refs?service=git-upload-pack"
)

// TestTokens: who may ask for what, by what it shows and by how the task stands.
func TestTokens(t *testing.T) {
	t.Parallel()
	plain := tether.New(tether.Config{Key: []byte("a secret of the deployment")})
	runToken, vmToken := plain.RunToken(run), plain.VMToken(vm)
	tests := map[string]struct {
		headers    map[string]string
		change     func(*state.Task)
		model, git int
	}{
		"the run's":               {bearer(runToken), nil, 200, 200},
		"the run's, as a key":     {map[string]string{"X-Api-Key": runToken}, nil, 200, 200},
		"the run's, as Google's":  {map[string]string{"X-Goog-Api-Key": runToken}, nil, 200, 200},
		"the run's, as git's":     {basic(runToken), nil, 200, 200},
		"the VM's":                {basic(vmToken), nil, 401, 200},
		"none":                    {nil, nil, 401, 401},
		"empty":                   {bearer(""), nil, 401, 401},
		"another":                 {bearer("errand-0000"), nil, 401, 401},
		"another VM's":            {bearer(plain.VMToken("errand-7-2-1")), nil, 401, 401},
		"an earlier run's":        {bearer(plain.RunToken("7-1-3")), nil, 401, 401},
		"the model's own key":     {bearer(modelKey), nil, 401, 401},
		"of another deployment":   {bearer(tether.New(tether.Config{Key: []byte("x")}).RunToken(run)), nil, 401, 401},
		"no run":                  {bearer(runToken), func(t *state.Task) { t.Run = nil }, 401, 401},
		"no run, the VM's":        {bearer(vmToken), func(t *state.Task) { t.Run = nil }, 401, 200},
		"a run on another VM":     {bearer(runToken), func(t *state.Task) { t.Run.VM = "errand-7-1-2" }, 401, 401},
		"a run that is launching": {bearer(runToken), func(t *state.Task) { t.Run.VM, t.Run.State = "", state.RunLaunching }, 200, 200},
		"a run that is stopping":  {bearer(runToken), func(t *state.Task) { t.Run.State = state.RunStopping }, 401, 200},
		"checks":                  {bearer(runToken), func(t *state.Task) { t.Run.Kind = state.RunCheck }, 401, 200},
		"another task":            {bearer(runToken), func(t *state.Task) { t.Key.Issue = 2 }, 503, 503},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := someTask()
			if test.change != nil {
				test.change(task)
			}
			w := newEnd(t, task, nil)
			for _, try := range []struct {
				method, path string
				want         int
			}{{http.MethodPost, modelPath, test.model}, {http.MethodGet, fetchPath, test.git}} {
				before := w.count()
				status, body := ask(t, http.DefaultClient, try.method, w.url+try.path, test.headers)
				if status != try.want || (w.count() > before) != (try.want == 200) {
					t.Errorf("%s: status %d, want %d: %s", try.path, status, try.want, body)
				}
			}
		})
	}
}

func TestStoreFails(t *testing.T) {
	t.Parallel()
	w := newEnd(t, nil, func(c *tether.Config) { c.Tasks = tasks{err: errors.New("no disk")} })
	status, body := ask(t, http.DefaultClient, http.MethodPost, w.url+modelPath, bearer(w.handler.RunToken(run)))
	if status != http.StatusServiceUnavailable || strings.Contains(body, "disk") {
		t.Errorf("status %d: %s", status, body)
	}
}

// TestModel: our key goes in, and nothing that the VM showed goes further.
func TestModel(t *testing.T) {
	t.Parallel()
	w := newEnd(t, someTask(), nil)
	token := w.handler.RunToken(run)
	headers := bearer(token)
	for _, name := range []string{"X-Api-Key", "X-Goog-Api-Key", "Cookie"} {
		headers[name] = token
	}
	headers["Anthropic-Version"] = "2023-06-01"
	for name, test := range map[string]struct{ path, header, want, at string }{
		"a key":    {"/llm/anthropic/v1/messages?beta=true&key=" + token, "X-Api-Key", modelKey, "/anthropic/v1/messages?beta=true"},
		"a bearer": {"/llm/openai/v1/responses", "Authorization", "Bearer " + modelKey, "/openai/v1/responses"},
	} {
		status, body := ask(t, http.DefaultClient, http.MethodPost, w.url+test.path, headers)
		got := w.last()
		if status != http.StatusOK || body != `"body;"from upstream` || got == nil {
			t.Fatalf("%s: status %d: %s", name, status, body)
		}
		if got.Header.Get(test.header) != test.want || got.URL.String() != test.at || got.Header.Get("Anthropic-Version") == "" {
			t.Errorf("%s: upstream got %s %v", name, got.URL, got.Header)
		}
		if all := fmt.Sprint(got.URL, got.Header); strings.Contains(all, token) {
			t.Errorf("%s: the VM's token went further: %s", name, all)
		}
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
		status, body := ask(t, http.DefaultClient, http.MethodPost, w.url+path, bearer(w.handler.RunToken(run)))
		if status != want || strings.Contains(body, "127.0.0.1:1") {
			t.Errorf("%s: status %d, want %d: %s", path, status, want, body)
		}
	}
	if got := w.last(); got != nil {
		t.Errorf("upstream got %s", got.URL)
	}
}

// TestGit: the task's own repository can be fetched, and nothing else.
func TestGit(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		method, path string
		status       int
		upstream     string
	}{
		"what there is":            {"GET", "/git/acme/shop.git/info/refs?service=git-upload-pack", 200, "/acme/shop.git/info/refs?service=git-upload-pack"},
		"without .git":             {"GET", "/git/acme/shop/info/refs?service=git-upload-pack", 200, "/acme/shop.git/info/refs?service=git-upload-pack"},
		"another case":             {"GET", "/git/Acme/SHOP.git/info/refs?service=git-upload-pack", 200, "/acme/shop.git/info/refs?service=git-upload-pack"},
		"fetch":                    {"POST", "/git/acme/shop.git/git-upload-pack", 200, "/acme/shop.git/git-upload-pack"},
		"two services":             {"GET", "/git/acme/shop.git/info/refs?service=git-upload-pack&service=git-receive-pack", 200, "/acme/shop.git/info/refs?service=git-upload-pack"},
		"more in the query":        {"POST", "/git/acme/shop.git/git-upload-pack?x=y", 200, "/acme/shop.git/git-upload-pack"},
		"push, what there is":      {"GET", "/git/acme/shop.git/info/refs?service=git-receive-pack", 403, ""},
		"push":                     {"POST", "/git/acme/shop.git/git-receive-pack", 403, ""},
		"no service":               {"GET", "/git/acme/shop.git/info/refs", 403, ""},
		"dumb protocol":            {"GET", "/git/acme/shop.git/HEAD", 403, ""},
		"wrong method":             {"GET", "/git/acme/shop.git/git-upload-pack", 403, ""},
		"another repository":       {"GET", "/git/acme/other.git/info/refs?service=git-upload-pack", 403, ""},
		"another owner":            {"POST", "/git/evil/shop.git/git-upload-pack", 403, ""},
		"large files, nonsense":    {"POST", "/git/acme/shop.git/info/lfs/objects/batch", 422, ""},
		"large files, a lock":      {"POST", "/git/acme/shop.git/info/lfs/locks", 403, ""},
		"large files, no id":       {"GET", "/git/acme/shop.git/info/lfs/objects/abc/3", 403, ""},
		"large files, put":         {"PUT", "/git/acme/shop.git/info/lfs/objects/" + strings.Repeat("a", 64) + "/3", 403, ""},
		"a path behind":            {"POST", "/git/acme/shop.git/git-upload-pack/x", 403, ""},
		"an owner with a slash in": {"POST", "/git/acme%2Fshop.git/x/git-upload-pack", 403, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnd(t, someTask(), nil)
			status, body := ask(t, http.DefaultClient, test.method, w.url+test.path, basic(w.handler.VMToken(vm)))
			got := w.last()
			if status != test.status || (got == nil) != (test.upstream == "") {
				t.Fatalf("status %d, want %d: %s", status, test.status, body)
			}
			if got == nil {
				return
			}
			_, password, _ := got.BasicAuth()
			if got.URL.String() != test.upstream || password != readToken {
				t.Errorf("upstream got %s with %q", got.URL, password)
			}
		})
	}
}

func TestGitWithoutToken(t *testing.T) {
	t.Parallel()
	w := newEnd(t, someTask(), func(c *tether.Config) {
		c.Git = func(context.Context, *state.Task) (string, string, error) {
			return "", "", errors.New("secret trouble")
		}
	})
	status, body := ask(t, http.DefaultClient, http.MethodGet, w.url+fetchPath, basic(w.handler.VMToken(vm)))
	if status != http.StatusBadGateway || strings.Contains(body, "secret") {
		t.Errorf("status %d: %s", status, body)
	}
}

// TestStreams: what a model says arrives when it says it, not at the end.
func TestStreams(t *testing.T) {
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
	w := newEnd(t, someTask(), func(c *tether.Config) {
		c.Models = map[string]gateway.Upstream{"anthropic": {BaseURL: model.URL, Key: modelKey, Header: "X-Api-Key", API: modelapi.Anthropic}}
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+modelPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", w.handler.RunToken(run))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	if !lines.Scan() || lines.Text() != "data: one" {
		t.Fatalf("first came %q: %v", lines.Text(), lines.Err())
	}
	close(heard)
	if !lines.Scan() || lines.Text() != "data: two" {
		t.Fatalf("then came %q: %v", lines.Text(), lines.Err())
	}
}

// FuzzPaths: whatever a VM asks for, upstream is asked only for the model's paths and for fetches of
// the task's repository.
func FuzzPaths(f *testing.F) {
	for _, path := range []string{modelPath, fetchPath, "/git/acme/shop/../../x/y/git-upload-pack", "/llm/openai//x", "/llm/../git/acme/shop/git-upload-pack", "/git/acme/shop.git%2f..%2f"} {
		f.Add(path)
	}
	task := someTask()
	var got *url.URL
	upstream := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.URL }))
	f.Cleanup(upstream.Close)
	h := tether.New(tether.Config{
		Tasks: tasks{task: task}, Key: []byte("k"), Log: zerolog.Nop(), Ledger: &ledger{},
		Models: map[string]gateway.Upstream{"anthropic": {BaseURL: upstream.URL + "/model", Key: modelKey, Header: "X-Api-Key", API: modelapi.Anthropic}},
		Git: func(context.Context, *state.Task) (string, string, error) {
			return upstream.URL + "/repo", readToken, nil
		},
	})
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
			t.Errorf("%q asked upstream for %s", path, got)
		}
	})
}

package gitproxy

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/forward"
	"github.com/errand-bot/errand/state"
)

const (
	readToken = "ghs_the-read-token"
	vm        = "errand-7-1-1"
	vmToken   = "errand-the-token-of-the-vm"
	fetchPath = "/git/acme/shop.git/info/refs?service=git-upload-pack"
)

// end is the proxy as one VM reaches it, before a forge.
type end struct {
	url string

	mu   sync.Mutex
	seen []*http.Request // what the forge got
}

func newEnd(t *testing.T, change func(*Config)) *end {
	t.Helper()
	w := &end{}
	forge := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.seen = append(w.seen, r.Clone(context.Background()))
		w.mu.Unlock()
		_, _ = io.Copy(rw, r.Body)
	}))
	t.Cleanup(forge.Close)
	task := &state.Task{Key: state.TaskKey{Repo: 7, Issue: 1}, TaskIssue: state.TaskIssue{Repo: state.Repo{ID: 7, Owner: "acme", Name: "shop"}}}
	cfg := Config{
		Repository: func(context.Context, *state.Task) (string, string, error) {
			return forge.URL + "/acme/shop.git", readToken, nil
		},
		Transport: forward.NewTransport(0), Log: zerolog.Nop(),
	}
	if change != nil {
		change(&cfg)
	}
	proxy, mux := New(cfg), http.NewServeMux()
	mux.HandleFunc("/git/{owner}/{repo}/", func(w http.ResponseWriter, r *http.Request) {
		proxy.Serve(w, r, task, Client{VM: vm, Token: vmToken})
	})
	end := httptest.NewServer(mux)
	t.Cleanup(end.Close)
	w.url = end.URL
	return w
}

// last returns the last request that the forge received, or nil.
func (w *end) last() *http.Request {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.seen) == 0 {
		return nil
	}
	return w.seen[len(w.seen)-1]
}

// send sends a request as a program on the VM does.
func send(t *testing.T, method, url string, header map[string]string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(`"body;"`))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := webtest.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// TestGit: the task's own repository can be fetched, and nothing else.
func TestGit(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		method, path string
		status       int
		upstream     string
	}{
		"references":               {"GET", "/git/acme/shop.git/info/refs?service=git-upload-pack", 200, "/acme/shop.git/info/refs?service=git-upload-pack"},
		"without .git":             {"GET", "/git/acme/shop/info/refs?service=git-upload-pack", 200, "/acme/shop.git/info/refs?service=git-upload-pack"},
		"another case":             {"GET", "/git/Acme/SHOP.git/info/refs?service=git-upload-pack", 200, "/acme/shop.git/info/refs?service=git-upload-pack"},
		"fetch":                    {"POST", "/git/acme/shop.git/git-upload-pack", 200, "/acme/shop.git/git-upload-pack"},
		"two services":             {"GET", "/git/acme/shop.git/info/refs?service=git-upload-pack&service=git-receive-pack", 200, "/acme/shop.git/info/refs?service=git-upload-pack"},
		"more in the query":        {"POST", "/git/acme/shop.git/git-upload-pack?x=y", 200, "/acme/shop.git/git-upload-pack"},
		"push, references":         {"GET", "/git/acme/shop.git/info/refs?service=git-receive-pack", 403, ""},
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
		"a longer path":            {"POST", "/git/acme/shop.git/git-upload-pack/x", 403, ""},
		"an owner with a slash in": {"POST", "/git/acme%2Fshop.git/x/git-upload-pack", 403, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnd(t, nil)
			status, body := send(t, test.method, w.url+test.path, nil)
			got := w.last()
			if status != test.status || (got == nil) != (test.upstream == "") {
				t.Fatalf("status %d, want %d: %s", status, test.status, body)
			}
			if got == nil {
				return
			}
			_, password, _ := got.BasicAuth()
			if got.URL.String() != test.upstream || password != readToken {
				t.Errorf("got request %s with token %q at the forge", got.URL, password)
			}
		})
	}
}

func TestGitWithoutToken(t *testing.T) {
	t.Parallel()
	w := newEnd(t, func(c *Config) {
		c.Repository = func(context.Context, *state.Task) (string, string, error) {
			return "", "", errors.New("secret trouble")
		}
	})
	status, body := send(t, http.MethodGet, w.url+fetchPath, nil)
	if status != http.StatusBadGateway || strings.Contains(body, "secret") {
		t.Errorf("got status %d: %s", status, body)
	}
}

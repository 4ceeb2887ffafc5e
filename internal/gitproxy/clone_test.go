package gitproxy

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/errand-bot/errand/state"
)

// gitForge serves repositories with git's own http-backend to clients with the current token.
type gitForge struct {
	url string

	mu     sync.Mutex
	token  string
	posted func()       // is called before a fetch's second request is judged
	large  http.Handler // answers requests other than git's, if set
	seen   []string
}

// largeText is the content of large.bin in a repository, whose commits contain its pointer.
const largeText = "large and larger\n"

// runGit runs git in a directory and returns what it prints.
func runGit(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.version=2"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "HOME="+dir)
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func mustGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := runGit(t, dir, args...)
	if err != nil {
		t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return out
}

func newGitForge(t *testing.T, repos ...string) *gitForge {
	t.Helper()
	root := t.TempDir()
	exec := mustGit(t, root, "--exec-path")
	for _, repo := range repos {
		work := filepath.Join(root, "work", repo)
		if err := os.MkdirAll(work, 0o755); err != nil {
			t.Fatal(err)
		}
		mustGit(t, work, "init", "-q", "-b", "main")
		pointer := fmt.Sprintf("version https://git-lfs.github.com/spec/v1\noid sha256:%x\nsize %d\n", sha256.Sum256([]byte(largeText)), len(largeText))
		for name, text := range map[string]string{".gitattributes": "*.bin filter=lfs -text\n", "large.bin": pointer} {
			if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 3 {
			if err := os.WriteFile(filepath.Join(work, "file"), []byte(fmt.Sprintf("%s %d\n", repo, i)), 0o644); err != nil {
				t.Fatal(err)
			}
			mustGit(t, work, "add", ".")
			mustGit(t, work, "commit", "-qm", "c")
		}
		bare := filepath.Join(root, repo+".git")
		mustGit(t, root, "clone", "-q", "--bare", work, bare)
		for _, key := range []string{"uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant", "http.receivepack"} {
			mustGit(t, bare, "config", key, "true")
		}
	}
	f := &gitForge{token: "first"}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if r.Method == http.MethodPost && f.posted != nil {
			f.posted()
			f.posted = nil
		}
		_, shown, _ := r.BasicAuth()
		f.seen = append(f.seen, r.Method+" "+shown)
		if shown != f.token {
			http.Error(w, "Bad credentials", http.StatusUnauthorized)
			return
		}
		if f.large != nil && strings.Contains(r.URL.Path, "/lfs/") {
			f.large.ServeHTTP(w, r)
			return
		}
		env := []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "GIT_PROTOCOL=" + r.Header.Get("Git-Protocol"), "GIT_CONFIG_NOSYSTEM=1", "HOME=" + root}
		(&cgi.Handler{Path: filepath.Join(exec, "git-http-backend"), Env: env}).ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	f.url = web.URL
	return f
}

// newGitEnd returns the end of a VM before the forge. The tokens are first, second, third; each time one is refused,
// the next is used.
func newGitEnd(t *testing.T, f *gitForge) *end {
	t.Helper()
	var mu sync.Mutex
	names, at := []string{"first", "second", "third"}, 0
	read := func(repo string) Reader {
		return func(context.Context) (string, string, error) {
			mu.Lock()
			defer mu.Unlock()
			return f.url + "/" + repo + ".git", names[at], nil
		}
	}
	return newEnd(t, func(c *Config) {
		c.Repository = func(ctx context.Context, _ *state.Task) (string, string, error) { return read("acme/shop")(ctx) }
		c.Submodule = func(_ *state.Task, repo string) Reader {
			if repo == "acme/lib" {
				return read(repo)
			}
			return nil
		}
		c.TokenRefused = func(token string) {
			mu.Lock()
			defer mu.Unlock()
			if token == names[at] && at < len(names)-1 {
				at++
			}
		}
	})
}

// asVM adds the arguments by which git sends a VM's token.
func asVM(w *end, args ...string) []string {
	return append([]string{"-c", "http." + w.url + "/.extraHeader=Authorization: Bearer " + vmToken}, args...)
}

// TestRealGit: clones of each kind work, pushes do not, and the VM gets none of errand's tokens.
func TestRealGit(t *testing.T) {
	t.Parallel()
	f := newGitForge(t, "acme/shop", "acme/lib", "acme/other")
	w := newGitEnd(t, f)
	tests := map[string]struct {
		args    []string
		repo    string
		commits string
		fails   string
	}{
		"not streamed":       {repo: "acme/shop", commits: "3"},
		"shallow":            {args: []string{"--depth", "1"}, repo: "acme/shop", commits: "1"},
		"without blobs":      {args: []string{"--filter=blob:none"}, repo: "acme/shop", commits: "3"},
		"without trees":      {args: []string{"--filter=tree:0", "--no-checkout"}, repo: "acme/shop", commits: "3"},
		"a submodule":        {repo: "acme/lib", commits: "3"},
		"another repository": {repo: "acme/other", fails: "403"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			args := append([]string{"clone", "-q"}, test.args...)
			out, err := runGit(t, dir, asVM(w, append(args, w.url+"/git/"+test.repo+".git", "c")...)...)
			if test.fails != "" {
				if err == nil || !strings.Contains(out, test.fails) {
					t.Errorf("the clone worked: %v %s", err, out)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			c := filepath.Join(dir, "c")
			if got := mustGit(t, c, "rev-list", "--count", "HEAD"); got != test.commits {
				t.Errorf("%s commits, want %s", got, test.commits)
			}
			if got := mustGit(t, c, asVM(w, "show", "HEAD:file")...); got != test.repo+" 2" {
				t.Errorf("got file %q", got)
			}
			if name == "without blobs" {
				if got := mustGit(t, c, asVM(w, "show", "HEAD~2:file")...); got != test.repo+" 0" { // is fetched when it is wanted
					t.Errorf("got old file %q", got)
				}
			}
			if out, err := runGit(t, c, asVM(w, "push", "origin", "HEAD:refs/heads/evil")...); err == nil || !strings.Contains(out, "403") {
				t.Errorf("the push worked: %v %s", err, out)
			}
			config, err := os.ReadFile(filepath.Join(c, ".git", "config"))
			if err != nil || strings.Contains(string(config), "first") {
				t.Errorf("%v: %s", err, config)
			}
		})
	}
}

// TestTokenExpiresInMidFetch: a fetch continues with another token if the first one is refused in between. If all are
// refused, the forge's answer is passed on.
func TestTokenExpiresInMidFetch(t *testing.T) {
	t.Parallel()
	f := newGitForge(t, "acme/shop")
	f.posted = func() { f.token = "second" }
	w := newGitEnd(t, f)
	dir := t.TempDir()
	mustGit(t, dir, asVM(w, "clone", "-q", w.url+"/git/acme/shop.git", "c")...)
	f.mu.Lock()
	seen := strings.Join(f.seen, ", ")
	f.token = "none"
	f.mu.Unlock()
	if want := "GET first, POST first, POST second"; !strings.HasPrefix(seen, want) {
		t.Errorf("the forge saw %s, want %s", seen, want)
	}
	if out, err := runGit(t, filepath.Join(dir, "c"), asVM(w, "fetch", "-q")...); err == nil {
		t.Errorf("a fetch without a token worked: %s", out)
	}
}

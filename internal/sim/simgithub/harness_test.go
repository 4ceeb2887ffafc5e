package simgithub_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// appKey is created once, because that takes longer than most tests.
var appKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// world is a simulator with one repository, one installation and an App that receives webhooks.
type world struct {
	t     *testing.T
	sim   *simgithub.Sim
	url   string
	owner simgithub.Person
	app   *github.Client // by JWT
	bot   *github.Client // by installation token
	trans *ghinstallation.Transport
	inbox *inbox
}

const repo = "octo/calc"

// permissions returns the permissions of the tests' App: more than errand's, which creates no checks.
func permissions() map[string]string {
	return map[string]string{
		"metadata": "read", "issues": "write", "pull_requests": "write", "contents": "write", "checks": "write", "actions": "read", "statuses": "read",
	}
}

// events returns the events to which the tests' App subscribes.
func events() []string {
	return []string{
		"issues", "issue_comment", "pull_request", "pull_request_review", "pull_request_review_comment",
		"pull_request_review_thread", "push", "check_run", "check_suite", "sub_issues", "issue_dependencies", "repository",
		"create", "delete", "status",
	}
}

func newWorld(t *testing.T, change ...func(*simgithub.Config)) *world {
	t.Helper()
	key, err := appKey()
	check(t, err)
	cfg := simgithub.Config{Dir: t.TempDir(), Key: key, HookTimeout: 2 * time.Second, Events: events(), Permissions: permissions()}
	for _, f := range change {
		f(&cfg)
	}
	sim, err := simgithub.New(cfg)
	check(t, err)
	t.Cleanup(func() { check(t, sim.Close()) })
	w := &world{t: t, sim: sim, owner: sim.As("octo"), inbox: newInbox(t)}
	w.url, err = sim.Start("127.0.0.1:0")
	check(t, err)
	sim.SetWebhook(w.inbox.server.URL, "s3cret")
	_, err = sim.SeedRepo(simgithub.RepoSeed{
		Owner: "octo", Name: "calc",
		Files: map[string]string{"README.md": "# calc\n", "calc.go": "package calc\n\nfunc Add(a, b int) int {\n\treturn a - b\n}\n"},
		Collaborators: map[string]simgithub.Role{
			"alice": simgithub.RoleWrite, "tina": simgithub.RoleTriage, "rob": simgithub.RoleRead,
		},
	})
	check(t, err)
	w.clients()
	return w
}

func (w *world) clients() {
	t := w.t
	t.Helper()
	a := w.sim.App()
	atr, err := ghinstallation.NewAppsTransport(http.DefaultTransport, a.ID, a.PEM)
	check(t, err)
	atr.BaseURL = w.url + "/api/v3"
	w.app = w.client(&http.Client{Transport: atr})
	in, _, err := w.app.Apps.FindRepositoryInstallation(t.Context(), "octo", "calc")
	check(t, err)
	w.trans = ghinstallation.NewFromAppsTransport(atr, in.GetID())
	w.bot = w.client(&http.Client{Transport: w.trans})
}

func (w *world) client(hc *http.Client) *github.Client {
	w.t.Helper()
	c, err := github.NewClient(hc).WithEnterpriseURLs(w.url, w.url)
	check(w.t, err)
	return c
}

// human returns a go-github client with a person's token.
func (w *world) human(login string) *github.Client {
	return w.client(nil).WithAuthToken(w.sim.AddUser(login).Token)
}

// issue opens an issue as the owner.
func (w *world) issue(title string) *simgithub.Issue {
	w.t.Helper()
	i, err := w.owner.OpenIssue(repo, simgithub.NewIssue{Title: title, Body: "It is broken."})
	check(w.t, err)
	return i
}

// pull creates a branch with one commit and opens a pull request for it, as a person.
func (w *world) pull(as, branch string, files map[string]string, body string) *simgithub.Issue {
	w.t.Helper()
	p := w.sim.As(as)
	_, err := p.PushCommit(repo, simgithub.Commit{Branch: branch, Message: "Change " + branch, Files: files})
	check(w.t, err)
	i, err := p.OpenPull(repo, simgithub.NewPull{Title: "Pull " + branch, Head: branch, Body: body})
	check(w.t, err)
	return i
}

// settled waits for all webhooks and returns "event.action" of those since the last call.
func (w *world) settled() []string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	check(w.t, w.sim.WaitHooks(ctx))
	return w.inbox.take()
}

// graphql posts a query as the App and decodes data; it returns the errors entries.
func (w *world) graphql(query string, vars map[string]any, data any) []gqlError {
	w.t.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": vars})
	check(w.t, err)
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.url+"/api/graphql", bytes.NewReader(body))
	check(w.t, err)
	resp, err := (&http.Client{Transport: w.trans}).Do(req)
	check(w.t, err)
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		w.t.Fatalf("GraphQL returned %s", resp.Status)
	}
	var out struct {
		Data   json.RawMessage
		Errors []gqlError
	}
	check(w.t, json.NewDecoder(resp.Body).Decode(&out))
	if data != nil && len(out.Data) > 0 {
		check(w.t, json.Unmarshal(out.Data, data))
	}
	return out.Errors
}

type gqlError struct {
	Type    string
	Message string
	Path    []any
}

// git runs a git command with a clean configuration.
func (w *world) git(dir string, args ...string) (string, error) {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_TERMINAL_PROMPT=0", "GIT_AUTHOR_NAME=Alice", "GIT_AUTHOR_EMAIL=alice@example.org",
		"GIT_COMMITTER_NAME=Alice", "GIT_COMMITTER_EMAIL=alice@example.org",
	}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// mustGit runs a git command that must succeed.
func (w *world) mustGit(dir string, args ...string) string {
	w.t.Helper()
	out, err := w.git(dir, args...)
	if err != nil {
		w.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

// inbox is the App's webhook endpoint.
type inbox struct {
	server *httptest.Server
	mu     sync.Mutex
	got    []hook
	status int
}

type hook struct {
	header http.Header
	body   []byte
	valid  bool
}

func (h hook) name() string {
	var p struct{ Action string }
	_ = json.Unmarshal(h.body, &p)
	return strings.TrimSuffix(h.header.Get("X-GitHub-Event")+"."+p.Action, ".")
}

func newInbox(t *testing.T) *inbox {
	in := &inbox{status: http.StatusOK}
	in.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mac := hmac.New(sha256.New, []byte("s3cret"))
		mac.Write(body)
		valid := r.Header.Get("X-Hub-Signature-256") == "sha256="+hex.EncodeToString(mac.Sum(nil))
		in.mu.Lock()
		defer in.mu.Unlock()
		in.got = append(in.got, hook{r.Header.Clone(), body, valid})
		w.WriteHeader(in.status)
	}))
	t.Cleanup(in.server.Close)
	return in
}

func (in *inbox) answer(status int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.status = status
}

func (in *inbox) take() []string {
	in.mu.Lock()
	defer in.mu.Unlock()
	var names []string
	for _, h := range in.got {
		names = append(names, h.name())
	}
	in.got = nil
	return names
}

// last returns the newest webhook of a name.
func (in *inbox) last(name string) (hook, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for n := len(in.got) - 1; n >= 0; n-- {
		if in.got[n].name() == name {
			return in.got[n], true
		}
	}
	return hook{}, false
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// status returns the HTTP status of an error of go-github or of a Person, or 0 without an error.
func status(err error) int {
	var ge *github.ErrorResponse
	var se *simgithub.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &ge):
		return ge.Response.StatusCode
	case errors.As(err, &se):
		return se.Status
	default:
		return -1
	}
}

func ptr[T any](v T) *T { return &v }

// slowHandler returns a handler that answers when release is closed.
func slowHandler(release <-chan struct{}) http.Handler {
	return http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release })
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

package simgithub_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/bradleyfalzon/ghinstallation/v2"
	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/sim/simgithub/simgithubtest"
)

// world is a simulator with one repository, one installation and an App that receives webhooks.
type world struct {
	*simgithubtest.World
	app   *github.Client // by JWT
	bot   *github.Client // by installation token
	trans *ghinstallation.Transport
}

const repo = simgithubtest.Repo

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
	cfg := simgithub.Config{Events: events(), Permissions: permissions()}
	for _, f := range change {
		f(&cfg)
	}
	w := &world{World: simgithubtest.New(t, cfg)}
	w.clients()
	return w
}

func (w *world) clients() {
	t := w.T
	t.Helper()
	a := w.Sim.App()
	atr, err := ghinstallation.NewAppsTransport(webtest.Transport(), a.ID, a.PEM)
	check(t, err)
	atr.BaseURL = w.URL + "/api/v3"
	w.app = w.client(&http.Client{Transport: atr})
	in, _, err := w.app.Apps.FindRepositoryInstallation(t.Context(), "octo", "calc")
	check(t, err)
	w.trans = ghinstallation.NewFromAppsTransport(atr, in.GetID())
	w.bot = w.client(&http.Client{Transport: w.trans})
}

func (w *world) client(hc *http.Client) *github.Client {
	w.T.Helper()
	c, err := github.NewClient(hc).WithEnterpriseURLs(w.URL, w.URL)
	check(w.T, err)
	return c
}

// human returns a go-github client with a person's token.
func (w *world) human(login string) *github.Client {
	return w.client(nil).WithAuthToken(w.Sim.AddUser(login).Token)
}

// graphql posts a query as the App and decodes data; it returns the errors entries.
func (w *world) graphql(query string, vars map[string]any, data any) []gqlError {
	w.T.Helper()
	return w.graphqlBy(&http.Client{Transport: w.trans}, "", query, vars, data)
}

// graphqlAs posts a query as a person, or as the App if login is empty.
func (w *world) graphqlAs(login, query string, vars map[string]any, data any) []gqlError {
	w.T.Helper()
	if login == "" {
		return w.graphql(query, vars, data)
	}
	return w.graphqlBy(webtest.Client(), "bearer "+w.Sim.AddUser(login).Token, query, vars, data)
}

func (w *world) graphqlBy(c *http.Client, auth, query string, vars map[string]any, data any) []gqlError {
	w.T.Helper()
	body, err := json.Marshal(map[string]any{"query": query, "variables": vars})
	check(w.T, err)
	req, err := http.NewRequestWithContext(w.T.Context(), http.MethodPost, w.URL+"/api/graphql", bytes.NewReader(body))
	check(w.T, err)
	if auth != "" {
		req.Header.Set("Authorization", auth)
	}
	resp, err := c.Do(req)
	check(w.T, err)
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		w.T.Fatalf("GraphQL returned %s", resp.Status)
	}
	var out struct {
		Data   json.RawMessage
		Errors []gqlError
	}
	check(w.T, json.NewDecoder(resp.Body).Decode(&out))
	if data != nil && len(out.Data) > 0 {
		check(w.T, json.Unmarshal(out.Data, data))
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
	w.T.Helper()
	cmd := exec.CommandContext(w.T.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + w.T.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_TERMINAL_PROMPT=0", "GIT_AUTHOR_NAME=Alice", "GIT_AUTHOR_EMAIL=alice@example.org",
		"GIT_COMMITTER_NAME=Alice", "GIT_COMMITTER_EMAIL=alice@example.org",
	}
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// mustGit runs a git command that must succeed.
func (w *world) mustGit(dir string, args ...string) string {
	w.T.Helper()
	out, err := w.git(dir, args...)
	if err != nil {
		w.T.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
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

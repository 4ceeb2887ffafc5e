package oauth_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge/forgetest"
	"github.com/errand-bot/errand/internal/forge/oauth"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
)

const (
	callback = "https://errand.example.org/login/github/callback"
	verifier = "a-verifier-with-enough-characters-for-the-flow"
)

// newClient returns a client of the simulator that knows the App by its own answer to GET /app.
func newClient(t *testing.T, w *forgetest.World, change func(*oauth.Config)) *oauth.Client {
	t.Helper()
	w.SetCallbackURLs(callback)
	cfg := oauth.Config{
		ClientID: func(ctx context.Context) (string, error) {
			app, err := w.Forge.Self(ctx)
			return app.ClientID, err
		},
		ClientSecret: w.App().ClientSecret, WebURL: w.BaseURL(), APIURL: w.BaseURL() + "/api/v3", RedirectURL: callback, Now: time.Now,
	}
	if change != nil {
		change(&cfg)
	}
	c, err := oauth.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// authorize does what a person does on GitHub's page, and returns the code.
func authorize(t *testing.T, w *forgetest.World, c *oauth.Client, login string) string {
	t.Helper()
	page, err := c.AuthorizeURL(t.Context(), "the state", verifier)
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(page)
	if err != nil || u.Path != "/login/oauth/authorize" || !strings.HasPrefix(page, w.BaseURL()) {
		t.Fatalf("got page %s (%v)", page, err)
	}
	q := u.Query()
	if strings.Contains(page, verifier) || q.Get("scope") != "" {
		t.Errorf("got page %s", page)
	}
	to, err := w.As(login).Authorize(simgithub.AuthorizeRequest{
		ClientID: q.Get("client_id"), RedirectURI: q.Get("redirect_uri"), State: q.Get("state"),
		CodeChallenge: q.Get("code_challenge"), Method: q.Get("code_challenge_method"),
	})
	if err != nil {
		t.Fatal(err)
	}
	back, err := url.Parse(to)
	if err != nil || back.Query().Get("state") != "the state" || !strings.HasPrefix(to, callback+"?") {
		t.Fatalf("GitHub sends the browser to %s (%v)", to, err)
	}
	return back.Query().Get("code")
}

// TestSignIn signs people of every role in: errand learns who they are, and what they can read because of a grant to them.
func TestSignIn(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	c := newClient(t, w, nil)
	other, err := w.SeedRepo(simgithub.RepoSeed{Owner: "octo", Name: "other", NotInstalled: true, Collaborators: map[string]simgithub.Role{"rita": simgithub.RoleAdmin}})
	if err != nil {
		t.Fatal(err)
	}
	for login, want := range map[string]map[int64]state.Permission{
		"wendy": {w.Repo.ID: state.PermissionWrite}, "mia": {w.Repo.ID: state.PermissionWrite}, "rita": {w.Repo.ID: state.PermissionRead},
		"tom": {w.Repo.ID: state.PermissionRead}, "octo": {w.Repo.ID: state.PermissionAdmin}, "passer-by": {},
	} {
		u := w.AddUser(login)
		a, err := c.SignIn(t.Context(), authorize(t, w, c, login), verifier)
		if err != nil {
			t.Fatalf("%s: %v", login, err)
		}
		who, valid, err := a.Check(t.Context())
		if err != nil || !valid || who != (state.Person{ID: u.ID, Login: login}) {
			t.Errorf("%s is %+v, %v (%v)", login, who, valid, err)
		}
		got, complete, err := a.Repositories(t.Context())
		if err != nil || !complete || got[other.ID] != "" { // the App has no access to it
			t.Errorf("%s: complete %v, %v (%v)", login, complete, got, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", login, diff)
		}
		if left := time.Until(a.Expires()); left > 8*time.Hour || left < 7*time.Hour {
			t.Errorf("the token lives for %s", left)
		}
		for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
			if text := fmt.Sprintf(verb, a); strings.Contains(text, "ghu_") {
				t.Errorf("%s prints the token: %s", verb, text)
			}
		}
	}
}

// TestCodeIsBoundToItsFlow: a code works once, with the verifier of its flow and the App's secret.
func TestCodeIsBoundToItsFlow(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	c := newClient(t, w, nil)
	code := authorize(t, w, c, "rita")
	if _, err := c.SignIn(t.Context(), code, verifier); err != nil {
		t.Fatal(err)
	}
	if _, err := c.SignIn(t.Context(), code, verifier); err != oauth.ErrRefused {
		t.Errorf("the code again: %v", err)
	}
	if _, err := c.SignIn(t.Context(), authorize(t, w, c, "rita"), "another"+verifier); err != oauth.ErrRefused {
		t.Errorf("another verifier: %v", err)
	}
	wrong := newClient(t, w, func(cfg *oauth.Config) { cfg.ClientSecret = "wrong" })
	if _, err := wrong.SignIn(t.Context(), authorize(t, w, c, "rita"), verifier); err == nil || !strings.Contains(err.Error(), "incorrect_client_credentials") {
		t.Errorf("a wrong secret: %v", err)
	}
	unknown := newClient(t, w, func(cfg *oauth.Config) { cfg.ClientID = func(context.Context) (string, error) { return "", nil } })
	if _, err := unknown.AuthorizeURL(t.Context(), "s", verifier); err == nil {
		t.Error("got no error without a client ID")
	}
}

// TestRevokedTokenAndRename: GitHub says when a token was revoked, and by which name the account goes now.
func TestRevokedTokenAndRename(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	c := newClient(t, w, nil)
	a, err := c.SignIn(t.Context(), authorize(t, w, c, "rita"), verifier)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.RenameUser("rita", "rita-2"); err != nil {
		t.Fatal(err)
	}
	if who, valid, err := a.Check(t.Context()); err != nil || !valid || who.Login != "rita-2" {
		t.Errorf("after the rename: %+v, %v (%v)", who, valid, err)
	}
	if got, _, err := a.Repositories(t.Context()); err != nil || got[w.Repo.ID] != state.PermissionRead {
		t.Errorf("after the rename: %v (%v)", got, err)
	}
	w.Suspend("octo", true)
	if got, _, err := a.Repositories(t.Context()); err != nil || len(got) != 0 {
		t.Errorf("suspended: %v (%v)", got, err)
	}
	w.RevokeAuthorization("rita-2")
	if who, valid, err := a.Check(t.Context()); err != nil || valid {
		t.Errorf("revoked: %+v, %v (%v)", who, valid, err)
	}
	if _, _, err := a.Repositories(t.Context()); err == nil {
		t.Error("got no error for the repositories of a revoked token")
	}
}

// lying is a GitHub that answers anything. Answers are by path; a missing one is a valid one.
type lying map[string]string

func (l lying) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	text, ok := l[r.URL.Path]
	switch {
	case text == "hang":
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the client leaves
		<-r.Context().Done()
		return
	case text == "redirect":
		http.Redirect(w, r, l["to"], http.StatusTemporaryRedirect)
		return
	case !ok:
		text = map[string]string{
			"/login/oauth/access_token":                 `{"access_token":"ghu_secret","token_type":"bearer","expires_in":999999999}`,
			"/api/v3/user":                              `{"id":7,"login":"ada","type":"User"}`,
			"/api/v3/user/installations":                `{"installations":[{"id":1},{"id":2}]}`,
			"/api/v3/user/installations/1/repositories": `{"repositories":[{"id":1}]}`, "/api/v3/user/installations/2/repositories": `{}`,
		}[r.URL.Path]
	}
	if r.Header.Get("Authorization") != "" && r.Header.Get("Authorization") != "Bearer ghu_secret" {
		text = "wrong token"
	}
	if status, rest, ok := strings.Cut(text, "|"); ok {
		var n int
		_, _ = fmt.Sscan(status, &n)
		w.WriteHeader(n)
		text = rest
	}
	_, _ = io.WriteString(w, text)
}

// TestLyingGitHub: no answer of GitHub signs in somebody who is nobody, and none appears in an error.
func TestLyingGitHub(t *testing.T) {
	t.Parallel()
	const token, user, installs, repos = "/login/oauth/access_token", "/api/v3/user", "/api/v3/user/installations", "/api/v3/user/installations/1/repositories"
	for name, l := range map[string]lying{
		"the truth":               {},
		"no token":                {token: `{"token_type":"bearer"}`},
		"an empty token":          {token: `{"access_token":"","token_type":"bearer"}`},
		"a token of two lines":    {token: `{"access_token":"ghu_secret\r\nX-Evil: 1","token_type":"bearer"}`},
		"a huge token":            {token: `{"access_token":"` + strings.Repeat("ghu_secret", 10_000) + `","token_type":"bearer"}`},
		"another kind":            {token: `{"access_token":"ghu_secret","token_type":"mac"}`},
		"no JSON":                 {token: `<html>ghu_secret`},
		"nothing":                 {token: ``},
		"an error":                {token: `{"error":"<b>ghu_secret","error_description":"ghu_secret"}`},
		"status 500":              {token: `500|ghu_secret`},
		"a redirect":              {token: "redirect", "to": "http://127.0.0.1:1/ghu_secret"},
		"a hanging exchange":      {token: "hang"},
		"no account":              {user: `{}`},
		"an account without ID":   {user: `{"login":"ada","type":"User"}`},
		"a negative ID":           {user: `{"id":-7,"login":"ada","type":"User"}`},
		"a login with markup":     {user: `{"id":7,"login":"<b>ada","type":"User"}`},
		"a huge login":            {user: `{"id":7,"login":"` + strings.Repeat("a", 1000) + `","type":"User"}`},
		"an organization":         {user: `{"id":7,"login":"acme","type":"Organization"}`},
		"a bot":                   {user: `{"id":7,"login":"errand[bot]","type":"Bot"}`},
		"an account that is down": {user: `502|ghu_secret`},
		"a hanging account":       {user: "hang"},
		"a list that is none":     {installs: `{"installations":"ghu_secret"}`},
		"no installations":        {installs: `403|ghu_secret`},
		"broken repositories":     {repos: `{"repositories":[{"id":"ghu_secret"}]}`},
		"a null token":            {token: `null`},
		"a null account":          {user: `null`},
		"endless repositories":    {repos: `{"repositories":[` + strings.Repeat(`{"id":1},`, 1<<20)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(l)
			t.Cleanup(srv.Close)
			c, err := oauth.New(oauth.Config{
				ClientID: func(context.Context) (string, error) { return "Iv1", nil }, ClientSecret: "shh", WebURL: srv.URL + "/", APIURL: srv.URL + "/api/v3/",
				RedirectURL: callback, Now: time.Now,
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if strings.Contains(name, "hanging") {
				ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
			}
			defer cancel()
			a, err := c.SignIn(ctx, "code", verifier)
			if err == nil {
				if time.Until(a.Expires()) > 8*time.Hour {
					t.Errorf("the token lives until %s", a.Expires())
				}
				_, _, err = a.Check(ctx)
			}
			if err == nil {
				_, _, err = a.Repositories(ctx)
			}
			if name == "the truth" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || strings.Contains(err.Error(), "ghu_secret") || strings.Contains(err.Error(), "shh") || strings.Contains(err.Error(), "code=") {
				t.Errorf("got error %v", err)
			}
		})
	}
}

// TestNullsInLists: an empty entry of a list is no repository, and takes nothing down.
func TestNullsInLists(t *testing.T) {
	t.Parallel()
	const installs, repos = "/api/v3/user/installations", "/api/v3/user/installations/1/repositories"
	for name, l := range map[string]lying{
		"installations":          {installs: `null`},
		"a list":                 {installs: `{"installations":null}`},
		"an installation":        {installs: `{"installations":[null]}`},
		"repositories":           {repos: `null`},
		"a list of repositories": {repos: `{"repositories":null}`},
		"a repository":           {repos: `{"repositories":[null]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := httptest.NewServer(l)
			t.Cleanup(srv.Close)
			c, err := oauth.New(oauth.Config{
				ClientID: func(context.Context) (string, error) { return "Iv1", nil }, ClientSecret: "shh", WebURL: srv.URL + "/", APIURL: srv.URL + "/api/v3/",
				RedirectURL: callback, Now: time.Now,
			})
			if err != nil {
				t.Fatal(err)
			}
			a, err := c.SignIn(t.Context(), "code", verifier)
			if err != nil {
				t.Fatal(err)
			}
			if list, _, err := a.Repositories(t.Context()); len(list) > 0 {
				t.Errorf("got repositories %v (%v)", list, err)
			}
		})
	}
}

// TestHugeAccount: the list of somebody with a hundred thousand repositories is cut, after a bounded number of requests.
func TestHugeAccount(t *testing.T) {
	t.Parallel()
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/repositories") {
			lying{}.ServeHTTP(w, r)
			return
		}
		asked++
		var list []map[string]any
		for n := range 100 {
			list = append(list, map[string]any{"id": asked*100 + n, "permissions": map[string]bool{"pull": true}})
		}
		w.Header().Set("Link", fmt.Sprintf(`<%s?page=%d>; rel="next"`, r.URL.Path, asked+1))
		_ = json.NewEncoder(w).Encode(map[string]any{"total_count": 100_000, "repositories": list})
	}))
	t.Cleanup(srv.Close)
	c, err := oauth.New(oauth.Config{
		ClientID: func(context.Context) (string, error) { return "Iv1", nil }, WebURL: srv.URL, APIURL: srv.URL + "/api/v3", Now: time.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.SignIn(t.Context(), "code", verifier)
	if err != nil {
		t.Fatal(err)
	}
	list, complete, err := a.Repositories(t.Context())
	if err != nil || complete || len(list) != 5000 || asked != 50 {
		t.Errorf("got %d repositories after %d requests, complete: %v (%v)", len(list), asked, complete, err)
	}
}

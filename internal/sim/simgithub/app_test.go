package simgithub_test

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/golang-jwt/jwt/v4"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

func TestAppAndInstallation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	a, _, err := w.app.Apps.Get(ctx, "")
	check(t, err)
	if a.GetSlug() != "errand" || a.GetID() != w.Sim.App().ID || a.Permissions.GetContents() != "write" {
		t.Errorf("got App %v", a)
	}
	list, _, err := w.bot.Apps.ListRepos(ctx, nil)
	check(t, err)
	if list.GetTotalCount() != 1 || list.Repositories[0].GetFullName() != repo {
		t.Errorf("got repositories %v", list)
	}
	bot, _, err := w.bot.Users.Get(ctx, "errand[bot]")
	check(t, err)
	if bot.GetID() != w.Sim.App().BotID || bot.GetType() != "Bot" {
		t.Errorf("got bot %v", bot)
	}
	if _, _, err := w.bot.Apps.Get(ctx, ""); status(err) != 401 {
		t.Errorf("GET /app with an installation token: %v", err)
	}
	if _, _, err := w.app.Issues.CreateComment(ctx, "octo", "calc", 1, &github.IssueComment{Body: ptr("x")}); err == nil {
		t.Error("got no error when writing a comment with a JWT")
	}
}

func TestInvalidJWTsAreRejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.Sim.App()
	key := rsatest.Key()
	now := time.Now()
	for name, c := range map[string]struct {
		iss      string
		from, to time.Duration
		method   jwt.SigningMethod
		key      any
		want     int
	}{
		"good":             {strconv.FormatInt(a.ID, 10), -time.Minute, 9 * time.Minute, jwt.SigningMethodRS256, key, 200},
		"by client id":     {a.ClientID, -time.Minute, 9 * time.Minute, jwt.SigningMethodRS256, key, 200},
		"another App":      {"12", -time.Minute, 9 * time.Minute, jwt.SigningMethodRS256, key, 401},
		"too long":         {strconv.FormatInt(a.ID, 10), 0, 11 * time.Minute, jwt.SigningMethodRS256, key, 401},
		"expired":          {strconv.FormatInt(a.ID, 10), -10 * time.Minute, -time.Second, jwt.SigningMethodRS256, key, 401},
		"from the future":  {strconv.FormatInt(a.ID, 10), 5 * time.Minute, 9 * time.Minute, jwt.SigningMethodRS256, key, 401},
		"symmetric secret": {strconv.FormatInt(a.ID, 10), 0, time.Minute, jwt.SigningMethodHS256, []byte("x"), 401},
	} {
		t.Run(name, func(t *testing.T) {
			signed, err := jwt.NewWithClaims(c.method, jwt.RegisteredClaims{
				Issuer: c.iss, IssuedAt: jwt.NewNumericDate(now.Add(c.from)), ExpiresAt: jwt.NewNumericDate(now.Add(c.to)),
			}).SignedString(c.key)
			check(t, err)
			if got := w.get(t, "/api/v3/app", "Bearer "+signed).StatusCode; got != c.want {
				t.Errorf("status %d, want %d", got, c.want)
			}
		})
	}
}

// get sends a request and closes the body of the answer.
func (w *world) get(t *testing.T, path, auth string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.URL+path, nil)
	check(t, err)
	if auth != "" {
		req.Header.Set("Authorization", auth)
	}
	resp, err := webtest.Client().Do(req)
	check(t, err)
	check(t, resp.Body.Close())
	return resp
}

func TestInstallationTokensAreScoped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	second, err := w.Sim.SeedRepo(simgithub.RepoSeed{Owner: "octo", Name: "second", Private: true})
	check(t, err)
	in, _, err := w.app.Apps.FindRepositoryInstallation(ctx, "octo", "second")
	check(t, err)
	mint := func(o *github.InstallationTokenOptions) (*github.Client, error) {
		tok, _, err := w.app.Apps.CreateInstallationToken(ctx, in.GetID(), o)
		if err != nil {
			return nil, err
		}
		if d := time.Until(tok.GetExpiresAt().Time); d < 55*time.Minute || d > time.Hour || !strings.HasPrefix(tok.GetToken(), "ghs_") {
			t.Errorf("got token lifetime %s", d)
		}
		return w.client(nil).WithAuthToken(tok.GetToken()), nil
	}
	read, err := mint(&github.InstallationTokenOptions{
		RepositoryIDs: []int64{second.ID}, Permissions: &github.InstallationPermissions{Contents: ptr("read")},
	})
	check(t, err)
	if _, _, err := read.Repositories.GetBranch(ctx, "octo", "second", "main", 0); err != nil {
		t.Errorf("reading with the requested permission: %v", err)
	}
	if _, _, err := read.Issues.ListByRepo(ctx, "octo", "second", nil); status(err) != 403 {
		t.Errorf("issues without permission: %v", err)
	}
	if _, _, err := read.Git.CreateBlob(ctx, "octo", "second", &github.Blob{Content: ptr("x")}); status(err) != 403 {
		t.Errorf("writing with read: %v", err)
	}
	if _, _, err := read.Issues.ListByRepo(ctx, "octo", "calc", nil); status(err) != 403 {
		t.Errorf("another repository: %v", err)
	}
	workflows := &github.InstallationPermissions{Workflows: ptr("write")}
	if _, err := mint(&github.InstallationTokenOptions{Permissions: workflows}); status(err) != 422 {
		t.Errorf("more permissions than granted: %v", err)
	}
	if _, err := mint(&github.InstallationTokenOptions{RepositoryIDs: []int64{1}}); status(err) != 422 {
		t.Errorf("a repository that is not installed: %v", err)
	}
	w.Sim.ExpireTokens()
	if _, _, err := read.Repositories.Get(ctx, "octo", "second"); status(err) != 401 {
		t.Errorf("an expired token: %v", err)
	}
}

func TestTokensExpireByTheClock(t *testing.T) {
	t.Parallel()
	clock := make(chan time.Time, 1)
	clock <- time.Now()
	w := newWorld(t, func(c *simgithub.Config) {
		c.AuthNow = func() time.Time {
			now := <-clock
			clock <- now
			return now
		}
	})
	token, err := w.trans.Token(t.Context())
	check(t, err)
	if got := w.get(t, "/api/v3/repos/octo/calc", "token "+token).StatusCode; got != 200 {
		t.Fatalf("fresh token: %d", got)
	}
	<-clock
	clock <- time.Now().Add(61 * time.Minute)
	if got := w.get(t, "/api/v3/repos/octo/calc", "token "+token).StatusCode; got != 401 {
		t.Errorf("after an hour: %d", got)
	}
}

func TestPermissionsOfPeople(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	check(t, w.Owner.SetPermission(repo, "max", simgithub.RoleMaintain))
	w.Sim.AddBot("other[bot]")
	w.Sim.AddUser("eve")
	for login, want := range map[string]string{
		"octo": "admin admin", "alice": "write write", "max": "write maintain", "tina": "read triage", "eve": "read read",
	} {
		p, _, err := w.bot.Repositories.GetPermissionLevel(t.Context(), "octo", "calc", login)
		check(t, err)
		u, _ := w.Sim.User(login)
		if got := p.GetPermission() + " " + p.GetRoleName(); got != want || p.GetUser().GetID() != u.ID {
			t.Errorf("%s: %s (id %d), want %s (id %d)", login, got, p.GetUser().GetID(), want, u.ID)
		}
	}
	for _, login := range []string{"other[bot]", "nobody"} {
		if _, _, err := w.bot.Repositories.GetPermissionLevel(t.Context(), "octo", "calc", login); status(err) != 404 {
			t.Errorf("%s: %v, want 404", login, err)
		}
	}
}

func TestRateLimitAndConditionalRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *simgithub.Config) { c.RateLimit = 5 })
	alice := "token " + w.Sim.AddUser("alice").Token
	resp := w.get(t, "/api/v3/repos/octo/calc", alice)
	if diff := cmp.Diff([]string{"5", "4", "core"}, []string{
		resp.Header.Get("X-Ratelimit-Limit"), resp.Header.Get("X-Ratelimit-Remaining"), resp.Header.Get("X-Ratelimit-Resource"),
	}); diff != "" {
		t.Errorf("headers (-want +got):\n%s", diff)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.URL+"/api/v3/repos/octo/calc", nil)
	check(t, err)
	req.Header.Set("Authorization", alice)
	req.Header.Set("If-None-Match", resp.Header.Get("Etag"))
	again, err := webtest.Client().Do(req)
	check(t, err)
	check(t, again.Body.Close())
	if again.StatusCode != http.StatusNotModified || again.Header.Get("X-Github-Request-Id") == "" {
		t.Errorf("conditional request: %s", again.Status)
	}
	if left := again.Header.Get("X-Ratelimit-Remaining"); left != "4" {
		t.Errorf("a 304 counts towards the limit: %s left", left)
	}
	for range 5 {
		resp = w.get(t, "/api/v3/repos/octo/calc", alice)
	}
	if resp.StatusCode != http.StatusForbidden || resp.Header.Get("X-Ratelimit-Remaining") != "0" {
		t.Errorf("over the limit: %s, remaining %s", resp.Status, resp.Header.Get("X-Ratelimit-Remaining"))
	}
	if free := w.get(t, "/api/v3/rate_limit", alice); free.StatusCode != http.StatusOK {
		t.Errorf("GET /rate_limit counts towards the limit: %s", free.Status)
	}
}

func TestUninstallAndSuspend(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if diff := cmp.Diff([]string{"installation.created"}, w.created(t)); diff != "" {
		t.Errorf("webhooks of seeding (-want +got):\n%s", diff)
	}
	_, err := w.trans.Token(t.Context())
	check(t, err)
	w.Sim.Suspend("octo", true)
	if _, _, err := w.bot.Repositories.Get(t.Context(), "octo", "calc"); status(err) != 403 {
		t.Errorf("suspended: got %v", err)
	}
	w.Sim.Suspend("octo", false)
	w.Sim.Uninstall("octo")
	if _, _, err := w.bot.Repositories.Get(t.Context(), "octo", "calc"); status(err) != 401 {
		t.Errorf("uninstalled: got %v", err)
	}
	if diff := cmp.Diff([]string{"installation.suspend", "installation.unsuspend", "installation.deleted"}, w.Settled()); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
	w.Issue("Not delivered")
	if got := w.Settled(); len(got) != 0 {
		t.Errorf("events without an installation: %v", got)
	}
}

// created returns the deliveries in the log, because some were sent before the inbox was configured.
func (w *world) created(t *testing.T) []string {
	t.Helper()
	w.Settled()
	var out []string
	for _, d := range w.Sim.Deliveries() {
		out = append(out, d.Event+"."+d.Action)
	}
	return out
}

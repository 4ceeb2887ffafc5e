package simgithub_test

import (
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// TestUserTokenIsRefused refuses what GitHub refuses: other addresses, codes that are old, and tokens of another kind.
func TestUserTokenIsRefused(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	w := newWorld(t, func(c *simgithub.Config) {
		c.AuthNow = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	w.Sim.SetCallbackURLs("https://errand.example.org/callback")
	app := w.Sim.App()
	good := simgithub.AuthorizeRequest{ClientID: app.ClientID, RedirectURI: "https://errand.example.org/callback", State: "s"}
	ada := w.Sim.As("ada")
	for name, change := range map[string]func(*simgithub.AuthorizeRequest){
		"another App":           func(r *simgithub.AuthorizeRequest) { r.ClientID = "Iv1" },
		"another address":       func(r *simgithub.AuthorizeRequest) { r.RedirectURI = "https://evil.example/callback" },
		"a page below":          func(r *simgithub.AuthorizeRequest) { r.RedirectURI += "/x" },
		"plain PKCE":            func(r *simgithub.AuthorizeRequest) { r.CodeChallenge, r.Method = strings.Repeat("a", 43), "plain" },
		"PKCE without a method": func(r *simgithub.AuthorizeRequest) { r.CodeChallenge = strings.Repeat("a", 43) },
	} {
		req := good
		change(&req)
		if to, err := ada.Authorize(req); err == nil {
			t.Errorf("%s: sent to %s", name, to)
		}
	}
	exchange := func(code string) string {
		resp, err := webtest.Client().PostForm(w.URL+"/login/oauth/access_token", url.Values{"client_id": {app.ClientID}, "client_secret": {app.ClientSecret}, "code": {code}})
		return w.read(resp, err)
	}
	code := func() string {
		to, err := ada.Authorize(good)
		check(t, err)
		u, err := url.Parse(to)
		check(t, err)
		return u.Query().Get("code")
	}
	late := code()
	ahead.Store(int64(11 * time.Minute))
	if got := exchange(late); !strings.Contains(got, "error=bad_verification_code") {
		t.Errorf("an old code: %s", got)
	}
	form, err := url.ParseQuery(exchange(code()))
	check(t, err)
	signedIn := w.client(nil).WithAuthToken(form.Get("access_token"))
	if u, _, err := signedIn.Users.Get(t.Context(), ""); err != nil || u.GetLogin() != "ada" {
		t.Errorf("got %v (%v), form %v", u, err, form)
	}
	if _, _, err := w.human("ada").Apps.ListUserInstallations(t.Context(), nil); status(err) != http.StatusForbidden {
		t.Errorf("with a personal token: %v", err)
	}
	if _, _, err := signedIn.Apps.ListUserRepos(t.Context(), 1, nil); status(err) != http.StatusNotFound {
		t.Errorf("an unknown installation: %v", err)
	}
	ahead.Store(int64(9 * time.Hour))
	if _, _, err := signedIn.Users.Get(t.Context(), ""); status(err) != http.StatusUnauthorized {
		t.Errorf("an old token: %v", err)
	}
	if _, err := simgithub.ParseManifest(strings.Replace(exampleManifest, `"public"`, `"callback_urls": ["nowhere"], "public"`, 1)); err == nil {
		t.Error("a callback URL that is none was accepted")
	}
}

// read returns the body of an answer.
func (w *world) read(resp *http.Response, err error) string {
	w.T.Helper()
	check(w.T, err)
	defer func() { _ = resp.Body.Close() }()
	text := make([]byte, 10_000)
	n, _ := resp.Body.Read(text)
	return string(text[:n])
}

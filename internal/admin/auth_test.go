package admin_test

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/admin"
)

func TestNewRequiresAToken(t *testing.T) {
	t.Parallel()
	if _, err := admin.New(admin.Config{Store: sample(), Transcripts: noFiles{}}); err == nil {
		t.Error("got no error for pages without a token")
	}
}

func TestOnlyWithToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.launch(1)
	paths := []string{
		"/", "/status", "/status.json", "/metrics", "/pause", "/pause.json", "/nothing", "/tasks/acme/shop/1", "/tasks/acme/shop/1/task.json", "/tasks/acme/shop/1/runs/1",
		"/tasks/acme/shop/1/runs/1/raw", "/tasks/acme/shop/1/runs/1/events", "/tasks/acme/shop/1/runs/1/at/0", "/status?token=" + url.QueryEscape(token),
	}
	headers := map[string]map[string]string{
		"none":         {},
		"wrong":        {"Authorization": "Bearer nonsense"},
		"prefix":       {"Authorization": "Bearer " + token[:5]},
		"basic":        {"Authorization": "Basic " + token},
		"empty":        {"Authorization": "Bearer "},
		"wrong cookie": {"Cookie": "errand_admin=99999999999.00"},
		"token cookie": {"Cookie": "errand_admin=" + url.QueryEscape(token)},
	}
	for name, h := range headers {
		for _, path := range paths {
			// Each case has separate pages, because many wrong tokens change the response.
			base := serve(t, admin.Config{Store: w.store, Transcripts: w.dir, Token: token, Now: w.now})
			status, body := fetch(t, base+path, h)
			if status != http.StatusUnauthorized || strings.Contains(body, "<") || strings.Contains(body, "rounded") {
				t.Errorf("%s, %s: status %d: %s", name, path, status, body)
			}
		}
	}
}

func TestBrowserGetsTheLoginForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	status, body := fetch(t, w.url+"/tasks/acme/shop/1?x=1", map[string]string{"Accept": "text/html,*/*"})
	if status != http.StatusUnauthorized {
		t.Errorf("got status %d", status)
	}
	want(t, body, `name="next" value="/tasks/acme/shop/1?x=1"`, `type="password"`, `<label for="token">`)
	wantNot(t, body, "http-equiv")
	_, body = fetch(t, w.url+"/status", map[string]string{"Accept": "text/html", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})
	want(t, body, `http-equiv="refresh"`)
}

func TestLogin(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	form := url.Values{"token": {token}, "next": {"/tasks/acme/shop/1"}}.Encode()
	resp := do(t, http.MethodPost, w.url+"/login", form, map[string]string{"X-Forwarded-Proto": "https"})
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/tasks/acme/shop/1" {
		t.Fatalf("got status %d and location %s", resp.StatusCode, resp.Header.Get("Location"))
	}
	cookies := resp.Cookies()
	if len(cookies) != 1 {
		t.Fatalf("got cookies %v", cookies)
	}
	c := cookies[0]
	if !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || strings.Contains(c.Value, token) {
		t.Errorf("got cookie %v", c)
	}
	cookie := map[string]string{"Cookie": c.Name + "=" + c.Value, "Accept": "text/html"}
	if status, body := fetch(t, w.url+"/status", cookie); status != http.StatusOK || !strings.Contains(body, "Log out") {
		t.Errorf("with the cookie: status %d: %s", status, body)
	}
	changed := map[string]string{"Cookie": c.Name + "=9" + c.Value}
	if status, _ := fetch(t, w.url+"/status", changed); status != http.StatusUnauthorized {
		t.Errorf("after extending the cookie's expiry: status %d", status)
	}
	other := serve(t, admin.Config{Store: w.store, Transcripts: w.dir, Token: "another", Now: w.now})
	if status, _ := fetch(t, other+"/status", cookie); status != http.StatusUnauthorized {
		t.Errorf("after a change of the token: status %d", status)
	}
	w.advance(8 * 24 * time.Hour)
	if status, _ := fetch(t, w.url+"/status", cookie); status != http.StatusUnauthorized {
		t.Errorf("after its expiry: status %d", status)
	}
}

func TestLoginRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		form    url.Values
		headers map[string]string
		status  int
		to      string
	}{
		"wrong token":          {url.Values{"token": {"nonsense"}}, nil, http.StatusUnauthorized, ""},
		"no token":             {url.Values{}, nil, http.StatusUnauthorized, ""},
		"another site":         {url.Values{"token": {token}}, map[string]string{"Sec-Fetch-Site": "cross-site"}, http.StatusForbidden, ""},
		"another origin":       {url.Values{"token": {token}}, map[string]string{"Origin": "https://evil.example"}, http.StatusForbidden, ""},
		"sent elsewhere":       {url.Values{"token": {token}, "next": {"//evil.example/"}}, nil, http.StatusSeeOther, "/status"},
		"redirect to a scheme": {url.Values{"token": {token}, "next": {"javascript:alert(1)"}}, nil, http.StatusSeeOther, "/status"},
		"backslash":            {url.Values{"token": {token}, "next": {`/\evil.example`}}, nil, http.StatusSeeOther, "/status"},
		"too large":            {url.Values{"token": {token}, "x": {strings.Repeat("x", 1<<20)}}, nil, http.StatusUnauthorized, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			resp := do(t, http.MethodPost, w.url+"/login", test.form.Encode(), test.headers)
			_ = resp.Body.Close()
			if resp.StatusCode != test.status || resp.Header.Get("Location") != test.to {
				t.Errorf("got status %d and location %q, want %d and %q", resp.StatusCode, resp.Header.Get("Location"), test.status, test.to)
			}
			if test.status != http.StatusSeeOther && len(resp.Cookies()) > 0 {
				t.Errorf("got cookies %v", resp.Cookies())
			}
		})
	}
}

// logIn logs in with the right token and returns the cookie as a header value.
func logIn(t *testing.T, base string) string {
	t.Helper()
	resp := do(t, http.MethodPost, base+"/login", url.Values{"token": {token}}.Encode(), nil)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusSeeOther || len(resp.Cookies()) != 1 {
		t.Fatalf("login: status %d, cookies %v", resp.StatusCode, resp.Cookies())
	}
	return resp.Cookies()[0].Name + "=" + resp.Cookies()[0].Value
}

func TestLogoutEndsSessionsOnTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	ada, bob := logIn(t, w.url), logIn(t, w.url)
	post := func(cookie string, headers map[string]string) *http.Response {
		h := map[string]string{"Cookie": cookie}
		for k, v := range headers {
			h[k] = v
		}
		resp := do(t, http.MethodPost, w.url+"/logout", "", h)
		_ = resp.Body.Close()
		return resp
	}
	status := func(base, cookie string) int {
		code, _ := fetch(t, base+"/status", map[string]string{"Cookie": cookie})
		return code
	}
	for name, headers := range map[string]map[string]string{
		"another site":   {"Sec-Fetch-Site": "cross-site"},
		"another origin": {"Origin": "https://evil.example"},
	} {
		if code := post(ada, headers).StatusCode; code != http.StatusForbidden || status(w.url, ada) != http.StatusOK {
			t.Errorf("logout from %s: status %d; then with the session: %d", name, code, status(w.url, ada))
		}
	}
	if code, _ := fetch(t, w.url+"/logout", map[string]string{"Cookie": ada}); code == http.StatusSeeOther || status(w.url, ada) != http.StatusOK {
		t.Errorf("logout by GET: status %d; then with the session: %d", code, status(w.url, ada))
	}
	if resp := post("errand_admin=1.00", nil); len(resp.Cookies()) != 1 || status(w.url, ada) != http.StatusOK {
		t.Errorf("logout without a session: cookies %v; then with ada's session: %d", resp.Cookies(), status(w.url, ada))
	}

	resp := post(ada, nil)
	if c := resp.Cookies(); len(c) != 1 || c[0].MaxAge >= 0 || resp.Header.Get("Location") != "/login" {
		t.Errorf("got cookies %v and location %s", c, resp.Header.Get("Location"))
	}
	restarted := serve(t, admin.Config{Store: w.store, Facts: w.store, Transcripts: w.dir, Token: token, Now: w.now})
	for name, cookie := range map[string]string{"ada's": ada, "bob's": bob} {
		for where, base := range map[string]string{"at once": w.url, "after a restart": restarted} {
			if code := status(base, cookie); code != http.StatusUnauthorized {
				t.Errorf("%s cookie after the logout, %s: status %d", name, where, code)
			}
		}
	}
	if again := logIn(t, w.url); status(w.url, again) != http.StatusOK || status(restarted, again) != http.StatusOK {
		t.Error("the session of a login after the logout is not valid")
	}
}

// noFacts is a store that can neither be written nor read.
type noFacts struct{}

func (noFacts) Fact(context.Context, string) ([]byte, error)  { return nil, errors.New("disk gone") }
func (noFacts) SetFact(context.Context, string, []byte) error { return errors.New("disk full") }

// fullDisk reads facts but cannot write them.
type fullDisk struct{ noFacts }

func (fullDisk) Fact(context.Context, string) ([]byte, error) { return nil, nil }

func TestLogoutThatCannotBeStoredIsAnError(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *admin.Config) { c.Facts = fullDisk{} })
	cookie := logIn(t, w.url)
	resp := do(t, http.MethodPost, w.url+"/logout", "", map[string]string{"Cookie": cookie})
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusInternalServerError {
		t.Errorf("got status %d although the session remains valid", resp.StatusCode)
	}
}

func TestSessionsAreRefusedWhileTheStoreCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	cookie := logIn(t, w.url)
	broken := serve(t, admin.Config{Store: w.store, Facts: noFacts{}, Transcripts: w.dir, Token: token, Now: w.now})
	if code, _ := fetch(t, broken+"/status", map[string]string{"Cookie": cookie}); code != http.StatusUnauthorized {
		t.Errorf("got status %d", code)
	}
}

func TestCookieIsSecureOnHTTPS(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		secure  bool
		headers map[string]string
		want    bool
	}{
		"plain HTTP":               {},
		"public_url is https":      {secure: true, want: true},
		"a proxy that reports TLS": {headers: map[string]string{"X-Forwarded-Proto": "https"}, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(cfg *admin.Config) { cfg.Secure = c.secure })
			resp := do(t, http.MethodPost, w.url+"/login", url.Values{"token": {token}}.Encode(), c.headers)
			_ = resp.Body.Close()
			if got := resp.Cookies(); len(got) != 1 || got[0].Secure != c.want {
				t.Errorf("got cookies %v, want secure %v", got, c.want)
			}
		})
	}
}

func TestLoginRedirectsOnlyToOwnPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for _, next := range []string{
		"/\t/evil.example", "/\n/evil.example", "/\r/evil.example", "/\x00/evil.example", "/\x7f/evil.example", "\t//evil.example", " //evil.example",
		"//evil.example", "///evil.example", `/\evil.example`, `\/evil.example`, `\\evil.example`, "https:evil.example", "https://evil.example",
		"http:/evil.example", "javascript:alert(1)", "evil.example", "", "/%09/evil.example", "/%2f/evil.example", "/%2Fevil.example", "/%5cevil.example",
		"/.//evil.example", "/..//evil.example", "/./\t/evil.example", "/status/..//evil.example", "/%2e%2e//evil.example", "/status#x\ny", "/tasks//evil",
		"/status?x=\t", "/\u2028/evil", "/\u00a0/evil", "/\u3000/evil", "/%zz", "/%c0%af", "/@evil.example//x", "?x=//evil.example", "#//evil.example",
		"/" + strings.Repeat("x", 1000), "/login", "/logout",
	} {
		if got := locationAfterLogin(t, w.url, next); got != "/status" {
			t.Errorf("next %q redirects to %q", next, got)
		}
	}
	for _, next := range []string{"/status", "/status?q=shop&page=2", "/vms", "/tasks/acme/shop/1/runs/r1/at/10?from=1", "/tasks/acme/my%20shop/1", "/"} {
		if got := locationAfterLogin(t, w.url, next); got != next {
			t.Errorf("next %q redirects to %q", next, got)
		}
	}
}

func locationAfterLogin(t *testing.T, base, next string) string {
	t.Helper()
	resp := do(t, http.MethodPost, base+"/login", url.Values{"token": {token}, "next": {next}}.Encode(), nil)
	_ = resp.Body.Close()
	return resp.Header.Get("Location")
}

// TestWrongTokensDoNotBlockTheRightOne: behind a proxy all clients may share an address, so wrong tokens do not block
// the right one.
func TestWrongTokensDoNotBlockTheRightOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	right, wrong := map[string]string{"Authorization": "Bearer " + token}, map[string]string{"Authorization": "Bearer nonsense"}
	cookie := map[string]string{"Cookie": logIn(t, w.url)}
	for i := range 10 {
		if status, _ := fetch(t, w.url+"/metrics", wrong); status != http.StatusUnauthorized {
			t.Fatalf("wrong token %d: status %d", i, status)
		}
	}
	for range 3 {
		resp := do(t, http.MethodGet, w.url+"/metrics", "", wrong)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
			t.Errorf("another wrong token: status %d, retry after %q", resp.StatusCode, resp.Header.Get("Retry-After"))
		}
	}
	for path, headers := range map[string]map[string]string{"/status": right, "/metrics": right, "/status.json": cookie} {
		if status, _ := fetch(t, w.url+path, headers); status != http.StatusOK {
			t.Errorf("%s with the right token: status %d", path, status)
		}
	}
	logIn(t, w.url)
	resp := do(t, http.MethodPost, w.url+"/login", url.Values{"token": {"nonsense"}}.Encode(), nil)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusTooManyRequests || len(resp.Cookies()) > 0 {
		t.Errorf("login with another wrong token: status %d", resp.StatusCode)
	}
	w.advance(11 * time.Second)
	if status, _ := fetch(t, w.url+"/status", wrong); status != http.StatusUnauthorized {
		t.Errorf("a wrong token a while later: status %d", status)
	}
}

func TestOpenPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *admin.Config) { c.Token, c.Open = "", true })
	if status, body := fetch(t, w.url+"/status", nil); status != http.StatusOK || strings.Contains(body, "Log out") {
		t.Errorf("status %d: %s", status, body)
	}
	for host, want := range map[string]int{
		"evil.example": http.StatusMisdirectedRequest, "errand": http.StatusOK, "localhost:1": http.StatusOK,
		"[::1]:9": http.StatusOK, "errand.svc.cluster.local": http.StatusOK, "127.0.0.1.evil.example": http.StatusMisdirectedRequest,
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/status", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		resp, err := webtest.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("host %s: status %d, want %d", host, resp.StatusCode, want)
		}
	}
}

func TestHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	seen := map[string]bool{}
	for range 2 {
		resp := do(t, http.MethodGet, w.url+"/status", "", map[string]string{"Authorization": "Bearer " + token})
		_ = resp.Body.Close()
		policy := resp.Header.Get("Content-Security-Policy")
		want(t, policy, "default-src 'none'", "script-src 'nonce-", "style-src 'nonce-", "connect-src 'self'", "frame-ancestors 'none'", "base-uri 'none'")
		wantNot(t, policy, "unsafe")
		seen[policy] = true
		for name, value := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Cache-Control": "no-store"} {
			if got := resp.Header.Get(name); got != value {
				t.Errorf("got %s: %q", name, got)
			}
		}
	}
	if len(seen) != 2 {
		t.Error("two responses have the same nonce")
	}
}

package admin_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/admin"
)

func TestNewWantsAToken(t *testing.T) {
	t.Parallel()
	if _, err := admin.New(admin.Config{Store: sample(), Transcripts: noFiles{}}); err == nil {
		t.Error("pages for everybody were made")
	}
}

func TestOnlyWithToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.launch(1)
	paths := []string{
		"/", "/status", "/status.json", "/metrics", "/nothing", "/tasks/acme/shop/1", "/tasks/acme/shop/1/runs/1",
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
			// Each case has pages of its own, as too many wrong tokens would change the answer.
			base := serve(t, admin.Config{Store: w.store, Transcripts: w.dir, Token: token, Now: w.now})
			status, body := fetch(t, base+path, h)
			if status != http.StatusUnauthorized || strings.Contains(body, "<") || strings.Contains(body, "rounded") {
				t.Errorf("%s, %s: status %d: %s", name, path, status, body)
			}
		}
	}
}

func TestBrowserGetsTheForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	status, body := fetch(t, w.url+"/tasks/acme/shop/1?x=1", map[string]string{"Accept": "text/html,*/*"})
	if status != http.StatusUnauthorized {
		t.Errorf("status %d", status)
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
		t.Fatalf("status %d to %s", resp.StatusCode, resp.Header.Get("Location"))
	}
	cookies := resp.Cookies()
	if len(cookies) != 1 {
		t.Fatalf("cookies %v", cookies)
	}
	c := cookies[0]
	if !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || strings.Contains(c.Value, token) {
		t.Errorf("cookie %v", c)
	}
	cookie := map[string]string{"Cookie": c.Name + "=" + c.Value, "Accept": "text/html"}
	if status, body := fetch(t, w.url+"/status", cookie); status != http.StatusOK || !strings.Contains(body, "Log out") {
		t.Errorf("with the cookie: status %d: %s", status, body)
	}
	changed := map[string]string{"Cookie": c.Name + "=9" + c.Value}
	if status, _ := fetch(t, w.url+"/status", changed); status != http.StatusUnauthorized {
		t.Errorf("with a longer life of the cookie: status %d", status)
	}
	other := serve(t, admin.Config{Store: w.store, Transcripts: w.dir, Token: "another", Now: w.now})
	if status, _ := fetch(t, other+"/status", cookie); status != http.StatusUnauthorized {
		t.Errorf("after a change of the token: status %d", status)
	}
	w.advance(8 * 24 * time.Hour)
	if status, _ := fetch(t, w.url+"/status", cookie); status != http.StatusUnauthorized {
		t.Errorf("after its time: status %d", status)
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
		"wrong token":      {url.Values{"token": {"nonsense"}}, nil, http.StatusUnauthorized, ""},
		"no token":         {url.Values{}, nil, http.StatusUnauthorized, ""},
		"another site":     {url.Values{"token": {token}}, map[string]string{"Sec-Fetch-Site": "cross-site"}, http.StatusForbidden, ""},
		"another origin":   {url.Values{"token": {token}}, map[string]string{"Origin": "https://evil.example"}, http.StatusForbidden, ""},
		"sent elsewhere":   {url.Values{"token": {token}, "next": {"//evil.example/"}}, nil, http.StatusSeeOther, "/status"},
		"sent to a scheme": {url.Values{"token": {token}, "next": {"javascript:alert(1)"}}, nil, http.StatusSeeOther, "/status"},
		"backslash":        {url.Values{"token": {token}, "next": {`/\evil.example`}}, nil, http.StatusSeeOther, "/status"},
		"too large":        {url.Values{"token": {token}, "x": {strings.Repeat("x", 1<<20)}}, nil, http.StatusUnauthorized, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			resp := do(t, http.MethodPost, w.url+"/login", test.form.Encode(), test.headers)
			_ = resp.Body.Close()
			if resp.StatusCode != test.status || resp.Header.Get("Location") != test.to {
				t.Errorf("status %d to %q, want %d to %q", resp.StatusCode, resp.Header.Get("Location"), test.status, test.to)
			}
			if test.status != http.StatusSeeOther && len(resp.Cookies()) > 0 {
				t.Errorf("cookies %v", resp.Cookies())
			}
		})
	}
}

func TestLogout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	resp := do(t, http.MethodPost, w.url+"/logout", "", nil)
	_ = resp.Body.Close()
	if c := resp.Cookies(); len(c) != 1 || c[0].MaxAge >= 0 || resp.Header.Get("Location") != "/login" {
		t.Errorf("cookies %v to %s", c, resp.Header.Get("Location"))
	}
}

func TestGuessingIsSlowedDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	right := map[string]string{"Authorization": "Bearer " + token}
	for i := range 10 {
		if status, _ := fetch(t, w.url+"/status", map[string]string{"Authorization": "Bearer nonsense"}); status != http.StatusUnauthorized {
			t.Fatalf("wrong token %d: status %d", i, status)
		}
	}
	resp := do(t, http.MethodPost, w.url+"/login", url.Values{"token": {token}}.Encode(), nil)
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" || len(resp.Cookies()) > 0 {
		t.Errorf("login after many wrong tokens: status %d, retry after %q", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
	if status, _ := fetch(t, w.url+"/status", right); status != http.StatusTooManyRequests {
		t.Errorf("right token after many wrong ones: status %d", status)
	}
	w.advance(11 * time.Second)
	if status, _ := fetch(t, w.url+"/status", right); status != http.StatusOK {
		t.Errorf("a while later: status %d", status)
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
		resp, err := http.DefaultClient.Do(req)
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
				t.Errorf("%s is %q", name, got)
			}
		}
	}
	if len(seen) != 2 {
		t.Error("a nonce was used twice")
	}
}

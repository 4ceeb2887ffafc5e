package admin_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

const session, signIn = "errand_session", "errand_sign_in"

func TestSignInLeadsOnlyToOwnPages(t *testing.T) {
	t.Parallel()
	p := newPeopled(t, nil)
	for next, want := range map[string]string{
		"/tasks/acme/shop/1?x=1": "/tasks/acme/shop/1?x=1", "/vms": "/vms", "": "/status", "//evil.example": "/status", `/\evil.example`: "/status",
		"https://evil.example/": "/status", "/login/github": "/status", "/login/github/callback?code=x": "/status", "/logout": "/status", "/%2f/evil.example": "/status",
		"/\t/evil.example": "/status", "javascript:alert(1)": "/status", "/" + strings.Repeat("x", 2000): "/status",
	} {
		if got := p.browser().signIn("rita", next); got != want {
			t.Errorf("next %q leads to %q, want %q", next, got, want)
		}
	}
}

// TestCallbackBelongsToTheBrowserThatStarted: nobody can sign another browser in, with an own code or a foreign one.
func TestCallbackBelongsToTheBrowserThatStarted(t *testing.T) {
	t.Parallel()
	for name, attack := range map[string]func(p *peopled, victim *browser) url.Values{
		"another browser's state": func(p *peopled, victim *browser) url.Values {
			st := p.browser().start("/status")
			victim.start("/status")
			return url.Values{"code": {"wes-" + st}, "state": {st}}
		},
		"no sign-in was started": func(p *peopled, _ *browser) url.Values {
			st := p.browser().start("/status")
			return url.Values{"code": {"wes-" + st}, "state": {st}}
		},
		"no state": func(_ *peopled, victim *browser) url.Values {
			return url.Values{"code": {"wes-" + victim.start("/status")}}
		},
		"an empty state": func(_ *peopled, victim *browser) url.Values {
			return url.Values{"code": {"wes-" + victim.start("/status")}, "state": {""}}
		},
		"too late": func(p *peopled, victim *browser) url.Values {
			st := victim.start("/status")
			p.advance(11 * time.Minute)
			return url.Values{"code": {"wes-" + st}, "state": {st}}
		},
		"a later end in the cookie": func(_ *peopled, victim *browser) url.Values {
			st := victim.start("/status")
			victim.jar[signIn] = "9" + victim.jar[signIn]
			return url.Values{"code": {"wes-" + st}, "state": {st}}
		},
		"another page in the cookie": func(_ *peopled, victim *browser) url.Values {
			st := victim.start("/status")
			parts := strings.Split(victim.jar[signIn], ".")
			parts[2] = "Ly9ldmlsLmV4YW1wbGU" // //evil.example
			victim.jar[signIn] = strings.Join(parts, ".")
			return url.Values{"code": {"wes-" + st}, "state": {st}}
		},
		"nonsense in the cookie": func(_ *peopled, victim *browser) url.Values {
			st := victim.start("/status")
			victim.jar[signIn] = "..." + strings.Repeat("x", 3000)
			return url.Values{"code": {"wes-" + st}, "state": {st}}
		},
		"another errand's cookie": func(p *peopled, victim *browser) url.Values {
			here := victim.base
			victim.base = serve(p.t, p.base)
			st := victim.start("/status")
			victim.base = here
			return url.Values{"code": {"wes-" + st}, "state": {st}}
		},
		"a code in pieces": func(_ *peopled, victim *browser) url.Values { return url.Values{"code": {"wes -" + victim.start("/")}} },
		"the person refuses": func(_ *peopled, victim *browser) url.Values {
			return url.Values{"error": {"access_denied"}, "state": {victim.start("/")}}
		},
		"GitHub refuses": func(_ *peopled, victim *browser) url.Values {
			return url.Values{"error": {"<script>alert(1)</script>"}, "error_description": {"<img>"}, "state": {victim.start("/")}}
		},
		"a code of nobody": func(_ *peopled, victim *browser) url.Values {
			st := victim.start("/status")
			return url.Values{"code": {"mallory-" + st}, "state": {st}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPeopled(t, nil)
			victim := p.browser()
			q := attack(p, victim)
			status, text := victim.page("/login/github/callback?" + q.Encode())
			if status < 400 || victim.jar[session] != "" || victim.jar[signIn] != "" {
				t.Errorf("status %d, cookies %v", status, victim.jar)
			}
			want(t, text, "Sign in with GitHub", `role="alert"`)
			wantNot(t, text, "<script>alert", "<img>", "evil")
			if status, _ := victim.page("/status"); status != http.StatusUnauthorized {
				t.Errorf("the board: status %d", status)
			}
		})
	}
}

// TestCodeSignsInOnce repeats a callback with the cookie of its flow, as somebody who has seen everything could.
func TestCodeSignsInOnce(t *testing.T) {
	t.Parallel()
	p := newPeopled(t, nil)
	b := p.browser()
	st := b.start("/status")
	flow := b.jar[signIn]
	q := url.Values{"code": {"rita-" + st}, "state": {st}}
	if resp := b.callback(q); resp.StatusCode != http.StatusSeeOther {
		t.Fatalf("sign-in: status %d", resp.StatusCode)
	}
	thief := p.browser()
	thief.jar[signIn] = flow
	if resp := thief.callback(q); resp.StatusCode < 400 || thief.jar[session] != "" {
		t.Errorf("the code again: status %d, cookies %v", resp.StatusCode, thief.jar)
	}
	// A browser that has signed in by another tab is not told that something went wrong.
	if resp := b.callback(q); resp.Header.Get("Location") != "/status" {
		t.Errorf("the callback again, signed in: status %d", resp.StatusCode)
	}
}

// TestSignInStartsANewSession: a cookie that somebody planted becomes nobody's session, and a new sign-in ends the old session.
func TestSignInStartsANewSession(t *testing.T) {
	t.Parallel()
	p := newPeopled(t, nil)
	planted := strings.Repeat("A", 52)
	b, thief := p.browser(), p.browser()
	b.jar[session], thief.jar[session] = planted, planted
	b.signIn("rita", "/status")
	first := b.jar[session]
	if first == planted {
		t.Error("the planted cookie was kept")
	}
	if status, _ := thief.page("/status.json"); status == http.StatusOK {
		t.Error("the planted cookie is a session")
	}
	b.signIn("otto", "/status")
	thief.jar[session] = first
	if status, _ := thief.page("/status.json"); status == http.StatusOK || b.jar[session] == first {
		t.Error("the old session goes on")
	}
}

func TestSessionsOfOnePersonAreLimited(t *testing.T) {
	t.Parallel()
	p := newPeopled(t, nil)
	otto, first := p.as("otto"), p.as("rita")
	for range 19 {
		p.advance(time.Second)
		p.as("rita")
	}
	if status, _ := first.page("/status.json"); status != http.StatusOK {
		t.Errorf("after 20 sign-ins: status %d", status)
	}
	p.as("rita")
	if status, _ := first.page("/status.json"); status == http.StatusOK {
		t.Error("21 sessions are valid")
	}
	if status, _ := otto.page("/status.json"); status != http.StatusOK {
		t.Errorf("another person's sign-ins ended a session: status %d", status)
	}
}

// TestSignInUsesThePublicAddress: behind a proxy the Host header says anything.
func TestSignInUsesThePublicAddress(t *testing.T) {
	t.Parallel()
	p := newPeopled(t, nil)
	https := p.base
	hub := *https.GitHub
	hub.PublicURL, https.GitHub, https.Secure = "https://errand.example.org/", &hub, true
	b := p.browser()
	b.base = serve(t, https)
	_, text := b.page("/tasks/acme/shop/1")
	want(t, text, `href="https://errand.example.org/login/github?next=%2Ftasks%2Facme%2Fshop%2F1"`)
	wantNot(t, text, "evil.example")
	st := b.start("/status")
	resp := b.callback(url.Values{"code": {"rita-" + st}, "state": {st}})
	if resp.StatusCode != http.StatusSeeOther || resp.Header.Get("Location") != "/status" {
		t.Fatalf("status %d to %s", resp.StatusCode, resp.Header.Get("Location"))
	}
	seen := 0
	for _, c := range resp.Cookies() {
		if c.MaxAge < 0 {
			continue
		}
		seen++
		if c.Name != "__Host-errand_session" || !c.Secure || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || c.Path != "/" || c.Domain != "" {
			t.Errorf("got cookie %v", c)
		}
	}
	if seen != 1 {
		t.Errorf("got cookies %v", resp.Cookies())
	}
	plain := p.browser()
	plain.base, plain.jar[session] = b.base, b.jar["__Host-errand_session"] // as a page without TLS could set it
	if status, _ := plain.page("/status.json"); status == http.StatusOK {
		t.Error("a cookie without the prefix is a session")
	}
}

// TestNamesAreText: nothing of an account is markup, and a person whom errand asks too much about learns that tasks may be missing.
func TestNamesAreText(t *testing.T) {
	t.Parallel()
	p := newPeopled(t, nil)
	p.hub.do(func() {
		who := p.hub.people["otto"]
		who.ID, who.Login = 9, `<b onclick="x">`
		p.hub.people["otto"] = who
	})
	_, text := p.as("otto").page("/status")
	wantNot(t, text, "<b onclick")
	want(t, text, "&lt;b onclick", "tasks may be missing here")
}

// TestWithoutSignInNothingChanges: without the configuration there is no way to sign in, and a person's cookie is nothing.
func TestWithoutSignInNothingChanges(t *testing.T) {
	t.Parallel()
	p := newPeopled(t, nil)
	b := p.as("olga")
	cfg := p.base
	cfg.GitHub = nil
	b.base = serve(t, cfg)
	for _, path := range []string{"/status", "/login/github", "/login/github/callback?code=x&state=y"} {
		if status, text := b.page(path); status != http.StatusUnauthorized || strings.Contains(text, "Sign in with GitHub") {
			t.Errorf("%s: status %d", path, status)
		}
	}
}

package admin_test

import (
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/admin/login"
)

// TestLostAccessTakesEffectWithinAMinute: GitHub is asked again, at most once a minute, and what it no longer grants is not shown.
func TestLostAccessTakesEffectWithinAMinute(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lose func(h *gitHub)
		task int // the status of the task's page afterwards
	}{
		"the repository":         {func(h *gitHub) { h.repos[3] = nil }, http.StatusNotFound},
		"the authorization":      {func(h *gitHub) { h.revoked[3] = true }, http.StatusSeeOther},
		"the account":            {func(h *gitHub) { delete(h.people, "rita") }, http.StatusSeeOther},
		"GitHub cannot be asked": {func(h *gitHub) { h.down = true }, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPeopled(t, nil)
			p.vault()
			b := p.as("rita")
			for range 10 {
				if status, _ := b.page("/tasks/acme/shop/1"); status != http.StatusOK {
					t.Fatalf("before: status %d", status)
				}
			}
			p.hub.do(func() { c.lose(p.hub) })
			if p.hub.lists != 1 {
				t.Errorf("GitHub listed repositories %d times within a minute", p.hub.lists)
			}
			log := b.get("/tasks/acme/shop/1/runs/1/events")
			if log.StatusCode != http.StatusOK {
				t.Fatalf("the live log: status %d", log.StatusCode)
			}
			p.advance(61 * time.Second)
			status, text := b.page("/tasks/acme/shop/1")
			if status != c.task || strings.Contains(text, "rounded") || strings.Contains(text, "ghu_") {
				t.Errorf("after a minute: status %d, want %d: %s", status, c.task, text)
			}
			rest, err := io.ReadAll(log.Body) // the log ends, although the run goes on
			if err != nil || strings.Contains(string(rest), "event: end") {
				t.Errorf("the live log: %v\n%s", err, rest)
			}
		})
	}
}

// TestUnavailableGitHubIsAskedAgain: after a failure people wait for seconds, not for a minute, and need not sign in again.
func TestUnavailableGitHubIsAskedAgain(t *testing.T) {
	t.Parallel()
	p := newPeopled(t, nil)
	p.launch(1)
	b := p.as("rita")
	p.hub.do(func() { p.hub.down = true })
	p.advance(61 * time.Second)
	b.page("/status")
	p.hub.do(func() { p.hub.down = false })
	if status, _ := b.page("/status"); status != http.StatusServiceUnavailable {
		t.Errorf("at once: status %d", status)
	}
	p.advance(6 * time.Second)
	if status, text := b.page("/status"); status != http.StatusOK || !strings.Contains(text, "rounded") {
		t.Errorf("later: status %d", status)
	}
}

// TestOperatorIsAnAccountNotALogin: who takes the login of an operator is no operator.
func TestOperatorIsAnAccountNotALogin(t *testing.T) {
	t.Parallel()
	p := newPeopled(t, nil)
	p.vault()
	isOperator := func(b *browser) bool {
		t.Helper()
		status, _ := b.page("/metrics")
		return status == http.StatusOK
	}
	olga := p.as("olga")
	if !isOperator(olga) {
		t.Fatal("olga is no operator")
	}
	p.hub.do(func() {
		p.hub.people["olga2"] = p.hub.people["olga"]
		renamed := p.hub.people["olga2"]
		renamed.Login = "olga2"
		p.hub.people["olga2"] = renamed
		stranger := p.hub.people["otto"]
		stranger.Login = "OLGA"
		p.hub.people["otto"] = stranger
		delete(p.hub.people, "olga")
	})
	if isOperator(p.as("otto")) {
		t.Error("the stranger with the operator's login is an operator")
	}
	p.advance(61 * time.Second)
	if isOperator(olga) {
		t.Error("the account is an operator by its old login")
	}
	for list, want := range map[string][2]bool{"olga:1": {true, false}, "olga2": {true, false}, "olga:4": {false, true}, "nobody": {}} {
		cfg := p.base
		hub := *cfg.GitHub
		hub.Operators, cfg.GitHub = []string{list}, &hub
		base := serve(t, cfg)
		for i, person := range []string{"olga2", "otto"} {
			b := p.browser()
			b.base = base
			b.signIn(person, "/status")
			if got := isOperator(b); got != want[i] {
				t.Errorf("operators [%s]: %s is one: %v", list, person, got)
			}
		}
	}
	broken := p.base
	broken.GitHub = &login.GitHub{Operators: []string{"olga:x"}}
	if _, err := admin.New(broken); err == nil {
		t.Error("a list of operators that cannot be read is accepted")
	}
}

func TestSessionsCanBeRevoked(t *testing.T) {
	t.Parallel()
	p := newPeopled(t, nil)
	olga, wes, rita, other := p.as("olga"), p.as("wes"), p.as("rita"), p.as("rita")
	byToken := logIn(t, p.url)
	valid := func(b *browser) bool {
		resp := b.send(http.MethodGet, "/status.json", nil, map[string]string{"Accept": "application/json"})
		return resp.StatusCode == http.StatusOK
	}
	stolen := p.browser()
	maps.Copy(stolen.jar, rita.jar)
	rita.send(http.MethodPost, "/logout", nil, nil)
	if valid(stolen) || rita.jar[session] != "" || !valid(other) || !valid(wes) {
		t.Error("the logout of one session ended another one, or not its own")
	}
	form := url.Values{"form": {wes.formToken()}}
	if resp := wes.send(http.MethodPost, "/logout/all", form, nil); resp.StatusCode != http.StatusForbidden || !valid(other) {
		t.Errorf("a writer logs everybody out: status %d", resp.StatusCode)
	}
	form.Set("form", olga.formToken())
	for name, headers := range map[string]map[string]string{"another site": {"Sec-Fetch-Site": "cross-site"}, "another origin": {"Origin": "https://evil.example"}} {
		if resp := olga.send(http.MethodPost, "/logout/all", form, headers); resp.StatusCode != http.StatusForbidden || !valid(other) {
			t.Errorf("%s: status %d", name, resp.StatusCode)
		}
	}
	if resp := olga.send(http.MethodPost, "/logout/all", nil, nil); resp.StatusCode != http.StatusForbidden || !valid(other) {
		t.Errorf("without the form token: status %d", resp.StatusCode)
	}
	if resp := do(t, http.MethodPost, p.url+"/logout/all", "", map[string]string{"Authorization": "Bearer wrong"}); resp.StatusCode != http.StatusUnauthorized || !valid(other) {
		t.Errorf("with a wrong token: status %d", resp.StatusCode)
	}
	if resp := olga.send(http.MethodPost, "/logout/all", form, nil); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("the operator: status %d", resp.StatusCode)
	}
	status, _ := fetch(t, p.url+"/status.json", map[string]string{"Cookie": byToken})
	if valid(other) || valid(wes) || valid(olga) || status != http.StatusUnauthorized {
		t.Errorf("sessions are valid: %v, %v, %v, with the token %d", valid(other), valid(wes), valid(olga), status)
	}
	again := p.as("rita")
	_ = do(t, http.MethodPost, p.url+"/logout/all", "", map[string]string{"Authorization": "Bearer " + token}).Body.Close()
	if valid(again) {
		t.Error("a session is valid after the token's holder ended all")
	}
}

// TestRestartAsksToSignInAgain: a browser with the session of the process before goes to GitHub and comes back. It happens once.
func TestRestartAsksToSignInAgain(t *testing.T) {
	t.Parallel()
	p := newPeopled(t, nil)
	b := p.as("rita")
	b.base = serve(t, p.base)
	if resp := b.send(http.MethodGet, "/status.json", nil, map[string]string{"Accept": "application/json"}); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a program: status %d", resp.StatusCode)
	}
	if resp := b.send(http.MethodGet, "/status", nil, map[string]string{"Sec-Fetch-Mode": "cors"}); resp.StatusCode != http.StatusUnauthorized || b.jar[session] == "" {
		t.Errorf("a script of the board: status %d", resp.StatusCode)
	}
	resp := b.get("/tasks/acme/shop/1?x=1")
	if to := resp.Header.Get("Location"); resp.StatusCode != http.StatusSeeOther || to != p.public+"/login/github?next=%2Ftasks%2Facme%2Fshop%2F1%3Fx%3D1" {
		t.Errorf("status %d to %s", resp.StatusCode, to)
	}
	if status, text := b.page("/status"); status != http.StatusUnauthorized || !strings.Contains(text, "Sign in with GitHub") {
		t.Errorf("again: status %d", status)
	}
	p.advance(9 * time.Hour)
	old := p.browser()
	old.signIn("rita", "/status")
	p.advance(9 * time.Hour)
	if resp := old.get("/status"); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("after the token's end: status %d", resp.StatusCode)
	}
}

package admin_test

import (
	"bytes"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/admin"
)

// TestFailedSignInsAreThrottled: who sends wrong codes, or errors as GitHub would, soon makes errand ask GitHub no more, and the log
// stays short. The same address can sign in a little later.
func TestFailedSignInsAreThrottled(t *testing.T) {
	t.Parallel()
	for name, q := range map[string]url.Values{"a code": {"code": {"mallory"}}, "an error": {"error": {"redirect_uri_mismatch"}}, "a refusal": {"error": {"access_denied"}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			p := newPeopled(t, func(c *admin.Config) { c.Log = zerolog.New(&log) })
			thief := p.browser()
			for range 10 {
				q := url.Values{"code": q["code"], "error": q["error"], "state": {thief.start("/status")}}
				if resp := thief.callback(q); resp.StatusCode == http.StatusTooManyRequests {
					t.Fatal("throttled too early")
				}
			}
			st, asked := thief.start("/status"), p.hub.codes
			resp := thief.callback(url.Values{"code": {"rita-" + st}, "state": {st}})
			if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" || p.hub.codes != asked {
				t.Errorf("the eleventh sign-in: status %d, GitHub was asked %d times more", resp.StatusCode, p.hub.codes-asked)
			}
			if n := strings.Count(log.String(), `"level":"error"`); n > 1 {
				t.Errorf("%d errors in the log:\n%s", n, log.String())
			}
			p.advance(11 * time.Second)
			p.as("rita")
		})
	}
}

// TestSlowQuestionsBlockNoSignIn: only the exchange of a code takes a slot, not the questions about the account after it.
func TestSlowQuestionsBlockNoSignIn(t *testing.T) {
	t.Parallel()
	p := newPeopled(t, nil)
	release := make(chan struct{})
	waiting := make(chan struct{}, 8)
	p.hub.do(func() {
		p.hub.checking = func() {
			waiting <- struct{}{}
			<-release
		}
	})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { p.as("rita") })
	}
	for range 8 {
		<-waiting
	}
	p.hub.do(func() { p.hub.checking = nil })
	b := p.browser()
	st := b.start("/status")
	if resp := b.callback(url.Values{"code": {"wes-" + st}, "state": {st}}); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("the ninth sign-in: status %d", resp.StatusCode)
	}
	close(release)
	all.Wait()
}

// TestOneBrowserIsOnePerson: a browser that logs in with the token is no longer the person, and one that signs in as a person no longer has
// the token, also if it does not send that cookie with the answer of GitHub.
func TestOneBrowserIsOnePerson(t *testing.T) {
	t.Parallel()
	p := newPeopled(t, nil)
	isOperator := func(b *browser) bool {
		t.Helper()
		status, _ := b.page("/metrics")
		return status == http.StatusOK
	}
	b, stolen := p.as("rita"), p.browser()
	stolen.jar[session] = b.jar[session]
	b.send(http.MethodPost, "/login", url.Values{"token": {"wrong"}}, nil)
	if status, _ := stolen.page("/status.json"); status != http.StatusOK {
		t.Errorf("a wrong token ended the session: status %d", status)
	}
	b.send(http.MethodPost, "/login", url.Values{"token": {token}}, nil)
	if b.jar[session] != "" || !isOperator(b) {
		t.Errorf("after the login with the token: cookies %v", b.jar)
	}
	if status, _ := stolen.page("/status.json"); status == http.StatusOK {
		t.Error("the person's session goes on")
	}
	strict := b.jar["errand_admin"] // SameSite=Strict: browsers do not send it when they come from GitHub
	st := b.start("/status")
	delete(b.jar, "errand_admin")
	dropped := false
	for _, c := range b.callback(url.Values{"code": {"rita-" + st}, "state": {st}}).Cookies() {
		dropped = dropped || c.Name == "errand_admin" && c.MaxAge < 0
	}
	if !dropped || isOperator(b) {
		t.Errorf("the sign-in does not take the cookie of the token: %v", b.jar)
	}
	other := p.browser()
	other.jar["errand_admin"] = strict
	if !isOperator(other) {
		t.Error("the sign-in ended the sessions of other operators")
	}
}

// TestEverybodyIsLoggedOut: people are logged out also if the store fails, and a sign-in that is under way does not survive.
func TestEverybodyIsLoggedOut(t *testing.T) {
	t.Parallel()
	p := newPeopled(t, nil)
	logAllOut := func() int {
		resp := do(t, http.MethodPost, p.url+"/logout/all", "", map[string]string{"Authorization": "Bearer " + token})
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	rita := p.as("rita")
	p.broken.Store(true)
	if status := logAllOut(); status != http.StatusInternalServerError {
		t.Errorf("with a broken store: status %d", status)
	}
	p.broken.Store(false)
	if status, _ := rita.page("/status.json"); status == http.StatusOK {
		t.Error("the session goes on although everybody was logged out")
	}
	p.hub.do(func() { p.hub.checking = func() { logAllOut() } })
	b := p.browser()
	st := b.start("/status")
	if resp := b.callback(url.Values{"code": {"wes-" + st}, "state": {st}}); resp.StatusCode != http.StatusBadGateway || b.jar[session] != "" {
		t.Errorf("a sign-in under way: status %d, cookies %v", resp.StatusCode, b.jar)
	}
	p.hub.do(func() { p.hub.checking = nil })
	p.as("wes")
}

// TestCommandsOfOnePersonAreLimited: who presses buttons all the time is told to wait, and neither other people nor operators are.
func TestCommandsOfOnePersonAreLimited(t *testing.T) {
	t.Parallel()
	p := newPeopled(t, nil)
	p.hub.do(func() { p.hub.repos[4] = p.hub.repos[2] })
	p.vault()
	press := func(b *browser) *http.Response {
		return b.send(http.MethodPost, "/tasks/acme/shop/1/actions/stop", url.Values{"form": {b.formToken()}}, nil)
	}
	wes, otto, olga := p.as("wes"), p.as("otto"), p.as("olga")
	for n := range 10 {
		if resp := press(wes); resp.StatusCode != http.StatusSeeOther {
			t.Fatalf("command %d: status %d", n+1, resp.StatusCode)
		}
	}
	for _, b := range []*browser{wes, p.as("wes")} { // another browser does not help
		if resp := press(b); resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
			t.Errorf("the eleventh command: status %d", resp.StatusCode)
		}
	}
	if len(p.acted) != 10 {
		t.Errorf("%d commands were carried out", len(p.acted))
	}
	if resp := press(otto); resp.StatusCode != http.StatusSeeOther {
		t.Errorf("another person: status %d", resp.StatusCode)
	}
	for range 12 {
		if resp := press(olga); resp.StatusCode != http.StatusSeeOther {
			t.Fatalf("an operator: status %d", resp.StatusCode)
		}
	}
	p.advance(7 * time.Second)
	if first, second := press(wes).StatusCode, press(wes).StatusCode; first != http.StatusSeeOther || second != http.StatusTooManyRequests {
		t.Errorf("after a pause: status %d, then %d", first, second)
	}
}

// TestLiveLogsOfOnePersonAreLimited: one person cannot take the live logs of everybody.
func TestLiveLogsOfOnePersonAreLimited(t *testing.T) {
	t.Parallel()
	p := newPeopled(t, nil)
	p.vault()
	rita, wes, olga := p.as("rita"), p.as("wes"), p.as("olga")
	var first *http.Response
	for n := range 8 {
		resp := rita.get(eventsPath)
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("live log %d: status %d", n+1, resp.StatusCode)
		}
		if first == nil {
			first = resp
		}
	}
	for _, b := range []*browser{rita, p.as("rita")} { // another browser does not help
		if resp := b.get(eventsPath); resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
			t.Errorf("the ninth live log: status %d", resp.StatusCode)
		}
	}
	for range 9 {
		if resp := olga.get(eventsPath); resp.StatusCode != http.StatusOK {
			t.Fatalf("an operator: status %d", resp.StatusCode)
		}
	}
	if resp := wes.get(eventsPath); resp.StatusCode != http.StatusOK {
		t.Errorf("another person: status %d", resp.StatusCode)
	}
	_ = first.Body.Close()
	for range 200 { // the server notices the disconnect
		if resp := rita.get(eventsPath); resp.StatusCode == http.StatusOK {
			return
		}
	}
	t.Error("a closed live log counts")
}

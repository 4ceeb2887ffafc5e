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

package gateway

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/internal/subscription"
	"github.com/errand-bot/errand/state"
)

// subscriptionEnd is the end of a VM whose provider is called on a subscription, and that provider.
type subscriptionEnd struct {
	*vmEnd
	books  *taskLedger
	states *providers
	path   string // of the login

	mu      sync.Mutex
	calls   []*http.Request
	bodies  []string
	access  string // the accepted token
	refresh string
	n       int  // renewals
	down    bool // renewals fail
}

func newSubscriptionEnd(t *testing.T) *subscriptionEnd {
	t.Helper()
	p := &subscriptionEnd{books: &taskLedger{task: *someTask()}, states: &providers{}, path: filepath.Join(t.TempDir(), "login"), access: "access-0", refresh: "refresh-0"}
	model := httptest.NewServer(p)
	t.Cleanup(model.Close)
	p.logIn(t, "access-0", "refresh-0")
	p.vmEnd = newVMEnd(t, nil, func(c *Config) {
		c.Providers = map[string]Provider{"anthropic": {
			BaseURL: model.URL, API: modelapi.Anthropic,
			Subscription: subscription.New(subscription.Config{Login: p.path, RenewURL: model.URL + "/renew"}),
		}}
		c.Tasks, c.Ledger, c.ProviderStates, c.Backoff = p.books, p.books, p.states, time.Nanosecond
		c.Prices = modelapi.Prices{"claude-x": {Input: 1000, Output: 1000}}
	})
	return p
}

func (p *subscriptionEnd) logIn(t *testing.T, access, refresh string) {
	t.Helper()
	text := fmt.Sprintf(`{"claudeAiOauth":{"accessToken":%q,"refreshToken":%q}}`, access, refresh)
	if err := os.WriteFile(p.path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (p *subscriptionEnd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.URL.Path == "/renew" {
		p.renew(w, body)
		return
	}
	p.calls, p.bodies = append(p.calls, r), append(p.bodies, string(body))
	if r.Header.Get("Authorization") != "Bearer "+p.access {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, `{"type":"error","error":{"type":"authentication_error","message":"`+r.Header.Get("Authorization")+` has expired"}}`)
		return
	}
	_, _ = io.WriteString(w, `{"model":"claude-x","usage":{"input_tokens":900,"output_tokens":100}}`)
}

func (p *subscriptionEnd) renew(w http.ResponseWriter, body []byte) {
	var request map[string]string
	_ = json.Unmarshal(body, &request)
	switch {
	case p.down:
		w.WriteHeader(http.StatusBadGateway)
	case request["refresh_token"] != p.refresh:
		w.WriteHeader(http.StatusBadRequest)
	default:
		p.n++
		p.access, p.refresh = fmt.Sprintf("access-%d", p.n), fmt.Sprintf("refresh-%d", p.n)
		_, _ = fmt.Fprintf(w, `{"access_token":%q,"refresh_token":%q,"expires_in":28800}`, p.access, p.refresh)
	}
}

func (p *subscriptionEnd) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

func (p *subscriptionEnd) call(t *testing.T) (int, string) {
	t.Helper()
	return send(t, webtest.Client(), http.MethodPost, p.url+modelPath, map[string]string{
		"X-Api-Key": runToken, "Anthropic-Beta": "claude-code-20250219, fine-grained-tool-streaming-2025-05-14",
	})
}

// TestSubscription: a call continues with a renewed token and its whole body; tokens are counted, and no dollars.
func TestSubscription(t *testing.T) {
	t.Parallel()
	p := newSubscriptionEnd(t)
	p.books.task.Money = state.Money{MicroUSD: 5, CapMicroUSD: 5} // at a cap that does not count
	p.books.task.Settings.Limits.RunMicroUSD = 1
	if status, body := p.call(t); status != http.StatusOK {
		t.Fatalf("got status %d: %s", status, body)
	}
	p.set(func() { p.access = "" }) // it has ended
	if status, body := p.call(t); status != http.StatusOK || strings.Contains(body, "access") {
		t.Fatalf("got status %d: %s", status, body)
	}
	if len(p.calls) != 3 || p.n != 1 {
		t.Fatalf("got %d calls, %d renewals", len(p.calls), p.n)
	}
	for i, r := range p.calls {
		if beta := r.Header.Get("Anthropic-Beta"); beta != "claude-code-20250219,fine-grained-tool-streaming-2025-05-14,oauth-2025-04-20" {
			t.Errorf("got beta header %q", beta)
		}
		if r.Header.Get("X-Api-Key") != "" || p.bodies[i] != `"body;"` {
			t.Errorf("got key %q and body %q", r.Header.Get("X-Api-Key"), p.bodies[i])
		}
	}
	want := state.Money{InputTokens: 1800, OutputTokens: 200, MicroUSD: 5, CapMicroUSD: 5, Subscription: true}
	if got := p.books.task.Money; got != want {
		t.Errorf("got usage of the task %+v", got)
	}
	p.books.task.Money.CapTokens = 2000
	if status, body := p.call(t); status != http.StatusForbidden || !strings.Contains(body, "cap of 2,000 tokens") {
		t.Errorf("at the cap of tokens: got status %d: %s", status, body)
	}
}

// TestRefusedSubscription: a login that the operator has to renew makes runs wait, is reported without tokens, and
// works as soon as there is another login; temporary errors are only retried.
func TestRefusedSubscription(t *testing.T) {
	t.Parallel()
	p := newSubscriptionEnd(t)
	p.set(func() { p.access, p.down = "", true })
	if status, body := p.call(t); status != http.StatusBadGateway || strings.Contains(body, "access") || p.states.row != nil {
		t.Fatalf("temporary error: got status %d, %s, %+v", status, body, p.states.row)
	}
	p.set(func() { p.refresh, p.down = "", false })
	status, body := p.call(t)
	if status != http.StatusForbidden || !strings.Contains(body, "refuses errand's subscription") || strings.Contains(body, "access-") {
		t.Fatalf("got status %d: %s", status, body)
	}
	if w := p.books.wait; w == nil || w.Kind != state.WaitKey || !strings.Contains(w.Hint, "`models.anthropic.subscription.login`") {
		t.Fatalf("got stored wait %+v", w)
	}
	if w, err := p.gateway.ProviderWait(t.Context(), "anthropic"); w == nil || err != nil {
		t.Errorf("ready: got %+v, %v", w, err)
	}
	p.set(func() { p.access = "access-new" })
	p.logIn(t, "access-new", "refresh-new")
	if w, err := p.gateway.ProviderWait(t.Context(), "anthropic"); w != nil || err != nil {
		t.Errorf("with another login: got %+v, %v", w, err)
	}
	if status, body := p.call(t); status != http.StatusOK || p.states.row != nil {
		t.Errorf("got status %d: %s, %+v", status, body, p.states.row)
	}
	if err := os.Remove(p.path); err != nil {
		t.Fatal(err)
	}
	if status, body := p.call(t); status != http.StatusForbidden || strings.Contains(body, p.path) {
		t.Errorf("no file: got status %d: %s", status, body)
	}
}

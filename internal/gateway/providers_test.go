package gateway

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/gateway/gatewaytest"
	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// providers stores the state of one provider.
type providers struct {
	mu  sync.Mutex
	row *state.ProviderState
}

func (p *providers) Get(context.Context, string) (*state.ProviderState, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.row, nil
}

func (p *providers) Set(_ context.Context, _ string, u *state.ProviderState) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.row = u
	return nil
}

// providerEnd is the end of a VM whose provider answers as the test wants, with a clock of the test.
type providerEnd struct {
	*vmEnd
	ledger *ledger
	states *providers
	answer atomic.Pointer[http.HandlerFunc]
	asked  atomic.Int64 // calls and probes
	now    atomic.Int64 // seconds since start
	start  time.Time
}

func newProviderEnd(t *testing.T, api modelapi.API) *providerEnd {
	t.Helper()
	p := &providerEnd{ledger: &ledger{}, states: &providers{}, start: time.Date(2026, 11, 21, 22, 0, 0, 0, time.UTC)}
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.asked.Add(1)
		if r.Header.Get("X-Api-Key") != modelKey {
			t.Errorf("%s: got no key", r.URL.Path)
		}
		(*p.answer.Load())(w, r)
	}))
	t.Cleanup(model.Close)
	p.vmEnd = newVMEnd(t, someTask(), func(c *Config) {
		c.Providers = map[string]Provider{"anthropic": {BaseURL: model.URL, Key: modelKey, Header: "X-Api-Key", API: api}}
		c.Prices, c.Ledger, c.ProviderStates, c.Backoff = modelapi.Prices{"claude-x": {Input: 3}}, p.ledger, p.states, time.Minute
		c.Now = func() time.Time { return p.start.Add(time.Duration(p.now.Load()) * time.Second) }
	})
	return p
}

func (p *providerEnd) answerWith(status int, header, body string) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if k, v, ok := strings.Cut(header, ": "); ok {
			w.Header().Set(k, v)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
	p.answer.Store(&answer)
}

func (p *providerEnd) call(t *testing.T) (int, string) {
	t.Helper()
	return send(t, webtest.Client(), http.MethodPost, p.url+modelPath, gatewaytest.Bearer(runToken))
}

func (p *providerEnd) ready(t *testing.T) *state.Waiting {
	t.Helper()
	w, err := p.gateway.ProviderWait(t.Context(), "anthropic")
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// TestRefusedKey: a refused key makes every run wait, is not mentioned on VMs, and is checked without a run until it
// works.
func TestRefusedKey(t *testing.T) {
	t.Parallel()
	p := newProviderEnd(t, modelapi.Anthropic)
	p.answerWith(http.StatusUnauthorized, "", `{"type":"error","error":{"type":"authentication_error","message":"invalid key `+modelKey+`"}}`)
	status, body := p.call(t)
	if status != http.StatusForbidden || !strings.Contains(body, "refuses errand's key") || strings.Contains(body, modelKey) {
		t.Fatalf("got status %d: %s", status, body)
	}
	if w := p.ledger.wait; w == nil || w.Kind != state.WaitKey || !w.Until.Equal(p.start.Add(time.Minute)) || !strings.Contains(w.Hint, "`models.anthropic`") {
		t.Fatalf("got stored wait %+v", w)
	}
	if w := p.ready(t); w == nil || p.asked.Load() != 1 {
		t.Errorf("ready: got %+v after %d requests", w, p.asked.Load())
	}
	if status, _ := p.call(t); status != http.StatusForbidden || p.asked.Load() != 1 {
		t.Errorf("the next call: got status %d, %d requests", status, p.asked.Load())
	}
	for _, wait := range []int64{60, 120, 240, 300, 300} { // how long it is waited until each look
		p.now.Add(wait)
		if w := p.ready(t); w == nil || w.Until.Sub(p.start.Add(time.Duration(p.now.Load())*time.Second)) > 5*time.Minute {
			t.Fatalf("after %d s: %+v", wait, w)
		}
	}
	if got := p.asked.Load(); got != 6 {
		t.Errorf("%d requests, want one for each check", got)
	}
	p.answerWith(http.StatusOK, "Content-Type: application/json", usageLine)
	p.now.Add(300)
	if w := p.ready(t); w != nil {
		t.Fatalf("the key works: got %+v", w)
	}
	if status, _ := p.call(t); status != http.StatusOK || p.states.row != nil {
		t.Errorf("got status %d, known %+v", status, p.states.row)
	}
}

// TestLimitIsStored: a lasting limit is passed on unchanged, and no run is started before it ends.
func TestLimitIsStored(t *testing.T) {
	t.Parallel()
	for name, seconds := range map[string]int{"a long one": 7200, "a short one": 30} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProviderEnd(t, modelapi.Anthropic)
			said := `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`
			p.answerWith(http.StatusTooManyRequests, "Retry-After: "+strconv.Itoa(seconds), said)
			resp := p.raw(t)
			if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") != strconv.Itoa(seconds) {
				t.Fatalf("got status %d, headers %v", resp.StatusCode, resp.Header)
			}
			if body, err := io.ReadAll(resp.Body); err != nil || string(body) != said {
				t.Errorf("%s (%v)", body, err)
			}
			if long := seconds > 60; (p.ready(t) != nil) != long || (p.ledger.wait != nil) != long {
				t.Fatalf("ready %+v, stored with the run %+v", p.ready(t), p.ledger.wait)
			}
			p.now.Add(int64(seconds))
			if w := p.ready(t); w != nil || p.asked.Load() != 1 {
				t.Errorf("after the limit: got %+v, %d requests", w, p.asked.Load())
			}
		})
	}
}

// TestAnswerEndsALimit: an answer to a call of an active run deletes a stored limit.
func TestAnswerEndsALimit(t *testing.T) {
	t.Parallel()
	p := newProviderEnd(t, modelapi.Anthropic)
	p.states.row = &state.ProviderState{Kind: state.WaitLimit, Detail: "used up", Until: p.start.Add(time.Hour)}
	if p.ready(t) == nil {
		t.Fatal("a run may start despite a limit")
	}
	p.answerWith(http.StatusOK, "Content-Type: application/json", usageLine)
	if status, _ := p.call(t); status != http.StatusOK || p.ready(t) != nil {
		t.Errorf("got status %d, ready %+v", status, p.ready(t))
	}
}

// raw makes a call and returns the response.
func (p *providerEnd) raw(t *testing.T) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.url+modelPath, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", runToken)
	resp, err := webtest.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	return resp
}

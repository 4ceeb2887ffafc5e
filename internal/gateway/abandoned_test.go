package gateway

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// TestAbandonedCallIsCharged: a call that is abandoned after it was sent and before its answer begins is charged by the
// length of its request, and counts as a turn.
func TestAbandonedCallIsCharged(t *testing.T) {
	t.Parallel()
	body := `{"model":"claude-x","max_tokens":64000,"messages":"` + strings.Repeat("word ", 1000) + `"}`
	tests := map[string]struct {
		path string
		most int
		want state.Money
	}{
		"a call":                         {modelPath, 1, state.Money{InputTokens: int64(len(body) / 4), MicroUSD: int64(len(body) / 4 * 3)}},
		"counting tokens, costs nothing": {modelPath + "/count_tokens", 0, state.Money{}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked, over := make(chan struct{}, 2), make(chan struct{})
			model := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				asked <- struct{}{}
				<-r.Context().Done()
			}))
			t.Cleanup(model.Close)
			b := &taskLedger{task: *someTask()}
			w := newVMEnd(t, nil, func(c *Config) {
				c.Providers = map[string]Provider{"anthropic": {BaseURL: model.URL, Key: modelKey, Header: "X-Api-Key", API: modelapi.Anthropic}}
				c.Tasks, c.Ledger, c.Prices = b, b, modelapi.Prices{"claude-x": {Input: 3, Output: 15}, "claude-y": {Input: 100}}
			})
			// The handler is called directly, so that its end can be observed.
			h := w.vm
			ctx, hangUp := context.WithCancel(t.Context())
			req := httptest.NewRequestWithContext(ctx, http.MethodPost, test.path, strings.NewReader(body))
			req.Header.Set("X-Api-Key", runToken)
			go func() {
				defer close(over)
				h.ServeHTTP(httptest.NewRecorder(), req)
			}()
			<-asked
			hangUp()
			<-over
			b.mu.Lock()
			got := b.task.Run.Money
			b.task.Run.MaxTurns = 1
			b.mu.Unlock()
			if got != test.want {
				t.Errorf("booked %+v, want %+v", got, test.want)
			}
			ctx, hangUp = context.WithCancel(t.Context())
			defer hangUp()
			req = httptest.NewRequestWithContext(ctx, http.MethodPost, modelPath, strings.NewReader(body))
			req.Header.Set("X-Api-Key", runToken)
			next, answer := make(chan struct{}), httptest.NewRecorder()
			go func() {
				defer close(next)
				h.ServeHTTP(answer, req)
			}()
			select {
			case <-next:
			case <-asked:
				hangUp()
				<-next
			}
			if refused := strings.Contains(answer.Body.String(), "turns are used up (1)"); refused != (test.most == 1) {
				t.Errorf("next call: got status %d: %s", answer.Code, answer.Body)
			}
		})
	}
}

// TestIncompleteAnswerIsCharged: an answer that is not streamed and breaks off is charged by what was received, at the
// price of the requested model.
func TestIncompleteAnswerIsCharged(t *testing.T) {
	t.Parallel()
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "100000")
		_, _ = io.WriteString(w, `{"type":"message","content":"`+strings.Repeat("x", 1172))
	}))
	t.Cleanup(model.Close)
	paid := make(chan state.Money, 1)
	w := newVMEnd(t, someTask(), func(c *Config) {
		c.Providers = map[string]Provider{"anthropic": {BaseURL: model.URL, Key: modelKey, Header: "X-Api-Key", API: modelapi.Anthropic}}
		c.Ledger, c.Prices = costs(paid), modelapi.Prices{"claude-x": {Input: 3, Output: 15}, "claude-y": {Input: 100}}
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+modelPath, strings.NewReader(`{"model":"claude-x"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", runToken)
	resp, err := webtest.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body) // it is cut
	_ = resp.Body.Close()
	if got, want := <-paid, (state.Money{InputTokens: 5, OutputTokens: 300, MicroUSD: 15 + 4500}); got != want {
		t.Errorf("charged %+v, want %+v", got, want)
	}
}

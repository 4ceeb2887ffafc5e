package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// TestIdleTimeout: errand does not wait for a provider that sends nothing, before an answer or within one; it charges
// what was received, and Retry-After is longer than any agent waits.
func TestIdleTimeout(t *testing.T) {
	t.Parallel()
	for name, begins := range map[string]bool{"before an answer": false, "within an answer": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if begins {
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, `data: {"type":"message_start","message":{"model":"claude-x","usage":{"input_tokens":1000,"output_tokens":1}}}`+"\n\n")
					_ = http.NewResponseController(w).Flush()
				}
				_, _ = io.Copy(io.Discard, r.Body)
				<-r.Context().Done()
			}))
			t.Cleanup(model.Close)
			l := &ledger{}
			w := newVMEnd(t, someTask(), func(c *Config) {
				c.Providers = map[string]Provider{"anthropic": {BaseURL: model.URL, Key: modelKey, Header: "X-Api-Key", API: modelapi.Anthropic}}
				c.Prices, c.Ledger, c.IdleTimeout = modelapi.Prices{"claude-x": {Input: 3}}, l, time.Second
			})
			call := func() *http.Response {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+modelPath, strings.NewReader("{}"))
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
			first := call()
			if begins {
				if _, err := io.Copy(io.Discard, first.Body); err == nil {
					t.Error("the answer was complete")
				}
				l.mu.Lock()
				if len(l.booked) != 1 || l.booked[0] != (state.Money{InputTokens: 1000, OutputTokens: 1, MicroUSD: 3000}) {
					t.Errorf("got booked %+v", l.booked)
				}
				l.mu.Unlock()
				// The silent provider is refused for as long as its silence lasted. On a slow machine, that time may have passed.
				for first = call(); first.StatusCode == http.StatusOK && t.Context().Err() == nil; first = call() {
					_, _ = io.Copy(io.Discard, first.Body) // cut off as well
				}
			}
			body, err := io.ReadAll(first.Body)
			if first.StatusCode != http.StatusServiceUnavailable || first.Header.Get("Retry-After") != "120" || !strings.Contains(string(body), "sent nothing for") || err != nil {
				t.Errorf("got status %d, %v: %s (%v)", first.StatusCode, first.Header, body, err)
			}
		})
	}
}

// TestTimedOutCallIsCharged: a call that is not streamed and times out is charged as if its program had hung up;
// otherwise long reasoning would be free.
func TestTimedOutCallIsCharged(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		body string
		want state.Money
	}{
		"not streamed": {`{"model":"claude-x","max_tokens":64000}`, state.Money{InputTokens: 9, MicroUSD: 27}},
		"streamed":     {`{"model":"claude-x","max_tokens":64000,"stream":true}`, state.Money{}}, // which would have begun
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				<-r.Context().Done()
			}))
			t.Cleanup(model.Close)
			b := &taskLedger{task: *someTask()}
			w := newVMEnd(t, nil, func(c *Config) {
				c.Providers = map[string]Provider{"anthropic": {BaseURL: model.URL, Key: modelKey, Header: "X-Api-Key", API: modelapi.Anthropic}}
				c.Tasks, c.Ledger, c.Prices, c.IdleTimeout = b, b, modelapi.Prices{"claude-x": {Input: 3, Output: 15}}, time.Second
			})
			// The handler is called directly, so that its end can be observed.
			req, answer := httptest.NewRequestWithContext(t.Context(), http.MethodPost, modelPath, strings.NewReader(test.body)), httptest.NewRecorder()
			req.Header.Set("X-Api-Key", runToken)
			w.vm.ServeHTTP(answer, req)
			if answer.Code != http.StatusServiceUnavailable || b.task.Run.Money != test.want {
				t.Errorf("status %d, booked %+v, want %+v", answer.Code, b.task.Run.Money, test.want)
			}
		})
	}
}

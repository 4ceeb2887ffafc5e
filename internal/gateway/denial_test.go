package gateway

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// refusalLedger is a ledger that records why runs were denied an answer.
type refusalLedger struct {
	costs
	mu   sync.Mutex
	list []state.Waiting
}

func (d *refusalLedger) Record(_ context.Context, u UsageRecord) error {
	id, m, wait := u.Run, u.Cost, u.Wait
	d.mu.Lock()
	defer d.mu.Unlock()
	if wait != nil && id == run && m == (state.Money{}) {
		d.list = append(d.list, *wait)
	}
	return nil
}

// TestDenialIsStoredWithTheRun: the reason of a denial is stored with the run, because its program may report anything;
// repeated calls store it once.
func TestDenialIsStoredWithTheRun(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		path, body string
		want       string // empty: it may pass
	}{
		"another model": {"/llm/anthropic/v1/messages", `{"model":"claude-z","max_tokens":5}`, "errand denied a model call: this run may call claude-x, not claude-z"},
		"another path":  {"/llm/anthropic/v1/files", `{}`, "errand denied a model call: agents may only call the model and no other endpoint of its API: not POST /v1/files"},
		"its own model": {"/llm/anthropic/v1/messages", `{"model":"claude-x","max_tokens":5}`, ""},
		"invalid JSON":  {"/llm/anthropic/v1/messages", `{`, "errand denied a model call: the request cannot be checked: its body is not JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := &refusalLedger{costs: make(costs, 100)}
			api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
			t.Cleanup(api.Close)
			e := newVMEnd(t, someTask(), func(c *Config) {
				c.Ledger = d
				c.Providers = map[string]Provider{"anthropic": {BaseURL: api.URL, Key: modelKey, Header: "X-Api-Key", API: modelapi.Anthropic}}
				c.AllowedModels = func(*state.Task) AllowedModels { return AllowedModels{Names: []string{"claude-x"}} }
			})
			for range 3 {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.url+test.path, strings.NewReader(test.body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Authorization", "Bearer "+runToken)
				resp, err := webtest.Client().Do(req)
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
			}
			d.mu.Lock()
			defer d.mu.Unlock()
			switch {
			case test.want == "" && len(d.list) > 0, test.want != "" && len(d.list) != 1:
				t.Fatalf("got stored wait %+v", d.list)
			case test.want != "" && (d.list[0].Kind != state.WaitRefused || d.list[0].Detail != test.want || !d.list[0].Until.IsZero()):
				t.Errorf("stored with the run: %+v, want %q", d.list[0], test.want)
			}
		})
	}
}

// TestDenialsAreLoggedOnceAMinute: of a run's denials one in a minute may be logged, and counts those that were
// suppressed.
func TestDenialsAreLoggedOnceAMinute(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	var r denialLog
	for i, step := range []struct {
		run        string
		at         time.Duration
		ok         bool
		suppressed int
	}{
		{"a", 0, true, 0}, {"a", time.Second, false, 0}, {"b", time.Second, true, 0}, {"a", 59 * time.Second, false, 0},
		{"a", time.Minute, true, 2}, {"a", 61 * time.Second, false, 0}, {"b", time.Hour, true, 0}, {"a", time.Hour, true, 1},
	} {
		if suppressed, ok := r.mayLog(step.run, noon.Add(step.at)); suppressed != step.suppressed || ok != step.ok {
			t.Errorf("step %d: allowed %v with %d suppressed, want %v with %d", i, ok, suppressed, step.ok, step.suppressed)
		}
	}
}

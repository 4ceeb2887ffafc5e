package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/gateway/gatewaytest"
	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// ledger records what was booked, and fails while fail is set.
type ledger struct {
	mu     sync.Mutex
	booked []state.Money
	runs   []string
	fail   bool

	globalCap, wait *state.Waiting
}

func (l *ledger) CapReached(context.Context, state.Money, state.Money, bool) (*state.Waiting, error) {
	return l.globalCap, nil
}

func (l *ledger) Left(context.Context, state.Money, bool) (state.Remaining, error) {
	return state.Unlimited(), nil
}

func (l *ledger) Record(_ context.Context, u UsageRecord) error {
	run, m, wait := u.Run, u.Cost, u.Wait
	l.mu.Lock()
	defer l.mu.Unlock()
	if wait != nil {
		l.wait = wait
		return nil
	}
	if l.fail {
		return errors.New("no disk")
	}
	l.booked, l.runs = append(l.booked, m), append(l.runs, run)
	return nil
}

const usageLine = `{"type":"message","model":"claude-x","usage":{"input_tokens":1000,"output_tokens":100,"cache_read_input_tokens":10}}`

// newAnsweringEnd returns the end of a VM whose model answers with the body, and its ledger.
func newAnsweringEnd(t *testing.T, task *state.Task, status int, kind, body string) (*vmEnd, *ledger) {
	t.Helper()
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(model.Close)
	l := &ledger{}
	w := newVMEnd(t, task, func(c *Config) {
		c.Providers = map[string]Provider{"anthropic": {BaseURL: model.URL, Key: modelKey, Header: "X-Api-Key", API: modelapi.Anthropic}}
		c.Prices = modelapi.Prices{"claude-x": {Input: 3, Output: 15, CacheRead: 0.3}, "claude-y": {Input: 30}}
		c.Ledger = l
	})
	return w, l
}

// TestAnswerIsCharged: the cost of an answer is booked to the run before its end is passed on.
func TestAnswerIsCharged(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status     int
		kind, body string
		want       []state.Money
	}{
		"not streamed": {200, "application/json", usageLine, []state.Money{{InputTokens: 1010, OutputTokens: 100, MicroUSD: 4503}}},
		"streamed":     {200, "text/event-stream", "data: " + usageLine + "\n\n", []state.Money{{InputTokens: 1010, OutputTokens: 100, MicroUSD: 4503}}},
		"unknown":      {200, "application/json", strings.ReplaceAll(usageLine, "claude-x", "mystery"), []state.Money{{InputTokens: 1010, OutputTokens: 100, MicroUSD: 31503, Unpriced: "mystery"}}},
		"refused":      {529, "application/json", usageLine, nil},
		"no usage":     {200, "application/json", `{"model":"claude-x","content":[]}`, []state.Money{{InputTokens: 1, OutputTokens: 8, MicroUSD: 123}}},
		"no answer":    {200, "application/json", `{"error":{}}`, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, l := newAnsweringEnd(t, someTask(), test.status, test.kind, test.body)
			status, body := send(t, webtest.Client(), http.MethodPost, w.url+modelPath, gatewaytest.Bearer(runToken))
			if status != test.status || body != test.body {
				t.Errorf("got status %d: %s", status, body)
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			if diff := cmp.Diff(test.want, l.booked); diff != "" {
				t.Errorf("booked (-want +got):\n%s", diff)
			}
			for _, r := range l.runs {
				if r != run {
					t.Errorf("got a cost for run %s", r)
				}
			}
		})
	}
}

// TestPartOfAnAnswerIsCharged: a program that does not wait for the end of an answer pays for what was sent.
func TestPartOfAnAnswerIsCharged(t *testing.T) {
	t.Parallel()
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"type":"message_start","message":{"model":"claude-x","usage":{"input_tokens":1000,"output_tokens":1}}}`+"\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(model.Close)
	paid := make(chan state.Money, 1)
	w := newVMEnd(t, someTask(), func(c *Config) {
		c.Providers = map[string]Provider{"anthropic": {BaseURL: model.URL, Key: modelKey, Header: "X-Api-Key", API: modelapi.Anthropic}}
		c.Prices, c.Ledger = modelapi.Prices{"claude-x": {Input: 3, Output: 15}}, costs(paid)
	})
	ctx, hangUp := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+modelPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", runToken)
	resp, err := webtest.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := resp.Body.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	hangUp()
	_ = resp.Body.Close()
	if got, want := <-paid, (state.Money{InputTokens: 1000, OutputTokens: 1, MicroUSD: 3015}); got != want {
		t.Errorf("charged %+v, want %+v", got, want)
	}
}

type costs chan state.Money

func (costs) CapReached(context.Context, state.Money, state.Money, bool) (*state.Waiting, error) {
	return nil, nil
}

func (costs) Left(context.Context, state.Money, bool) (state.Remaining, error) {
	return state.Unlimited(), nil
}

func (p costs) Record(_ context.Context, u UsageRecord) error {
	m := u.Cost
	p <- m
	return nil
}

// TestCapDeniesCalls: at a cap calls are denied in a form that agents understand.
func TestCapDeniesCalls(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		money state.Money
		want  int
	}{
		"below": {state.Money{MicroUSD: 9_999_999, CapMicroUSD: 10_000_000}, 200},
		"at":    {state.Money{MicroUSD: 10_000_000, CapMicroUSD: 10_000_000}, 403},
		"none":  {state.Money{MicroUSD: 10_000_000}, 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := someTask()
			task.Money = test.money
			w, _ := newAnsweringEnd(t, task, 200, "text/event-stream", "data: "+usageLine+"\n\n")
			status, body := sendBody(t, webtest.Client(), http.MethodPost, w.url+modelPath, streamed, gatewaytest.Bearer(runToken))
			if status != test.want || status == 403 && !strings.Contains(body, `"type":"permission_error"`) {
				t.Errorf("got status %d: %s", status, body)
			}
		})
	}
}

// TestGlobalCapDeniesCalls: at a cap of all tasks calls are denied, and the reason is stored with the run.
func TestGlobalCapDeniesCalls(t *testing.T) {
	t.Parallel()
	w, l := newAnsweringEnd(t, someTask(), 200, "application/json", usageLine)
	l.globalCap = &state.Waiting{Kind: state.WaitMoney, Detail: "today's cap is reached"}
	status, body := send(t, webtest.Client(), http.MethodPost, w.url+modelPath, gatewaytest.Bearer(runToken))
	if status != http.StatusForbidden || !strings.Contains(body, "today's cap") || l.wait != l.globalCap || len(l.booked) > 0 {
		t.Errorf("got status %d: %s; stored wait %v, booked %v", status, body, l.wait, l.booked)
	}
}

// TestHiddenTokens: hidden reasoning costs something when the program hangs up, up to the output limit, and nothing
// during the grace period.
func TestHiddenTokens(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		took        time.Duration
		bound       int64
		least, most int64
	}{
		"a moment":          {0, 8192, 0, 0},
		"a minute":          {time.Minute, 8192, 2500, 8192},
		"a minute, bounded": {time.Minute, 100, 100, 100},
		"an hour":           {time.Hour, 8192, 8192, 8192},
		"an hour ago, free": {time.Hour, 0, 0, 0},
		"in the future":     {-time.Hour, 8192, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := call{forwardedAt: time.Now().Add(-tc.took), maxOutput: tc.bound}
			if got := c.hiddenTokens(); got < tc.least || got > tc.most {
				t.Errorf("got %d tokens, want %d to %d", got, tc.least, tc.most)
			}
		})
	}
}

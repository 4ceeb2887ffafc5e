package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/gateway/gatewaytest"
	"github.com/errand-bot/errand/internal/modelapi"
)

// dollar is a call that may cost one dollar, and does.
const (
	dollar       = `{"model":"claude-x","max_tokens":100000}`
	dollarAnswer = `{"type":"message","model":"claude-x","usage":{"input_tokens":1,"output_tokens":100000}}`
)

// blockingEnd is the end of a VM whose model delays each call until the test lets it continue.
type blockingEnd struct {
	*vmEnd
	books   *taskLedger
	arrived chan struct{}
	proceed chan struct{}
	spent   chan int64 // what was booked, in tokens, as each call came to the model
}

func newBlockingEnd(t *testing.T, change func(*Config, *taskLedger)) *blockingEnd {
	t.Helper()
	c := &blockingEnd{books: &taskLedger{task: *someTask()}, arrived: make(chan struct{}, 200), proceed: make(chan struct{}), spent: make(chan int64, 200)}
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if r.Method == http.MethodGet || strings.HasSuffix(r.URL.Path, "count_tokens") {
			return
		}
		c.books.mu.Lock()
		c.spent <- c.books.task.Run.Money.OutputTokens
		c.books.mu.Unlock()
		c.arrived <- struct{}{}
		select {
		case <-c.proceed:
		case <-r.Context().Done():
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, dollarAnswer)
	}))
	t.Cleanup(model.Close)
	c.vmEnd = newVMEnd(t, nil, func(cfg *Config) {
		cfg.Providers = map[string]Provider{"anthropic": {BaseURL: model.URL, Key: modelKey, Header: "X-Api-Key", API: modelapi.Anthropic}}
		cfg.Tasks, cfg.Ledger, cfg.Prices = c.books, c.books, modelapi.Prices{"claude-x": {Output: 10}}
		cfg.QueueTimeout = time.Millisecond
		change(cfg, c.books)
	})
	return c
}

// call makes a call of the model and returns the status, Retry-After, and the answer or error.
func (c *blockingEnd) call(ctx context.Context, body string) (status int, retryAfter, message string) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+modelPath, strings.NewReader(body))
	if err != nil {
		return 0, "", err.Error()
	}
	req.Header.Set("X-Api-Key", runToken)
	resp, err := webtest.Client().Do(req)
	if err != nil {
		return 0, "", err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header.Get("Retry-After"), fmt.Sprint(string(answer), err)
}

// TestCapsLimitConcurrentCalls: concurrent calls, none of which has reported its cost yet, get no more of the model
// than the same calls one after another. The others are denied temporarily, and their run continues.
func TestCapsLimitConcurrentCalls(t *testing.T) {
	t.Parallel()
	const most = 16
	tests := map[string]struct {
		change func(*Config, *taskLedger)
		body   string
		pass   int
		says   string
	}{
		"a task's money":  {func(_ *Config, b *taskLedger) { b.task.Money.CapMicroUSD = 1_000_000 }, dollar, 1, "other calls in flight"},
		"a task's tokens": {func(_ *Config, b *taskLedger) { b.task.Money.CapTokens = 200_000 }, dollar, 2, "other calls in flight"},
		"a run's money":   {func(_ *Config, b *taskLedger) { b.task.Settings.Limits.RunMicroUSD = 2_500_000 }, dollar, 3, "other calls in flight"},
		"of all tasks":    {func(_ *Config, b *taskLedger) { b.caps.CapMicroUSD = 1_000_000 }, dollar, 1, "other calls in flight"},
		"turns":           {func(_ *Config, b *taskLedger) { b.task.Run.MaxTurns = 3 }, dollar, 3, "the run's last turns"},
		"no cap":          {func(*Config, *taskLedger) {}, dollar, most, "at most 16 calls"},
		"more than is left, alone": {func(_ *Config, b *taskLedger) {
			b.task.Money.CapMicroUSD, b.task.Money.MicroUSD = 1_000_000, 500_000
		}, dollar, 1, "other calls in flight"},
		"a limit that is too low": {func(_ *Config, b *taskLedger) { b.task.Money.CapMicroUSD = 1_000_000 }, `{"max_tokens":1}`, most, "at most 16 calls"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newBlockingEnd(t, test.change)
			var wait sync.WaitGroup
			var mu sync.Mutex
			got := map[int]int{}
			refused := make(chan struct{}, 50)
			for range 50 {
				wait.Go(func() {
					status, again, said := c.call(t.Context(), test.body)
					mu.Lock()
					defer mu.Unlock()
					if got[status]++; status == http.StatusOK {
						return
					}
					refused <- struct{}{}
					if status != http.StatusTooManyRequests || again != "2" || !strings.Contains(said, `"rate_limit_error"`) || !strings.Contains(said, test.says) {
						t.Errorf("got status %d, Retry-After %q: %s", status, again, said)
					}
				})
			}
			for range 50 - test.pass {
				<-refused
			}
			if status, body := send(t, webtest.Client(), http.MethodGet, c.url+"/llm/anthropic/v1/models", gatewaytest.Bearer(runToken)); status != http.StatusOK {
				t.Errorf("list of models: got status %d: %s", status, body)
			}
			if status, body := send(t, webtest.Client(), http.MethodPost, c.url+modelPath+"/count_tokens", gatewaytest.Bearer(runToken)); (status == http.StatusOK) != (test.pass < most) {
				t.Errorf("counting tokens: got status %d: %s", status, body)
			}
			close(c.proceed)
			wait.Wait()
			c.books.mu.Lock()
			defer c.books.mu.Unlock()
			if got[http.StatusOK] != test.pass || len(c.arrived) != test.pass || c.books.task.Run.Money.OutputTokens != int64(test.pass)*100_000 {
				t.Errorf("statuses %v, %d calls reached the model, booked %+v; want %d calls", got, len(c.arrived), c.books.task.Run.Money, test.pass)
			}
			if c.books.wait != nil {
				t.Errorf("a wait was stored because of reservations: %+v", c.books.wait)
			}
		})
	}
}

// TestCallWaitsForReservations: a call that is only blocked by the reservations of others is made as soon as they leave
// enough.
func TestCallWaitsForReservations(t *testing.T) {
	t.Parallel()
	c := newBlockingEnd(t, func(cfg *Config, b *taskLedger) { b.task.Money.CapMicroUSD, cfg.QueueTimeout = 1_200_000, time.Minute })
	const more = `{"model":"claude-x","max_tokens":128000}` // it counts with $1.28, and costs $1
	var wait sync.WaitGroup
	one := func() {
		if status, _, said := c.call(t.Context(), more); status != http.StatusOK {
			t.Errorf("got status %d: %s", status, said)
		}
	}
	wait.Go(one)
	<-c.arrived
	wait.Go(one)
	for c.books.taskReads() < 4 { // each call is looked up as it comes and as it is admitted
		runtime.Gosched()
	}
	close(c.proceed)
	wait.Wait()
	if first, second := <-c.spent, <-c.spent; first != 0 || second != 100_000 {
		t.Errorf("the first call was made with %d tokens booked and the second with %d; the second has to wait for the first", first, second)
	}
	if status, _, said := c.call(t.Context(), dollar); status != http.StatusForbidden || !strings.Contains(said, "cap of $1.20 is reached") {
		t.Errorf("got status %d: %s", status, said)
	}
}

// TestTurnsInFlightCount: answers that have begun and calls without an answer count together as turns.
func TestTurnsInFlightCount(t *testing.T) {
	t.Parallel()
	came := make(chan struct{}, 10)
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if strings.Contains(string(body), "stream") {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, ": begun\n\n")
			_ = http.NewResponseController(w).Flush()
		}
		came <- struct{}{}
		<-r.Context().Done()
	}))
	t.Cleanup(model.Close)
	b := &taskLedger{task: *someTask()}
	b.task.Run.MaxTurns = 3
	w := newVMEnd(t, nil, func(c *Config) {
		c.Providers = map[string]Provider{"anthropic": {BaseURL: model.URL, Key: modelKey, Header: "X-Api-Key", API: modelapi.Anthropic}}
		c.Tasks, c.Ledger, c.QueueTimeout = b, b, time.Millisecond
	})
	c := &blockingEnd{vmEnd: w, books: b}
	ctx, hangUp := context.WithTimeout(t.Context(), time.Minute)
	defer hangUp()
	for range 2 {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+modelPath, strings.NewReader(`{"stream":true}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Api-Key", runToken)
		resp, err := webtest.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		<-came
	}
	go c.call(ctx, dollar)
	<-came
	if status, _, said := c.call(ctx, dollar); status != http.StatusTooManyRequests || !strings.Contains(said, "the run's last turns") {
		t.Errorf("got status %d: %s", status, said)
	}
}

// TestConcurrentStreamsAreEndedAtACap: streams that reach a cap together exceed it by at most what each receives
// between two checks.
func TestConcurrentStreamsAreEndedAtACap(t *testing.T) {
	t.Parallel()
	const most = 40_000
	model := newEndlessModel(t, modelapi.OpenAI, chatPath, "\n")
	b := &taskLedger{task: *someTask()}
	b.task.Money.CapTokens = most
	w := newVMEnd(t, nil, func(c *Config) {
		c.Providers = map[string]Provider{"m": {BaseURL: model.URL, Key: modelKey, Header: "X-Api-Key", API: modelapi.OpenAI}}
		c.Tasks, c.Ledger, c.Prices, c.QueueTimeout = b, b, modelapi.Prices{"claude-x": {Input: 1, Output: 1}}, time.Millisecond
	})
	var mu sync.Mutex
	var all sync.WaitGroup
	passed := 0
	for range 20 {
		all.Go(func() {
			status, _ := sendBody(t, webtest.Client(), http.MethodPost, w.url+"/llm/m"+chatPath, streamed, gatewaytest.Bearer(runToken))
			if status == http.StatusOK {
				mu.Lock()
				defer mu.Unlock()
				passed++
			}
		})
	}
	all.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if spent := b.task.Money.Tokens(); passed == 0 || spent < most || spent > most+int64(passed)*4200 {
		t.Errorf("got %d streams with %d tokens", passed, spent)
	}
}

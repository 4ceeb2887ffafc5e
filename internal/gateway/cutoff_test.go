package gateway

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// dayLedger is a ledger of tasks that share a day's budget.
type dayLedger struct {
	mu    sync.Mutex
	tasks map[state.TaskKey]*state.Task
	day   state.Money
	waits map[state.TaskKey]*state.Waiting
}

func (a *dayLedger) Task(_ context.Context, key state.TaskKey) (*state.Task, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	t, r := *a.tasks[key], *a.tasks[key].Run
	t.Run = &r
	return &t, nil
}

func (a *dayLedger) Record(_ context.Context, u UsageRecord) error {
	key, m, wait := u.Task, u.Cost, u.Wait
	a.mu.Lock()
	defer a.mu.Unlock()
	a.day.Add(m)
	a.tasks[key].Money.Add(m)
	a.tasks[key].Run.Money.Add(m)
	if wait != nil {
		a.waits[key] = wait
	}
	return nil
}

func (a *dayLedger) sum(open state.Money) state.Money {
	a.mu.Lock()
	defer a.mu.Unlock()
	m := a.day
	m.Add(open)
	return m
}

func (a *dayLedger) CapReached(_ context.Context, open, need state.Money, _ bool) (*state.Waiting, error) {
	m := a.sum(open)
	if left := m.Remaining(); m.AtCap() || need.MicroUSD > left.MicroUSD || need.Tokens() > left.Tokens {
		return &state.Waiting{Kind: state.WaitMoney, Detail: "today's cap is reached"}, nil
	}
	return nil, nil
}

func (a *dayLedger) Left(_ context.Context, open state.Money, _ bool) (state.Remaining, error) {
	return a.sum(open).Remaining(), nil
}

// model answers calls in memory, so that time can be virtual.
type model func(*http.Request) (*http.Response, error)

func (m model) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if r.GetBody != nil {
		r.Body, _ = r.GetBody()
	}
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil {
		trace.WroteHeaders()
	}
	return m(r.WithContext(context.WithValue(r.Context(), bodyKey{}, string(body))))
}

type bodyKey struct{}

func bodyOf(r *http.Request) string { return r.Context().Value(bodyKey{}).(string) }

// pausingBody is a body that sends some bytes, and then nothing until its call ends or it is closed.
type pausingBody struct {
	io.Reader
	ctx    context.Context //nolint:containedctx // a body lives within one request
	closed chan struct{}
	once   sync.Once
}

func (s *pausingBody) Read(p []byte) (int, error) {
	if n, err := s.Reader.Read(p); err == nil {
		return n, nil
	}
	select {
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	case <-s.closed:
		return 0, io.ErrClosedPipe
	}
}

func (s *pausingBody) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// streamThenPause returns an answer that sends some bytes and then nothing.
func streamThenPause(r *http.Request, text string) *http.Response {
	body := &pausingBody{Reader: strings.NewReader(text), ctx: r.Context(), closed: make(chan struct{})}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}
}

// answerAtEnd answers when its call ends, or after two hours.
func answerAtEnd(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(r.Context(), 2*time.Hour)
	defer cancel()
	<-ctx.Done()
	return nil, ctx.Err()
}

// bench is a gateway before a model in memory. Tasks are numbered from 1.
type bench struct {
	*dayLedger
	g *Gateway
}

func newBench(api modelapi.API, m model, tasks ...state.Money) *bench {
	b := &bench{dayLedger: &dayLedger{tasks: map[state.TaskKey]*state.Task{}, waits: map[state.TaskKey]*state.Waiting{}}}
	for i, m := range tasks {
		key := state.TaskKey{Repo: 7, Issue: i + 1}
		b.tasks[key] = &state.Task{Key: key, Money: m, TaskRuns: state.TaskRuns{Run: &state.Run{ID: key.String(), State: state.RunActive, Kind: state.RunImplement, RunLaunch: state.RunLaunch{VM: key.String()}}}}
	}
	b.g = New(Config{
		Tasks: b.dayLedger, Ledger: b.dayLedger, Log: zerolog.Nop(), QueueTimeout: time.Millisecond, Transport: m,
		Providers: map[string]Provider{"m": {BaseURL: "http://model.example", Key: "k", Header: "X-Api-Key", API: api}},
		Prices:    modelapi.Prices{"m": {Output: 10}},
	})
	return b
}

// call makes a call as a task's run.
func (b *bench) call(ctx context.Context, issue int, path, body string) *httptest.ResponseRecorder {
	key := state.TaskKey{Repo: 7, Issue: issue}
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/llm/m"+path, strings.NewReader(body))
	t, err := b.Task(ctx, key)
	if err != nil {
		panic(err) // which an account never returns
	}
	answer := httptest.NewRecorder()
	b.g.Serve(answer, req, t, NewBodyMemory())
	return answer
}

// inFlight returns the number of calls in flight.
func (b *bench) inFlight() int {
	b.g.inFlight.mu.Lock()
	defer b.g.inFlight.mu.Unlock()
	return len(b.g.inFlight.all)
}

// spent returns what a task has spent since before, and the wait that was stored with its run.
func (b *bench) spent(issue int, before int64) (micro int64, wait *state.Waiting) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := state.TaskKey{Repo: 7, Issue: issue}
	return b.tasks[key].Money.MicroUSD - before, b.waits[key]
}

// dialects returns calls whose answers are streams, and how such an answer begins.
func dialects() map[string]struct {
	api               modelapi.API
	path, body, first string
	refusal           string
} {
	return map[string]struct {
		api               modelapi.API
		path, body, first string
		refusal           string
	}{
		"anthropic": {modelapi.Anthropic, "/v1/messages", `{"model":"m","max_tokens":100000,"stream":true}`, `data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":1,"output_tokens":1}}}` + "\n\n", `"type":"permission_error"`},
		"chat":      {modelapi.OpenAI, "/v1/chat/completions", `{"model":"m","stream":true,"stream_options":{"include_usage":false}}`, `data: {"model":"m","choices":[{"delta":{"role":"assistant"}}]}` + "\n\n", `"type":"error"`},
		"responses": {modelapi.OpenAI, "/v1/responses", `{"model":"m","stream":true}`, `data: {"type":"response.created","response":{"model":"m","usage":null}}` + "\n\n", `"type":"error"`},
		"gemini":    {modelapi.Gemini, "/v1beta/models/m:streamGenerateContent?alt=sse", `{}`, `data: {"candidates":[{"content":{"parts":[]}}]}` + "\n\n", `"PERMISSION_DENIED"`},
	}
}

// TestHiddenReasoningIsEndedAtACap: a stream that sends nothing is ended and charged when its estimated hidden
// reasoning reaches a cap, before its answer begins and within it.
func TestHiddenReasoningIsEndedAtACap(t *testing.T) {
	t.Parallel()
	for name, d := range dialects() {
		for when, begins := range map[string]bool{"before the answer": false, "within the answer": true} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					const left = 100_000 // which pays 10,000 tokens
					b := newBench(d.api, func(r *http.Request) (*http.Response, error) {
						if !begins {
							return answerAtEnd(r)
						}
						return streamThenPause(r, d.first), nil
					}, state.Money{CapMicroUSD: 5_000_000, MicroUSD: 5_000_000 - left})
					start := time.Now()
					answer := b.call(t.Context(), 1, d.path, d.body)
					took := time.Since(start)
					if said := answer.Body.String(); !strings.Contains(said, "cap of $5.00 is reached") || begins && (!strings.HasPrefix(said, d.first) || !strings.Contains(said, d.refusal)) || !begins && answer.Code != http.StatusForbidden {
						t.Errorf("got status %d: %s", answer.Code, said)
					}
					if took < 3*time.Minute || took > 4*time.Minute {
						t.Errorf("got a duration of %s until 10,000 tokens", took)
					}
					if spent, wait := b.spent(1, 5_000_000-left); spent < left || spent > left*11/10 || wait == nil || wait.Hint != state.HintBudget {
						t.Errorf("got a cost of %d of %d, stored wait %+v", spent, left, wait)
					}
					if answer := b.call(t.Context(), 1, d.path, d.body); answer.Code != http.StatusForbidden {
						t.Errorf("the next call: got status %d: %s", answer.Code, answer.Body)
					}
				})
			})
		}
	}
}

// TestAbandonedReasoningIsCharged: a program that abandons a call pays for the estimated hidden reasoning, by the time
// and up to the output limit.
func TestAbandonedReasoningIsCharged(t *testing.T) {
	t.Parallel()
	for name, d := range dialects() {
		for when, tc := range map[string]struct {
			begins bool
			after  time.Duration
			tokens int64
		}{
			"at once":                   {false, time.Second, 0},
			"at once, within":           {true, time.Second, 0},
			"after 20 min":              {false, 20 * time.Minute, 59_500},
			"after 20 min, within":      {true, 20 * time.Minute, 59_500},
			"after an hour, the bound":  {false, time.Hour, 128 << 10},
			"a stop after five minutes": {true, 5 * time.Minute, 14_500},
		} {
			t.Run(name+" "+when, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					b := newBench(d.api, func(r *http.Request) (*http.Response, error) {
						if !tc.begins {
							return answerAtEnd(r)
						}
						return streamThenPause(r, d.first), nil
					}, state.Money{})
					b.g.cfg.IdleTimeout = 2 * time.Hour
					ctx, hangUp := context.WithTimeout(t.Context(), tc.after)
					defer hangUp()
					b.call(ctx, 1, d.path, d.body)
					want := tc.tokens
					if name == "anthropic" {
						want = min(want, 100_000)
					}
					b.mu.Lock()
					got := b.tasks[state.TaskKey{Repo: 7, Issue: 1}].Money.OutputTokens
					b.mu.Unlock()
					if got < want || got > want+1 {
						t.Errorf("charged %d tokens, want %d", got, want)
					}
				})
			})
		}
	}
}

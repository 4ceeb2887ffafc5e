package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/gateway/gatewaytest"
	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// taskLedger is a ledger of one task.
type taskLedger struct {
	mu   sync.Mutex
	task state.Task
	wait *state.Waiting
	caps state.Money // of all tasks

	reads int // how often somebody looked the task up
}

func (b *taskLedger) taskReads() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reads
}

func (b *taskLedger) Task(context.Context, state.TaskKey) (*state.Task, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reads++
	t, run := b.task, *b.task.Run
	t.Run = &run
	return &t, nil
}

func (b *taskLedger) Record(_ context.Context, u UsageRecord) error {
	m, wait := u.Cost, u.Wait
	b.mu.Lock()
	defer b.mu.Unlock()
	b.task.Money.Add(m)
	b.task.Run.Money.Add(m)
	if wait != nil {
		b.wait = wait
	}
	return nil
}

func (b *taskLedger) CapReached(_ context.Context, open, need state.Money, _ bool) (*state.Waiting, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.caps
	if m.Add(open); m.AtCap() {
		return &state.Waiting{Kind: state.WaitMoney, Detail: "today's cap is reached"}, nil
	}
	if left := m.Remaining(); need.MicroUSD > left.MicroUSD || need.Tokens() > left.Tokens {
		return &state.Waiting{Kind: state.WaitMoney, Detail: "today's cap leaves too little"}, nil
	}
	return nil, nil
}

func (b *taskLedger) Left(_ context.Context, open state.Money, _ bool) (state.Remaining, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.caps
	m.Add(open)
	return m.Remaining(), nil
}

// streamed is a call whose answer is a stream.
const streamed = `{"stream":true}`

// newEndlessModel is a model whose answer does not end.
func newEndlessModel(t *testing.T, api modelapi.API, path, ending string) *httptest.Server {
	t.Helper()
	first, event := `{"type":"message_start","message":{"model":"claude-x","usage":{"input_tokens":1000,"output_tokens":1}}}`, `{"type":"content_block_delta","delta":{"type":"text_delta","text":"%s"}}`
	if api == modelapi.OpenAI {
		first, event = `{"type":"response.created","response":{"model":"claude-x","usage":null}}`, `{"type":"response.output_text.delta","delta":"%s"}`
	}
	if strings.HasSuffix(path, "/chat/completions") { // without usage: nothing asked for it
		first, event = `{"model":"claude-x","choices":[{"delta":{"role":"assistant"}}]}`, `{"model":"claude-x","choices":[{"delta":{"content":"%s"}}]}`
	}
	if api == modelapi.Gemini {
		first, event = `{"modelVersion":"claude-x","candidates":[]}`, `{"modelVersion":"claude-x","candidates":[{"content":{"parts":[{"text":"%s"}]}}]}`
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, err := fmt.Fprintf(w, "event: x"+ending+"data: %s"+ending+ending, first)
		for err == nil && r.Context().Err() == nil {
			_, err = fmt.Fprintf(w, "event: x"+ending+"data: "+event+ending+ending, strings.Repeat("word", 50))
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// TestStreamIsEndedAtACap: a stream that reaches a cap is ended after one of its events in the API's own form, is
// charged as counted, and exceeds the cap only slightly.
func TestStreamIsEndedAtACap(t *testing.T) {
	t.Parallel()
	const perToken = 15 // millionths of a dollar
	tests := map[string]struct {
		api    modelapi.API
		path   string
		ending string
		change func(*taskLedger)
		says   string
		most   state.Money
	}{
		"a task's money":     {modelapi.Anthropic, "/v1/messages", "\n", func(b *taskLedger) { b.task.Money.CapMicroUSD = 1_000_000 }, "cap of $1.00 is reached", state.Money{MicroUSD: 1_300_000}},
		"a task's tokens":    {modelapi.Anthropic, "/v1/messages", "\n", func(b *taskLedger) { b.task.Money.CapTokens = 50_000 }, "cap of 50,000 tokens is reached", state.Money{InputTokens: 1000, OutputTokens: 60_000}},
		"a run's money":      {modelapi.Anthropic, "/v1/messages", "\n", func(b *taskLedger) { b.task.Settings.Limits.RunMicroUSD = 500_000 }, "cap of $0.50 for one run", state.Money{MicroUSD: 800_000}},
		"a run's tokens":     {modelapi.Anthropic, "/v1/messages", "\n", func(b *taskLedger) { b.task.Settings.Limits.RunTokens = 20_000 }, "cap of 20,000 tokens for one run", state.Money{OutputTokens: 40_000}},
		"of all tasks":       {modelapi.Anthropic, "/v1/messages", "\n", func(b *taskLedger) { b.caps.CapMicroUSD = 500_000 }, "today's cap", state.Money{MicroUSD: 800_000}},
		"OpenAI":             {modelapi.OpenAI, "/v1/responses", "\n", func(b *taskLedger) { b.task.Money.CapMicroUSD = 1_000_000 }, "cap of $1.00 is reached", state.Money{MicroUSD: 1_300_000}},
		"OpenAI, chat":       {modelapi.OpenAI, "/v1/chat/completions", "\n", func(b *taskLedger) { b.task.Money.CapMicroUSD = 1_000_000 }, "cap of $1.00 is reached", state.Money{MicroUSD: 1_300_000}},
		"Gemini":             {modelapi.Gemini, "/v1beta/models/claude-x:streamGenerateContent?alt=sse", "\n", func(b *taskLedger) { b.task.Money.CapMicroUSD = 1_000_000 }, "cap of $1.00 is reached", state.Money{MicroUSD: 1_300_000}},
		"lines of two bytes": {modelapi.Anthropic, "/v1/messages", "\r\n", func(b *taskLedger) { b.task.Money.CapMicroUSD = 1_000_000 }, "cap of $1.00 is reached", state.Money{MicroUSD: 1_300_000}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := newEndlessModel(t, test.api, test.path, test.ending)
			b := &taskLedger{task: *someTask()}
			test.change(b)
			w := newVMEnd(t, nil, func(c *Config) {
				c.Providers = map[string]Provider{"anthropic": {BaseURL: model.URL, Key: modelKey, Header: "X-Api-Key", API: test.api}}
				c.Tasks, c.Ledger, c.Prices = b, b, modelapi.Prices{"claude-x": {Input: perToken, Output: perToken}}
			})
			path := "/llm/anthropic" + test.path
			status, body := sendBody(t, webtest.Client(), http.MethodPost, w.url+path, streamed, gatewaytest.Bearer(runToken))
			if status != http.StatusOK || !strings.Contains(body, test.says) || !strings.HasSuffix(body, "}\n\n") {
				t.Fatalf("got status %d, ends with %q", status, body[max(len(body)-500, 0):])
			}
			failure, kind := "event: error\n", `"type":"error"`
			if test.api == modelapi.Gemini {
				failure, kind = `data: {"error"`, `"PERMISSION_DENIED"`
			}
			before, last, _ := strings.Cut(body, failure)
			if !strings.HasSuffix(before, test.ending+test.ending) || strings.Count(failure+last, "data: {") != 1 || !strings.Contains(last, kind) {
				t.Errorf("the last event is incomplete: got %q, then %q", before[max(len(before)-100, 0):], last)
			}
			checkSpent(t, b, test.most, perToken)
			status, body = sendBody(t, webtest.Client(), http.MethodPost, w.url+path, streamed, gatewaytest.Bearer(runToken))
			if b.caps == (state.Money{}) && (status != http.StatusForbidden || !strings.Contains(body, "reached")) {
				t.Errorf("next call: got status %d: %.300s", status, body)
			}
		})
	}
}

// checkSpent checks that the booked cost is at most most.
func checkSpent(t *testing.T, b *taskLedger, most state.Money, perToken int64) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	m := b.task.Money
	if b.wait == nil || m.MicroUSD == 0 || m.MicroUSD != m.Tokens()*perToken {
		t.Errorf("got stored wait %+v, cost %+v", b.wait, m)
	}
	if most.MicroUSD > 0 && m.MicroUSD > most.MicroUSD || most.Tokens() > 0 && m.Tokens() > most.Tokens() {
		t.Errorf("booked %+v, want at most %+v", m, most)
	}
}

// TestLongEventIsEndedAtACap: an event that does not end is broken off at a cap.
func TestLongEventIsEndedAtACap(t *testing.T) {
	t.Parallel()
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"type":"message_start","message":{"model":"claude-x","usage":{"input_tokens":1000,"output_tokens":1}}}`+"\n\ndata: ")
		chunk := bytes.Repeat([]byte("x"), 1<<10)
		var err error
		for err == nil && r.Context().Err() == nil {
			_, err = w.Write(chunk)
		}
	}))
	t.Cleanup(model.Close)
	b := &taskLedger{task: *someTask()}
	b.task.Money.CapMicroUSD = 1_000_000
	w := newVMEnd(t, nil, func(c *Config) {
		c.Providers = map[string]Provider{"anthropic": {BaseURL: model.URL, Key: modelKey, Header: "X-Api-Key", API: modelapi.Anthropic}}
		c.Tasks, c.Ledger, c.Prices = b, b, modelapi.Prices{"claude-x": {Input: 15}}
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+modelPath, strings.NewReader(streamed))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Api-Key", runToken)
	resp, err := webtest.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if _, err := io.CopyN(io.Discard, resp.Body, 100<<10); err != nil {
		t.Fatal(err)
	}
	if err := b.Record(t.Context(), UsageRecord{Run: run, Cost: state.Money{MicroUSD: 2_000_000}}); err != nil { // another answer's
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<20))
	if err == nil || n > 32<<20 {
		t.Errorf("got %d bytes, then error %v", n, err)
	}
}

// TestAnswersInFlightCount: what answers in flight have used counts when another call is admitted.
func TestAnswersInFlightCount(t *testing.T) {
	t.Parallel()
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"type":"message_start","message":{"model":"claude-x","usage":{"input_tokens":60000,"output_tokens":1}}}`+"\n\n: "+strings.Repeat("x", 1<<10)+"\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	t.Cleanup(model.Close)
	b := &taskLedger{task: *someTask()}
	b.task.Money.CapMicroUSD = 1_000_000
	w := newVMEnd(t, nil, func(c *Config) {
		c.Providers = map[string]Provider{"anthropic": {BaseURL: model.URL, Key: modelKey, Header: "X-Api-Key", API: modelapi.Anthropic}}
		c.Tasks, c.Ledger, c.Prices = b, b, modelapi.Prices{"claude-x": {Input: 10}}
	})
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	open := func() int {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url+modelPath, strings.NewReader(streamed))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Api-Key", runToken)
		resp, err := webtest.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		begin := make([]byte, 1<<9)
		n, err := io.ReadFull(resp.Body, begin)
		if ended := bytes.Contains(begin[:n], []byte("is reached")); err != nil && resp.StatusCode == http.StatusOK && !ended {
			t.Fatalf("the answer ends after %q: %v", begin[:n], err)
		}
		return resp.StatusCode
	}
	// Two answers of $0.60 each are enough, as soon as they are counted.
	for range 200 {
		if open() == http.StatusForbidden {
			return
		}
	}
	t.Error("got no denied call")
}

// TestIncompleteAnswersAreStored: an answer that was truncated or blocked is stored with the run, because its program
// does not report it; other endings are not.
func TestIncompleteAnswersAreStored(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]state.WaitKind{"STOP": "", "MAX_TOKENS": state.WaitAnswerCut, "SAFETY": state.WaitAnswerBlocked} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			l := &ledger{}
			model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = fmt.Fprintf(w, "data: {\"modelVersion\":\"gemini-x\",\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"This much\"}]},\"finishReason\":%q}],\"usageMetadata\":{\"promptTokenCount\":9,\"candidatesTokenCount\":2}}\n\n", reason)
			}))
			t.Cleanup(model.Close)
			w := newVMEnd(t, someTask(), func(c *Config) {
				c.Providers["gemini"] = Provider{BaseURL: model.URL, Key: modelKey, Header: "X-Goog-Api-Key", API: modelapi.Gemini}
				c.Ledger, c.Prices = l, modelapi.Prices{"gemini": {Input: 1, Output: 1}}
			})
			status, body := sendBody(t, webtest.Client(), http.MethodPost, w.url+"/llm/gemini/v1beta/models/gemini-x:streamGenerateContent?alt=sse", `{}`, gatewaytest.Bearer(runToken))
			if status != 200 {
				t.Fatalf("got status %d: %s", status, body)
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			got := state.WaitKind("")
			if l.wait != nil {
				got = l.wait.Kind
			}
			if got != want {
				t.Errorf("stored with the run: %q, want %q", got, want)
			}
		})
	}
}

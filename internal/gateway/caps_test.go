package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/errand-bot/errand/internal/modelapi"
	"github.com/errand-bot/errand/state"
)

// answerInFull answers a call that is not streamed with as much output as its limit allows, after a while.
func answerInFull(r *http.Request) (*http.Response, error) {
	var asked struct {
		Max       int64 `json:"max_tokens"`
		Completed int64 `json:"max_completion_tokens"`
	}
	if err := json.Unmarshal([]byte(bodyOf(r)), &asked); err != nil {
		return nil, err
	}
	n := max(asked.Max, asked.Completed)
	if n == 0 {
		n = 128 << 10
	}
	time.Sleep(time.Duration(n) * time.Millisecond)
	body := fmt.Sprintf(`{"model":"m","usage":{"prompt_tokens":1,"completion_tokens":%d}}`, n)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// TestTwoTasksStayBelowTheCaps: the total cost of concurrent calls of two tasks, with the longest answers that they are
// allowed, does not exceed any cap.
func TestTwoTasksStayBelowTheCaps(t *testing.T) {
	t.Parallel()
	const path = "/v1/chat/completions"
	bodies := []string{`{"model":"m"}`, `{"model":"m","max_tokens":100000}`, `{"model":"m","max_tokens":5000}`, `{"model":"m","max_completion_tokens":null}`}
	for name, tc := range map[string]struct{ day, task, tokens int64 }{
		"a cap of all tasks":           {3_000_000, 0, 0},
		"caps of tasks":                {0, 2_000_000, 0},
		"both":                         {3_000_000, 2_000_000, 0},
		"less than one answer":         {700_000, 500_000, 0},
		"tokens of a task":             {0, 0, 300_000},
		"too little for any, one each": {0, 10_000, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				one := state.Money{CapMicroUSD: tc.task, CapTokens: tc.tokens}
				b := newBench(modelapi.OpenAI, answerInFull, one, one)
				b.day.CapMicroUSD = tc.day
				b.g.cfg.QueueTimeout = 0 // as it is in earnest
				var wait sync.WaitGroup
				for i := range 50 {
					wait.Go(func() {
						for range 30 {
							answer := b.call(t.Context(), 1+i%2, path, bodies[i%len(bodies)])
							if answer.Code == http.StatusForbidden {
								return
							}
							time.Sleep(time.Second)
						}
					})
				}
				wait.Wait()
				if tc.day > 0 && (b.day.MicroUSD > tc.day || b.day.MicroUSD < tc.day/2) {
					t.Errorf("got a cost of %d of %d for the day", b.day.MicroUSD, tc.day)
				}
				for key, task := range b.tasks {
					m := task.Money
					if tc.task > 0 && m.MicroUSD > tc.task || tc.tokens > 0 && m.Tokens() > tc.tokens+int64(task.Run.Answers) {
						t.Errorf("task %s: got %+v", key, m)
					}
				}
			})
		})
	}
}

// TestStreamYieldsToReservations: a stream that reaches the reservation of a call that cannot be ended at a cap is
// ended with an error that its program retries; its run continues.
func TestStreamYieldsToReservations(t *testing.T) {
	t.Parallel()
	for name, d := range dialects() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBench(d.api, func(r *http.Request) (*http.Response, error) {
					if body := bodyOf(r); strings.Contains(body, "stream") || body == "{}" {
						return streamThenPause(r, d.first), nil
					}
					return answerAtEnd(r)
				}, state.Money{CapMicroUSD: 1_350_000})
				whole := map[modelapi.API]string{modelapi.Anthropic: "/v1/messages", modelapi.OpenAI: "/v1/chat/completions", modelapi.Gemini: "/v1beta/models/m:generateContent"}[d.api]
				go b.call(t.Context(), 1, whole, `{"model":"m"}`) // which may cost $1.31
				synctest.Wait()
				answer := b.call(t.Context(), 1, d.path, d.body)
				if said := answer.Body.String(); !strings.HasPrefix(said, d.first) || !strings.Contains(said, budgetReserved) {
					t.Errorf("got status %d: %s", answer.Code, said)
				}
				if spent, wait := b.spent(1, 0); wait != nil || spent < 20_000 || spent > 60_000 {
					t.Errorf("got a cost of %d, stored wait %+v", spent, wait)
				}
			})
		})
	}
}

// TestUnknownUsageOption: a chat that the server refuses because it does not know the option for usage is repeated
// without it; after any other refusal it is not.
func TestUnknownUsageOption(t *testing.T) {
	t.Parallel()
	const unknown = `{"detail":[{"type":"extra_forbidden","loc":["body","stream_options"]}]}`
	for name, tc := range map[string]struct {
		status int
		says   string
		want   []string
		code   int
	}{
		"it is not known":                   {422, unknown, []string{`{"stream_options":{"include_usage":true},"model":"m","stream":true}`, `{"model":"m","stream":true}`}, 200},
		"with another status":               {400, unknown, []string{`{"stream_options":{"include_usage":true},"model":"m","stream":true}`, `{"model":"m","stream":true}`}, 200},
		"something else":                    {400, `{"error":"no"}`, []string{`{"stream_options":{"include_usage":true},"model":"m","stream":true}`}, 400},
		"a server error with the same text": {500, unknown, []string{`{"stream_options":{"include_usage":true},"model":"m","stream":true}`}, 500},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			b := newBench(modelapi.OpenAI, func(r *http.Request) (*http.Response, error) {
				got = append(got, bodyOf(r))
				if strings.Contains(bodyOf(r), "stream_options") {
					return &http.Response{StatusCode: tc.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(tc.says))}, nil
				}
				return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}"))}, nil
			}, state.Money{})
			answer := b.call(t.Context(), 1, "/v1/chat/completions", `{"model":"m","stream":true}`)
			if fmt.Sprint(got) != fmt.Sprint(tc.want) || answer.Code != tc.code || tc.code != 200 && answer.Body.String() != tc.says {
				t.Errorf("got status %d: %s; the model received %q", answer.Code, answer.Body, got)
			}
		})
	}
}

// TestAbandonedWhileWaiting: a call that is abandoned while it waits for another one costs nothing and leaves the
// queue.
func TestAbandonedWhileWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked int
		b := newBench(modelapi.OpenAI, func(r *http.Request) (*http.Response, error) {
			asked++
			return answerInFull(r)
		}, state.Money{CapMicroUSD: 1_350_000})
		b.g.cfg.QueueTimeout = time.Hour
		var wait sync.WaitGroup
		wait.Go(func() { b.call(t.Context(), 1, "/v1/chat/completions", `{"model":"m","max_tokens":130000}`) })
		synctest.Wait()
		ctx, hangUp := context.WithTimeout(t.Context(), time.Minute)
		defer hangUp()
		b.call(ctx, 1, "/v1/chat/completions", `{"model":"m"}`)
		if spent, wait := b.spent(1, 0); asked != 1 || spent != 0 || wait != nil || b.inFlight() != 1 {
			t.Errorf("got %d calls of the model, a cost of %d, stored wait %+v, %d calls in flight", asked, spent, wait, b.inFlight())
		}
		wait.Wait()
		if spent, _ := b.spent(1, 0); asked != 1 || spent != 1_300_000 || b.inFlight() != 0 {
			t.Errorf("got %d calls of the model, a cost of %d, %d calls in flight", asked, spent, b.inFlight())
		}
	})
}

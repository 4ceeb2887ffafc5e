package gateway

import (
	"net/http"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/webtest"

	"github.com/errand-bot/errand/internal/gateway/gatewaytest"
	"github.com/errand-bot/errand/state"
)

// TestTurnsAreLimited: a run whose agent cannot count gets as many answers as it has turns, and is then denied with a
// message that adapters recognize.
func TestTurnsAreLimited(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ most, answers int }{"two": {2, 2}, "no bound": {0, 5}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := someTask()
			task.Run.MaxTurns = tc.most
			books := &ledger{}
			w := newVMEnd(t, task, func(c *Config) { c.Ledger = books })
			token := gatewaytest.Bearer(runToken)
			for range 2 { // other requests are not turns
				if code, _ := send(t, webtest.Client(), http.MethodGet, w.url+"/llm/openai/v1/models", token); code != http.StatusOK {
					t.Fatalf("list of models: got %d", code)
				}
			}
			if code, _ := send(t, webtest.Client(), http.MethodPost, w.url+"/llm/gone/v1/messages", token); code == http.StatusOK {
				t.Fatal("got an answer of an unreachable provider")
			}
			got, last := 0, ""
			for range 5 {
				code, body := send(t, webtest.Client(), http.MethodPost, w.url+"/llm/openai/v1/responses", token)
				if code == http.StatusOK {
					got++
				} else {
					last = body
				}
			}
			if got != tc.answers {
				t.Errorf("%d answers, want %d", got, tc.answers)
			}
			if tc.most > 0 && !strings.Contains(last, "errand: the run's turns are used up (2)") {
				t.Errorf("got denial %q", last)
			}
			if told := books.wait; (told != nil) != (tc.most > 0) || told != nil && (told.Kind != state.WaitTurns || !told.Until.IsZero()) {
				t.Errorf("got stored wait %+v", told)
			}
		})
	}
}

// TestTurnsSurviveARestart: a run that has used up its turns before a restart gets none afterwards.
func TestTurnsSurviveARestart(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ booked, answers int }{"all were had": {3, 0}, "two were had": {2, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := someTask()
			task.Run.MaxTurns, task.Run.Answers = 3, tc.booked
			w := newVMEnd(t, task, nil)
			got := 0
			for range 3 {
				if code, _ := send(t, webtest.Client(), http.MethodPost, w.url+"/llm/openai/v1/responses", gatewaytest.Bearer(runToken)); code == http.StatusOK {
					got++
				}
			}
			if got != tc.answers {
				t.Errorf("%d answers, want %d", got, tc.answers)
			}
		})
	}
}

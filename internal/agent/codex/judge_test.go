package codex_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/agent/codex"
	"github.com/errand-bot/errand/internal/runlog"
)

// endings has one case for every way to end that was seen, and for every rule of trust.
func endings() map[string]agenttest.Ending {
	const began = `{"type":"thread.started","thread_id":"s1"}`
	const said = `{"type":"item.completed","item":{"id":"i","type":"agent_message","text":"Done."}}`
	const done = `{"type":"turn.completed","usage":{"input_tokens":30,"output_tokens":4}}`
	code := func(n int) agent.Ended { return agent.Ended{Exit: runlog.Exit{Cause: runlog.CauseExited, Code: n}} }
	stderr := func(text string) agent.Ended {
		return agent.Ended{Exit: runlog.Exit{Cause: runlog.CauseExited, Code: 1}, Stderr: "WARNING: x\n" + text + "\n"}
	}
	failed := func(text string) []string {
		line, err := json.Marshal(map[string]any{"type": "turn.failed", "error": map[string]any{"message": text}})
		if err != nil {
			return nil
		}
		return []string{began, string(line)}
	}
	cases := map[string]agenttest.Ending{
		"done":                    {Lines: []string{began, said, done}, Want: agent.StatusOK},
		"done with a bad exit":    {Lines: []string{began, said, done}, Ended: code(1), Want: agent.StatusCrashed, Says: "code 1"},
		"exit 0 and no end":       {Lines: []string{began, said}, Want: agent.StatusCrashed},
		"exit 0 and nothing":      {Want: agent.StatusCrashed},
		"nothing answered":        {Lines: []string{began, done}, Want: agent.StatusRefused},
		"nothing asked":           {Lines: []string{began, `{"type":"turn.completed"}`}, Want: agent.StatusNoOp},
		"failed after a success":  {Lines: append([]string{began, said, done}, failed("last status: 500")[1]), Ended: code(1), Want: agent.StatusOverloaded},
		"stop asked for, success": {Lines: []string{began, said, done}, Ended: agent.Ended{StopRequested: true}, Want: agent.StatusInterrupted},
		"time up":                 {Lines: []string{began}, Ended: agent.Ended{Exit: runlog.Exit{Cause: runlog.CauseDuration, Message: "as the runner says"}}, Want: agent.StatusDuration},
		"stalled":                 {Lines: []string{began}, Ended: agent.Ended{Exit: runlog.Exit{Cause: runlog.CauseStalled}}, Want: agent.StatusStalled},
		"resumed":                 {Lines: []string{began, said, done}, Ended: agent.Ended{WantSession: "s1"}, Want: agent.StatusOK},
		"another session":         {Lines: []string{began, said, done}, Ended: agent.Ended{WantSession: "s2"}, Want: agent.StatusNoSession, Says: "another session"},
		"another session, failed": {Lines: failed("last status: 500"), Ended: agent.Ended{WantSession: "s2"}, Want: agent.StatusNoSession},
		"no such session":         {Ended: stderr("Error: thread/resume failed: no rollout found for thread id s9 (code -32600)"), Want: agent.StatusNoSession, Says: "no rollout"},
		"schema met":              {Lines: []string{began, strings.Replace(said, "Done.", `{\"a\":1}`, 1), done}, Ended: agent.Ended{WantSchema: true}, Want: agent.StatusOK},
		"schema missed":           {Lines: []string{began, said, done}, Ended: agent.Ended{WantSchema: true}, Want: agent.StatusNoStructuredOutput},
		"schema and no answer":    {Lines: []string{began, `{"type":"item.completed","item":{"type":"reasoning"}}`, done}, Ended: agent.Ended{WantSchema: true}, Want: agent.StatusNoStructuredOutput},
		"bad flag":                {Ended: stderr("error: unexpected argument '--x' found"), Want: agent.StatusInvalid, Says: "--x"},
		"old process alive":       {Ended: stderr("Error: thread s1 already has an active writer"), Want: agent.StatusInvalid, Says: "active writer"},
		"not found":               {Ended: code(127), Want: agent.StatusStartFailed},
		"killed":                  {Lines: []string{began}, Ended: agent.Ended{Exit: runlog.Exit{Code: -1, Signal: "killed"}}, Want: agent.StatusCrashed},
		"killed at once":          {Ended: agent.Ended{Exit: runlog.Exit{Code: -1, Signal: "killed"}}, Want: agent.StatusCrashed},
		"no words":                {Lines: []string{began, `{"type":"error","message":"as it was"}`, `{"type":"turn.failed"}`}, Ended: code(1), Want: agent.StatusCrashed, Says: "as it was"},
	}
	for text, want := range map[string]agent.Status{
		"unexpected status 401 Unauthorized: no, url: x":                                   agent.StatusAuth,
		"unexpected status 403 Forbidden: no, url: x":                                      agent.StatusAuth,
		"unexpected status 403 Forbidden: errand: the task's cap of $5.00 is reached":      agent.StatusBudget,
		"unexpected status 403 Forbidden: errand: the run's turns are used up (30)":        agent.StatusMaxTurns,
		"unexpected status 403 Forbidden: errand: The cap of $1.00 for one run is reached": agent.StatusBudget,
		"unexpected status 402 Payment Required: pay":                                      agent.StatusBilling,
		"Quota exceeded. Check your plan and billing details.":                             agent.StatusBilling,
		"exceeded retry limit, last status: 429 Too Many Requests, request id: r":          agent.StatusRateLimited,
		"You’ve hit your usage limit. Try again later.":                                    agent.StatusRateLimited,
		"Selected model is at capacity. Please try a different model.":                     agent.StatusOverloaded,
		"We’re currently experiencing high demand, which may cause temporary errors.":      agent.StatusOverloaded,
		"exceeded retry limit, last status: 502 Bad Gateway":                               agent.StatusOverloaded,
		"stream disconnected before completion: stream closed before response.completed":   agent.StatusNetwork,
		"stream disconnected before completion: error sending request for url (http://x/)": agent.StatusNetwork,
		"Codex ran out of room in the model's context window. Start a new thread.":         agent.StatusContextOverflow,
		`{"error":{"type":"invalid_request_error","message":"Unsupported value"}}`:         agent.StatusInvalid,
		"The requested model 'x' does not exist.":                                          agent.StatusInvalid,
		"unexpected status 404 Not Found: nothing here":                                    agent.StatusInvalid,
		"unexpected status 413 Payload Too Large: x":                                       agent.StatusContextOverflow,
		"something of the future":                                                          agent.StatusCrashed,
	} {
		cases["failure: "+text] = agenttest.Ending{Lines: failed(text), Ended: code(1), Want: want}
	}
	return cases
}

func TestUsageOfOneRun(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ended agent.Ended
		want  runlog.Usage
	}{
		"new":                             {agent.Ended{}, runlog.Usage{Input: 7, CacheRead: 20, CacheWrite: 3, Output: 4}},
		"resumed":                         {agent.Ended{WantSession: "s", Prior: &runlog.Usage{Input: 5, CacheRead: 20, Output: 9}}, runlog.Usage{Input: 2, CacheWrite: 3}},
		"resumed, used nothing":           {agent.Ended{WantSession: "s", Prior: &runlog.Usage{}}, runlog.Usage{Input: 7, CacheRead: 20, CacheWrite: 3, Output: 4}},
		"resumed, earlier use is unknown": {agent.Ended{WantSession: "s"}, runlog.Usage{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := codex.New(agent.Program{Command: []string{"codex"}}).NewParser()
			for _, l := range []string{
				`{"type":"thread.started","thread_id":"s"}`, `{"type":"item.completed","item":{"type":"agent_message","text":"x"}}`,
				`{"type":"turn.completed","usage":{"input_tokens":30,"cached_input_tokens":20,"cache_write_input_tokens":3,"output_tokens":4,"reasoning_output_tokens":2}}`,
			} {
				p.Line([]byte(l))
			}
			if diff := cmp.Diff(tc.want, p.Exit(tc.ended).Usage); diff != "" {
				t.Errorf("usage (-want +got):\n%s", diff)
			}
		})
	}
}

func TestResetTimeOfALimit(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 23, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"You’ve hit your usage limit. … try again at 11:26 PM.":                     time.Date(2026, 11, 21, 23, 26, 0, 0, time.UTC),
		"You’ve hit your usage limit. … try again at 6:05 AM.":                      time.Date(2026, 11, 22, 6, 5, 0, 0, time.UTC),
		"You’ve hit your usage limit. … or try again at Nov 28th, 2026 10:26 PM.":   time.Date(2026, 11, 28, 22, 26, 0, 0, time.UTC),
		"You’ve hit your usage limit. … or try again at Nov 99th, 2026 10:26 PM.":   {},
		"You’ve hit your usage limit. … try again at 77:99 PM.":                     {},
		"exceeded retry limit, last status: 429 Too Many Requests, request id: r_1": {},
	} {
		p := codex.New(agent.Program{Command: []string{"codex"}}).NewParser()
		line, err := json.Marshal(map[string]any{"type": "turn.failed", "error": map[string]any{"message": text}})
		if err != nil {
			t.Fatal(err)
		}
		p.Line(line)
		got := p.Exit(agent.Ended{Exit: runlog.Exit{Code: 1, EndedAt: now}})
		if got.Status != agent.StatusRateLimited || !got.ResetAt.Equal(want) {
			t.Errorf("%s: status %q, reset %s; want %s", text, got.Status, got.ResetAt, want)
		}
	}
}

func TestJudgment(t *testing.T) {
	t.Parallel()
	agenttest.CheckEndings(t, codex.New(agent.Program{}), endings())
}

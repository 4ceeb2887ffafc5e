package agent_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/google/go-cmp/cmp"
)

// codexJudgeCases has one case for every way to end that was seen, and for every rule of trust.
func codexJudgeCases() map[string]judgeCase {
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
	cases := map[string]judgeCase{
		"done":                    {lines: []string{began, said, done}, want: agent.StatusOK},
		"done with a bad exit":    {lines: []string{began, said, done}, ended: code(1), want: agent.StatusCrashed, says: "code 1"},
		"exit 0 and no end":       {lines: []string{began, said}, want: agent.StatusCrashed},
		"exit 0 and nothing":      {want: agent.StatusCrashed},
		"nothing answered":        {lines: []string{began, done}, want: agent.StatusRefused},
		"nothing asked":           {lines: []string{began, `{"type":"turn.completed"}`}, want: agent.StatusNoOp},
		"failed after a success":  {lines: append([]string{began, said, done}, failed("last status: 500")[1]), ended: code(1), want: agent.StatusOverloaded},
		"stop asked for, success": {lines: []string{began, said, done}, ended: agent.Ended{StopRequested: true}, want: agent.StatusInterrupted},
		"time up":                 {lines: []string{began}, ended: agent.Ended{Exit: runlog.Exit{Cause: runlog.CauseDuration, Message: "as the runner says"}}, want: agent.StatusDuration},
		"stalled":                 {lines: []string{began}, ended: agent.Ended{Exit: runlog.Exit{Cause: runlog.CauseStalled}}, want: agent.StatusStalled},
		"resumed":                 {lines: []string{began, said, done}, ended: agent.Ended{WantSession: "s1"}, want: agent.StatusOK},
		"another session":         {lines: []string{began, said, done}, ended: agent.Ended{WantSession: "s2"}, want: agent.StatusNoSession, says: "another session"},
		"another session, failed": {lines: failed("last status: 500"), ended: agent.Ended{WantSession: "s2"}, want: agent.StatusNoSession},
		"no such session":         {ended: stderr("Error: thread/resume failed: no rollout found for thread id s9 (code -32600)"), want: agent.StatusNoSession, says: "no rollout"},
		"schema met":              {lines: []string{began, strings.Replace(said, "Done.", `{\"a\":1}`, 1), done}, ended: agent.Ended{WantSchema: true}, want: agent.StatusOK},
		"schema missed":           {lines: []string{began, said, done}, ended: agent.Ended{WantSchema: true}, want: agent.StatusNoStructuredOutput},
		"schema and no answer":    {lines: []string{began, `{"type":"item.completed","item":{"type":"reasoning"}}`, done}, ended: agent.Ended{WantSchema: true}, want: agent.StatusNoStructuredOutput},
		"bad flag":                {ended: stderr("error: unexpected argument '--x' found"), want: agent.StatusInvalid, says: "--x"},
		"old process alive":       {ended: stderr("Error: thread s1 already has an active writer"), want: agent.StatusInvalid, says: "active writer"},
		"not found":               {ended: code(127), want: agent.StatusStartFailed},
		"killed":                  {lines: []string{began}, ended: agent.Ended{Exit: runlog.Exit{Code: -1, Signal: "killed"}}, want: agent.StatusCrashed},
		"killed at once":          {ended: agent.Ended{Exit: runlog.Exit{Code: -1, Signal: "killed"}}, want: agent.StatusCrashed},
		"no words":                {lines: []string{began, `{"type":"error","message":"as it was"}`, `{"type":"turn.failed"}`}, ended: code(1), want: agent.StatusCrashed, says: "as it was"},
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
		cases["failure: "+text] = judgeCase{lines: failed(text), ended: code(1), want: want}
	}
	return cases
}

func TestCodexJudges(t *testing.T) {
	t.Parallel()
	for name, tc := range codexJudgeCases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := codexAdapter(t).NewParser()
			for _, l := range tc.lines {
				p.Line([]byte(l))
			}
			got := p.Exit(tc.ended)
			if got.Status != tc.want || !strings.Contains(got.Why+got.Said, tc.says) {
				t.Errorf("status %q, message %q; want %q and %q", got.Status, got.Why+got.Said, tc.want, tc.says)
			}
			if got.Status == agent.StatusNoSession && got.Session != "" {
				t.Errorf("session %q after none was found", got.Session)
			}
		})
	}
}

func TestCodexCountsARunAlone(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		ended agent.Ended
		want  runlog.Usage
	}{
		"new":                       {agent.Ended{}, runlog.Usage{Input: 7, CacheRead: 20, CacheWrite: 3, Output: 4}},
		"resumed":                   {agent.Ended{WantSession: "s", Prior: &runlog.Usage{Input: 5, CacheRead: 20, Output: 9}}, runlog.Usage{Input: 2, CacheWrite: 3}},
		"resumed, used nothing":     {agent.Ended{WantSession: "s", Prior: &runlog.Usage{}}, runlog.Usage{Input: 7, CacheRead: 20, CacheWrite: 3, Output: 4}},
		"resumed, nobody knows how": {agent.Ended{WantSession: "s"}, runlog.Usage{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := codexAdapter(t).NewParser()
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

func TestCodexTellsWhenALimitEnds(t *testing.T) {
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
		p := codexAdapter(t).NewParser()
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

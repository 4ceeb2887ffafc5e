package result_test

import (
	"testing"

	"github.com/errand-bot/errand/internal/workflow/result"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/agent/codex"
	"github.com/errand-bot/errand/internal/agent/registry"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
)

// TestUsageOfAResumedRun: Codex reports the usage of its whole session; the usage reported by earlier runs is
// subtracted, and the usage is unknown if one of them reported none.
func TestUsageOfAResumedRun(t *testing.T) {
	t.Parallel()
	agents, err := registry.New(registry.Config{Adapter: codex.Name})
	workflowtest.Check(t, err)
	p, err := workflowtest.Patterns()
	workflowtest.Check(t, err)
	cfg := result.Config{Agents: agents, Redact: trust.NewRedactor(p)}
	run := func(seq int, session string, used *state.Usage) state.Run {
		return state.Run{ID: "r", Seq: seq, Kind: state.RunImplement, RunLaunch: state.RunLaunch{Adapter: codex.Name, Session: session}, RunUsage: state.RunUsage{Used: used}}
	}
	plan, work := &state.Usage{Input: 5, CacheRead: 10, Output: 1}, &state.Usage{Input: 1, Output: 1}
	for name, tc := range map[string]struct {
		before []state.Run
		run    state.Run
		want   *state.Usage
	}{
		"the first run":                       {nil, run(1, "", nil), &state.Usage{Input: 10, CacheRead: 20, Output: 4}},
		"the first, followed again":           {nil, run(1, "s", nil), &state.Usage{Input: 10, CacheRead: 20, Output: 4}},
		"the second":                          {[]state.Run{run(1, "s", plan)}, run(2, "s", nil), &state.Usage{Input: 5, CacheRead: 10, Output: 3}},
		"the third":                           {[]state.Run{run(1, "s", plan), run(2, "s", work)}, run(3, "s", nil), &state.Usage{Input: 4, CacheRead: 10, Output: 2}},
		"after another session":               {[]state.Run{run(1, "other", plan)}, run(2, "s", nil), &state.Usage{Input: 10, CacheRead: 20, Output: 4}},
		"after one without a report":          {[]state.Run{run(1, "s", plan), run(2, "s", nil)}, run(3, "s", nil), nil},
		"interpreted again after a later run": {[]state.Run{run(1, "s", plan), run(3, "s", work)}, run(2, "s", nil), &state.Usage{Input: 5, CacheRead: 10, Output: 3}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := result.New(cfg, &state.Task{TaskRuns: state.TaskRuns{Runs: tc.before}}, &tc.run)
			for i, l := range []string{
				`{"type":"thread.started","thread_id":"s"}`, `{"type":"item.completed","item":{"type":"agent_message","text":"x"}}`,
				`{"type":"turn.completed","usage":{"input_tokens":30,"cached_input_tokens":20,"output_tokens":4}}`,
			} {
				in.Line(runlog.Line{Seq: int64(i + 1), Stream: runlog.StreamStdout, Text: l})
			}
			got := in.Exit(runlog.Exit{Cause: runlog.CauseExited})
			if diff := cmp.Diff(tc.want, got.Used); diff != "" || got.Status != state.StatusOK {
				t.Errorf("%s %s, used (-want +got):\n%s", got.Status, got.Message, diff)
			}
			if u := got.Used; u != nil && got.Money.InputTokens != u.Input+u.CacheRead {
				t.Errorf("got cost %+v, usage %+v", got.Money, *u)
			}
		})
	}
}

// TestRefusedCallsOnStandardError: Codex reports refused calls only on standard error; all are counted, however many
// lines follow.
func TestRefusedCallsOnStandardError(t *testing.T) {
	t.Parallel()
	p, err := workflowtest.Patterns()
	workflowtest.Check(t, err)
	agents, err := registry.New(registry.Config{Adapter: codex.Name})
	workflowtest.Check(t, err)
	cfg := result.Config{Agents: agents, Redact: trust.NewRedactor(p)}
	in := result.New(cfg, &state.Task{}, &state.Run{ID: "r-1", Kind: state.RunImplement, RunLaunch: state.RunLaunch{Adapter: codex.Name}})
	seq := int64(0)
	for i := range 200 {
		text := "something else"
		if i < 3 {
			text = "2026-11-22T05:56:39.783491Z ERROR codex_core::tools::router: error=Command blocked by PreToolUse hook: no.. Command: install a b"
		}
		seq++
		in.Line(runlog.Line{Seq: seq, Stream: runlog.StreamStderr, Text: text})
	}
	if got := in.Exit(runlog.Exit{Cause: runlog.CauseExited}).Refused; got != 3 {
		t.Errorf("got %d refused calls, want 3", got)
	}
}

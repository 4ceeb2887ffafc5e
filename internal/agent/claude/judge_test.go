package claude_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/agent/claude"
	"github.com/errand-bot/errand/internal/runlog"
)

// result is a result line with the fields given, over those of a success.
func result(fields string) string {
	return `{"type":"result","subtype":"success","is_error":false,"num_turns":3,"result":"Done.","session_id":"s1",` +
		`"terminal_reason":"completed",` + fields + `"x":0}`
}

// endings has one case for every way to end that was seen, and for every rule of trust.
func endings() map[string]agenttest.Ending {
	code := func(n int) agent.Ended { return agent.Ended{Exit: runlog.Exit{Cause: runlog.CauseExited, Code: n}} }
	cause := func(c runlog.Cause) agent.Ended {
		return agent.Ended{Exit: runlog.Exit{Cause: c, Message: "as the runner says"}}
	}
	failed := func(fields string) []string {
		return []string{result(`"is_error":true,"result":"API Error",` + fields)}
	}
	return map[string]agenttest.Ending{
		"done":                      {Lines: []string{result("")}, Want: agent.StatusOK},
		"success with a bad exit":   {Lines: []string{result("")}, Ended: code(1), Want: agent.StatusCrashed, Says: "code 1"},
		"exit 0 and no result":      {Want: agent.StatusCrashed},
		"the last result counts":    {Lines: []string{failed("")[0], result("")}, Want: agent.StatusOK},
		"a failure after a success": {Lines: []string{result(""), failed(`"api_error_status":529,`)[0]}, Ended: code(1), Want: agent.StatusOverloaded},

		"stop asked for, success": {Lines: []string{result("")}, Ended: agent.Ended{StopRequested: true}, Want: agent.StatusInterrupted},
		"stopped by the runner":   {Lines: []string{result("")}, Ended: cause(runlog.CauseStopped), Want: agent.StatusInterrupted},
		"aborted by itself":       {Lines: []string{result(`"subtype":"error_during_execution","terminal_reason":"aborted_streaming",`)}, Want: agent.StatusInterrupted},
		"time up":                 {Lines: []string{result("")}, Ended: cause(runlog.CauseDuration), Want: agent.StatusDuration},
		"stalled":                 {Ended: cause(runlog.CauseStalled), Want: agent.StatusStalled},
		"lost":                    {Ended: cause(runlog.CauseLost), Want: agent.StatusLost},
		"set-up failed":           {Ended: cause(runlog.CauseSetupFailed), Want: agent.StatusSetupFailed},
		"not started":             {Ended: cause(runlog.CauseStartFailed), Want: agent.StatusStartFailed},

		"resumed":         {Lines: []string{result("")}, Ended: agent.Ended{WantSession: "s1"}, Want: agent.StatusOK},
		"another session": {Lines: []string{result("")}, Ended: agent.Ended{WantSession: "s2"}, Want: agent.StatusNoSession},
		"no such session": {Lines: []string{result(`"subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID: s9"],`)}, Ended: code(1), Want: agent.StatusNoSession},
		"no such session, only on stderr": {
			Ended: agent.Ended{Exit: runlog.Exit{Code: 1}, Stderr: "No conversation found with session ID: s9\n"}, Want: agent.StatusNoSession,
		},

		"schema met":       {Lines: []string{result(`"structured_output":{"a":1},`)}, Ended: agent.Ended{WantSchema: true}, Want: agent.StatusOK},
		"schema forgotten": {Lines: []string{result("")}, Ended: agent.Ended{WantSchema: true}, Want: agent.StatusNoStructuredOutput},
		"schema null":      {Lines: []string{result(`"structured_output":null,`)}, Ended: agent.Ended{WantSchema: true}, Want: agent.StatusNoStructuredOutput},
		"schema missed":    {Lines: []string{result(`"subtype":"error_max_structured_output_retries","is_error":true,`)}, Ended: code(1), Want: agent.StatusNoStructuredOutput},

		"nothing done":   {Lines: []string{result(`"num_turns":0,"result":"Unknown command: /x",`)}, Want: agent.StatusNoOp, Says: "Unknown command"},
		"max turns":      {Lines: []string{result(`"subtype":"error_max_turns","is_error":true,"result":"","errors":["Reached maximum number of turns (2)"],`)}, Ended: code(1), Want: agent.StatusMaxTurns, Says: "(2)"},
		"budget":         {Lines: []string{result(`"subtype":"error_max_budget_usd","is_error":true,`)}, Ended: code(1), Want: agent.StatusBudget},
		"hook":           {Lines: []string{result(`"terminal_reason":"hook_stopped",`)}, Want: agent.StatusHookStopped},
		"refusal":        {Lines: failed(`"stop_reason":"refusal",`), Ended: code(1), Want: agent.StatusRefused},
		"polite refusal": {Lines: []string{result(`"stop_reason":"refusal",`)}, Want: agent.StatusRefused},
		"other error":    {Lines: []string{result(`"subtype":"error_of_the_future","is_error":true,`)}, Ended: code(1), Want: agent.StatusCrashed},

		"too long":      {Lines: failed(`"api_error_status":400,"terminal_reason":"prompt_too_long",`), Ended: code(1), Want: agent.StatusContextOverflow},
		"not logged in": {Lines: append([]string{`{"type":"assistant","error":"authentication_failed","message":{"content":[{"type":"text","text":"Not logged in"}]}}`}, failed(`"api_error_status":null,`)...), Ended: code(1), Want: agent.StatusAuth},
		"no network":    {Lines: failed(`"result":"API Error: Unable to connect to API (ConnectionRefused)",`), Ended: code(1), Want: agent.StatusNetwork},
		"no credit":     {Lines: append([]string{`{"type":"assistant","error":"billing_error","message":{"content":[]}}`}, failed(`"api_error_status":400,`)...), Ended: code(1), Want: agent.StatusBilling},
		"unexplained":   {Lines: failed(""), Ended: code(1), Want: agent.StatusCrashed},

		"bad flag":     {Ended: agent.Ended{Exit: runlog.Exit{Code: 1}, Stderr: "warning\nerror: unknown option '--x'\n"}, Want: agent.StatusInvalid, Says: "--x"},
		"not found":    {Ended: code(127), Want: agent.StatusStartFailed},
		"terminated":   {Ended: code(143), Want: agent.StatusCrashed},
		"killed":       {Ended: agent.Ended{Exit: runlog.Exit{Code: -1, Signal: "killed"}}, Want: agent.StatusCrashed},
		"silent death": {Ended: code(1), Want: agent.StatusCrashed},
	}
}

func TestResetTimeOfALimit(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 23, 0, 0, 0, time.UTC)
	limited := func(text string) string {
		return result(fmt.Sprintf(`"is_error":true,"api_error_status":429,"result":%q,`, text))
	}
	for name, tc := range map[string]struct {
		lines []string
		want  time.Time
	}{
		"by event": {[]string{
			`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1795300000,"rateLimitType":"five_hour"}}`,
			limited("You've hit your session limit"),
		}, time.Unix(1795300000, 0).UTC()},
		"a warning is no end": {[]string{
			`{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":1795300000}}`, limited("x"),
		}, time.Time{}},
		"by text, later today":    {[]string{limited("limit · resets 11:26pm (UTC)")}, time.Date(2026, 11, 21, 23, 26, 0, 0, time.UTC)},
		"by text, tomorrow":       {[]string{limited("limit · resets 6am (UTC)")}, time.Date(2026, 11, 22, 6, 0, 0, 0, time.UTC)},
		"by text that is no time": {[]string{limited("limit · resets 77:99pm (UTC)")}, time.Time{}},
		"far beyond any time":     {[]string{`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1e300}}`, limited("x")}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := claude.New(agent.Program{Command: []string{"claude"}}).NewParser()
			for _, l := range tc.lines {
				p.Line([]byte(l))
			}
			got := p.Exit(agent.Ended{Exit: runlog.Exit{Code: 1, EndedAt: now}})
			if got.Status != agent.StatusRateLimited || !got.ResetAt.Equal(tc.want) {
				t.Errorf("status %q, reset %s; want %s", got.Status, got.ResetAt, tc.want)
			}
		})
	}
}

func TestEvents(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		line string
		want []runlog.Event
	}{
		"failed MCP server": {
			`{"type":"system","subtype":"init","session_id":"s","model":"m","mcp_servers":[{"name":"a","status":"failed"},{"name":"b","status":"connected"}]}`,
			[]runlog.Event{{Kind: runlog.KindStarted, Session: "s", Model: "m"}, {Kind: runlog.KindNotice, Text: "MCP server a could not be reached"}},
		},
		"thinking and text": {
			`{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"ah"},{"type":"new"}]}}`,
			[]runlog.Event{{Kind: runlog.KindThinking, Text: "hm"}, {Kind: runlog.KindText, Text: "ah"}},
		},
		"failure as text": {
			`{"type":"assistant","error":"rate_limit","message":{"content":[{"type":"text","text":"no"}]}}`,
			[]runlog.Event{{Kind: runlog.KindNotice, Text: "no", IsError: true}},
		},
		"retry": {
			`{"type":"system","subtype":"api_retry","retry_delay_ms":529.5,"error_status":null,"error":"unknown"}`,
			[]runlog.Event{{Kind: runlog.KindRetry, Text: "unknown", IsError: true, Delay: 529500 * time.Microsecond}},
		},
		"result in blocks, one odd": {
			`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":[{"type":"text","text":"a"},{"type":"image"}]},{"type":7}]}}`,
			[]runlog.Event{{Kind: runlog.KindToolResult, ToolID: "t", IsError: true, Text: "a\n[image]"}},
		},
		"injected": {
			`{"type":"user","isSynthetic":true,"message":{"content":"Stop hook says no"}}`,
			[]runlog.Event{{Kind: runlog.KindNotice, Text: "Stop hook says no"}},
		},
		"our own words":  {`{"type":"user","message":{"content":"the prompt"}}`, nil},
		"fallback":       {`{"type":"system","subtype":"model_fallback","original_model":"a","fallback_model":"b"}`, []runlog.Event{{Kind: runlog.KindNotice, Text: "model a replaced by b"}}},
		"compaction":     {`{"type":"system","subtype":"compact_boundary"}`, []runlog.Event{{Kind: runlog.KindNotice, Text: "conversation compacted"}}},
		"failed hook":    {`{"type":"system","subtype":"hook_response","hook_event":"Stop","outcome":"error"}`, []runlog.Event{{Kind: runlog.KindNotice, Text: "hook Stop: error"}}},
		"partial stream": {`{"type":"stream_event","event":{"type":"content_block_delta"}}`, nil},
		"status":         {`{"type":"system","subtype":"status","status":"requesting"}`, nil},
		"made-up usage": {
			`{"type":"result","subtype":"success","modelUsage":{"a":{"inputTokens":-5,"outputTokens":1e300},"b":{"inputTokens":2,"cacheReadInputTokens":3}}}`,
			[]runlog.Event{
				{Kind: runlog.KindUsage, Usage: &runlog.Usage{Input: 2, Output: 1e12, CacheRead: 3}},
				{Kind: runlog.KindResult},
			},
		},
		"a long text is cut": {
			`{"type":"user","message":{"content":[{"type":"tool_result","content":"` + strings.Repeat("ä", 10_000) + `"}]}}`,
			[]runlog.Event{{Kind: runlog.KindToolResult, Text: strings.Repeat("ä", 8192) + "…"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := claude.New(agent.Program{Command: []string{"claude"}}).NewParser().Line([]byte(tc.line))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzParser(f *testing.F) {
	f.Add(`{"type":"system","subtype":"init","session_id":"s"}`+"\n"+result(`"permission_denials":[{"tool_name":"Bash"}],`), 0, "")
	f.Add(`{"type":"assistant","message":{"content":[{"type":"tool_use","input":{"a":[1]}}]}}`, 1, "Error: x")
	f.Add(`{"type":"user","message":{"content":[{"type":"tool_result","content":[7]}]}}`, 143, "")
	f.Fuzz(func(t *testing.T, out string, code int, stderr string) {
		p, q := claude.New(agent.Program{Command: []string{"claude"}}).NewParser(), claude.New(agent.Program{Command: []string{"claude"}}).NewParser()
		for line := range strings.SplitSeq(out, "\n") {
			q.Line([]byte(line))
			for _, e := range p.Line([]byte(line)) {
				if e.Kind == "" || len(e.Text) > 300<<10 || len(e.Input) > 20<<10 {
					t.Errorf("event %+v", e)
				}
				if e.Usage != nil && (e.Usage.Input < 0 || e.Usage.Output < 0) {
					t.Errorf("usage %+v", e.Usage)
				}
			}
		}
		r := p.Exit(agent.Ended{Exit: runlog.Exit{Cause: runlog.CauseExited, Code: code}, Stderr: stderr, StopRequested: true})
		if r.Status != agent.StatusInterrupted {
			t.Errorf("after a stop the run counts as %q", r.Status)
		}
		r = q.Exit(agent.Ended{Exit: runlog.Exit{Cause: runlog.CauseExited, Code: code}, Stderr: stderr})
		if !slices.Contains(agenttest.Statuses(), r.Status) || len(r.Said) > 2010 || (r.Status == agent.StatusOK && code != 0) {
			t.Errorf("code %d: result %+v", code, r)
		}
	})
}

func TestJudgment(t *testing.T) {
	t.Parallel()
	agenttest.CheckEndings(t, claude.New(agent.Program{}), endings())
}

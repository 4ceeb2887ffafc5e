package gemini_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/agent/gemini"
	"github.com/errand-bot/errand/internal/runlog"
)

// Lines as the program printed them.
const (
	lineInit   = `{"type":"init","timestamp":"2026-11-21T23:04:36.897Z","session_id":"s1","model":"gemini-2.5-pro"}`
	lineAsked  = `{"type":"message","timestamp":"2026-11-21T23:04:37.011Z","role":"user","content":"What is 2+2?"}`
	lineTool   = `{"type":"tool_use","timestamp":"2026-11-21T23:04:37.045Z","tool_name":"run_shell_command","tool_id":"t1","parameters":{"command":"exit 3"}}`
	lineOutput = `{"type":"tool_result","timestamp":"2026-11-21T23:04:37.140Z","tool_id":"t1","status":"success","output":"out\nerr"}`
	lineDone   = `{"type":"result","timestamp":"2026-11-21T23:04:37.170Z","status":"success","stats":{"total_tokens":70,"input_tokens":40,"output_tokens":12,"cached":10,"input":30,"duration_ms":273,"tool_calls":1,"models":{}}}`
	statsField = `"stats":{"total_tokens":0,"input_tokens":0,"output_tokens":0,"cached":0,"input":0}}`
)

// TestCommandLine compares complete commands with golden files.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	full, resumed := agenttest.FullSpec(), agenttest.LeastSpec(gemini.DefaultModel)
	full.Schema, full.Model, resumed.Resume = nil, gemini.DefaultModel, "0d5c1b8e-8f5e-4c39-9a44-1f2a3b4c5d6e"
	env := map[string]string{"GOOGLE_GEMINI_BASE_URL": "http://evil", "GOFLAGS": "-mod=mod"}
	agenttest.CheckCommand(t, "full", gemini.New(agent.Program{Command: []string{"gemini"}, Env: env}), full, *update)
	agenttest.CheckCommand(t, "resumed", gemini.New(agent.Program{Command: []string{"node", "/opt/gemini.js"}}), resumed, *update)
}

// textLine returns a chunk of the model's text.
func textLine(text string) string {
	return `{"type":"message","role":"assistant","content":"` + text + `","delta":true}`
}

// failedResult returns the result of a failed run.
func failedResult(kind, message string) string {
	return `{"type":"result","status":"error","error":{"type":"` + kind + `","message":"` + message + `"},` + statsField
}

// TestLines: chunks are joined, turns and tokens counted, and unknown lines ignored.
func TestLines(t *testing.T) {
	t.Parallel()
	p := gemini.New(agent.Program{}).NewParser()
	var got []runlog.Event
	for _, line := range []string{
		lineInit, lineAsked, textLine("Look"), textLine("ing."), lineTool, `{"type":"from_the_future"}`, `{`, `7`, lineOutput,
		`{"type":"tool_result","tool_id":"t2","status":"error","error":{"type":"invalid_tool_params","message":"no such file"}}`,
		`{"type":"error","severity":"warning","message":"The model was changed."}`,
		textLine("It is "), textLine("4."), lineDone,
	} {
		got = append(got, p.Line([]byte(line))...)
	}
	usage := runlog.Usage{Input: 30, CacheRead: 10, Output: 30}
	want := []runlog.Event{
		{Kind: runlog.KindStarted, Session: "s1", Model: "gemini-2.5-pro"},
		{Kind: runlog.KindText, Text: "Looking."},
		{Kind: runlog.KindToolUse, ToolID: "t1", ToolName: "run_shell_command", Input: `{"command":"exit 3"}`},
		{Kind: runlog.KindToolResult, ToolID: "t1", Text: "out\nerr"},
		{Kind: runlog.KindToolResult, ToolID: "t2", Text: "no such file", IsError: true},
		{Kind: runlog.KindNotice, Text: "The model was changed."},
		{Kind: runlog.KindText, Text: "It is 4."},
		{Kind: runlog.KindUsage, Usage: &usage},
		{Kind: runlog.KindResult, Text: "It is 4.", Session: "s1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	r := p.Exit(agent.Ended{Exit: runlog.Exit{Cause: runlog.CauseExited}, WantSession: "s1"})
	if diff := cmp.Diff(agent.Result{Status: agent.StatusOK, Text: "It is 4.", Session: "s1", Turns: 2, Usage: usage}, r); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

// endings has one case for every way to end that was seen.
func endings() map[string]agenttest.Ending {
	ended := func(code int, stderr string) agent.Ended {
		return agent.Ended{Exit: runlog.Exit{Cause: runlog.CauseExited, Code: code}, Stderr: stderr}
	}
	done := []string{lineInit, textLine("Done."), lineDone}
	failed := func(message string) []string { return []string{lineInit, failedResult("Error", message)} }
	problem := func(message string, counted int) []string { // without an exit code
		return []string{
			lineInit, `{"type":"error","severity":"error","message":"` + message + `"}`,
			fmt.Sprintf(`{"type":"result","status":"error","stats":{"total_tokens":%d,"input_tokens":%[1]d,"output_tokens":0}}`, counted),
		}
	}
	return map[string]agenttest.Ending{
		"done":                     {Lines: done, Want: agent.StatusOK},
		"stopped, exit 0":          {Lines: []string{lineInit, lineTool}, Ended: agent.Ended{StopRequested: true}, Want: agent.StatusInterrupted},
		"exit 0 and no result":     {Lines: []string{lineInit, textLine("Done.")}, Want: agent.StatusCrashed},
		"success after a stop":     {Lines: done, Ended: agent.Ended{Exit: runlog.Exit{Cause: runlog.CauseStopped}}, Want: agent.StatusInterrupted},
		"time up":                  {Lines: done, Ended: agent.Ended{Exit: runlog.Exit{Cause: runlog.CauseDuration, Message: "as the runner says"}}, Want: agent.StatusDuration},
		"another session":          {Lines: done, Ended: agent.Ended{WantSession: "s2"}, Want: agent.StatusNoSession},
		"no such session":          {Ended: ended(42, "YOLO mode is enabled.\nError resuming session: Invalid session identifier \"x\".\n  Searched for sessions in y."), Want: agent.StatusNoSession, Says: "Invalid session"},
		"no sessions at all":       {Ended: ended(42, "Error resuming session: No previous sessions found for this project."), Want: agent.StatusNoSession},
		"an id in use":             {Ended: ended(42, `Error starting session: Session ID "x" already exists.`), Want: agent.StatusInvalid, Says: "already exists"},
		"turns":                    {Lines: []string{lineInit, lineTool, failedResult("FatalTurnLimitedError", "Reached max session turns")}, Ended: ended(53, ""), Want: agent.StatusMaxTurns, Says: "Reached"},
		"no login":                 {Ended: ended(41, "Invalid auth method selected."), Want: agent.StatusAuth},
		"an untrusted folder":      {Ended: ended(55, "not trusted"), Want: agent.StatusInvalid},
		"a bad key":                {Lines: failed("[API Error: API key not valid]"), Ended: ended(144, `{"error":{"code":400,"message":"API key not valid"}}`), Want: agent.StatusAuth},
		"refused":                  {Lines: failed("[API Error: not allowed]"), Ended: ended(147, ""), Want: agent.StatusAuth},
		"a limit":                  {Lines: failed("[API Error: Quota exceeded]"), Ended: ended(173, `"code": 429`), Want: agent.StatusRateLimited, Says: "Quota"},
		"overloaded":               {Lines: failed("[API Error: Overloaded]"), Ended: ended(247, ""), Want: agent.StatusOverloaded},
		"no such model":            {Lines: failed("[API Error: model: x]"), Ended: ended(1, "ModelNotFoundError: model: x\n  code: 404\n}"), Want: agent.StatusInvalid},
		"too long":                 {Lines: failed("The input token count (2000000) exceeds the maximum number of tokens allowed"), Ended: ended(144, ""), Want: agent.StatusContextOverflow},
		"too large":                {Lines: failed("too large"), Ended: ended(157, ""), Want: agent.StatusContextOverflow},
		"no network":               {Lines: failed("fetch failed"), Ended: ended(1, "TypeError: fetch failed\n  cause: Error: connect ECONNREFUSED 127.0.0.1:1"), Want: agent.StatusNetwork},
		"cut off":                  {Lines: failed("[API Error: terminated]"), Ended: ended(1, "TypeError: terminated"), Want: agent.StatusNetwork, Says: "terminated"},
		"cut off after a 429":      {Lines: failed("[API Error: terminated]"), Ended: ended(1, `{"error":{"code":429}}`+"\nTypeError: terminated"), Want: agent.StatusNetwork},
		"cut off in a piece":       {Lines: failed("[API Error: Incomplete JSON segment at the end]"), Ended: ended(1, ""), Want: agent.StatusNetwork},
		"a broken socket":          {Lines: failed("[API Error: x]"), Ended: ended(1, "code: 'UND_ERR_SOCKET'"), Want: agent.StatusNetwork},
		"no headers":               {Lines: failed("[API Error: UND_ERR_HEADERS_TIMEOUT]"), Ended: ended(1, ""), Want: agent.StatusNetwork},
		"a reset":                  {Lines: failed("[API Error: read ECONNRESET]"), Ended: ended(1, ""), Want: agent.StatusNetwork},
		"a hang-up":                {Lines: failed("[API Error: socket hang up]"), Ended: ended(1, ""), Want: agent.StatusNetwork},
		"closed too early":         {Lines: failed("[API Error: Invalid response body: Premature close]"), Ended: ended(1, ""), Want: agent.StatusNetwork},
		"no fetch":                 {Lines: failed("[API Error: exception TypeError: fetch failed sending request]"), Ended: ended(1, ""), Want: agent.StatusNetwork},
		"an error named so":        {Lines: failed("[API Error: the process was terminated]"), Ended: ended(1, ""), Want: agent.StatusCrashed},
		"cut off between pieces":   {Lines: problem("Model stream ended without a finish reason.", 0), Want: agent.StatusNetwork},
		"a blocked prompt":         {Lines: problem("Model stream ended without a finish reason.", 10), Want: agent.StatusRefused, Says: "had blocked"},
		"blocked after a tool":     {Lines: append([]string{lineInit, textLine("Looking."), lineTool, lineOutput}, problem("The model response was blocked due to safety settings.", 10)[1:]...), Want: agent.StatusRefused, Says: "safety"},
		"empty after a tool":       {Lines: []string{lineInit, textLine("Looking."), lineTool, lineOutput, lineDone}, Want: agent.StatusRefused, Says: "empty"},
		"a success with a bad end": {Lines: done, Ended: ended(9, ""), Want: agent.StatusCrashed},
		"an error with exit 0":     {Lines: failed("it broke"), Want: agent.StatusCrashed, Says: "it broke"},
		"killed":                   {Lines: done, Ended: agent.Ended{Exit: runlog.Exit{Code: 137, Signal: "killed"}}, Want: agent.StatusCrashed},
		"not installed":            {Ended: ended(127, "sh: gemini: not found"), Want: agent.StatusStartFailed},
		"never asked":              {Lines: []string{lineInit, lineDone}, Want: agent.StatusNoOp},
		"declined":                 {Lines: []string{lineInit, lineTool, lineOutput, lineDone}, Want: agent.StatusRefused},
		"going round":              {Lines: []string{lineInit, textLine("x"), `{"type":"error","severity":"warning","message":"Loop detected, stopping execution"}`, lineDone}, Want: agent.StatusLooped},
	}
}

// TestResetTimeOfALimit: the end of a limit is the last one that the API reported.
func TestResetTimeOfALimit(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	p := gemini.New(agent.Program{}).NewParser()
	p.Line([]byte(failedResult("Error", "[API Error: Quota]")))
	r := p.Exit(agent.Ended{Exit: runlog.Exit{Cause: runlog.CauseExited, Code: 173, EndedAt: at}, Stderr: `"retryDelay": "5s" "retryDelay": "90.5s"`})
	if want := at.Add(90 * time.Second); !r.ResetAt.Equal(want) || r.HTTP != 429 {
		t.Errorf("again at %s after HTTP %d, want %s after 429", r.ResetAt, r.HTTP, want)
	}
}

// Features that the program does not have are refused.
func TestInvalidSpecIsRefused(t *testing.T) {
	t.Parallel()
	const id = "0d5c1b8e-8f5e-4c39-9a44-1f2a3b4c5d6e"
	for name, tc := range map[string]struct {
		change func(*agent.Spec)
		want   string
	}{
		"a schema":      {func(s *agent.Spec) { s.Schema = []byte(`{}`) }, "schema"},
		"both sessions": {func(s *agent.Spec) { s.Resume = id }, "not both"},
		"no prompt":     {func(s *agent.Spec) { s.Prompt = "" }, "prompt is empty"},
		"a bad rule":    {func(s *agent.Spec) { s.Deny = []string{"Edit(a"} }, "deny rule"},
		"a bad server":  {func(s *agent.Spec) { s.MCP = []byte(`{"mcpServers":{"x":null}}`) }, "MCP server x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := agenttest.FullSpec()
			spec.Schema = nil
			agenttest.CheckRefusal(t, gemini.New(agent.Program{}), spec, tc.change, tc.want)
		})
	}
}

// FuzzParser: for any output, the parser returns bounded events and a judgment, and reports success only for
// plausible output.
func FuzzParser(f *testing.F) {
	f.Add(strings.Join([]string{lineInit, lineAsked, textLine("a"), lineTool, lineOutput, textLine("b"), lineDone}, "\n"), "", 0)
	f.Add(failedResult("FatalTurnLimitedError", "x"), `{"code": 429, "retryDelay": "9999999s"}`, 53)
	f.Add(`{"type":"result","status":7,"stats":{"input_tokens":-1e300,"cached":1e300}}`, "Error", 173)
	a := gemini.New(agent.Program{Command: []string{"gemini"}})
	f.Fuzz(func(t *testing.T, output, stderr string, code int) {
		p := a.NewParser()
		spoke := false
		for line := range strings.Lines(output) {
			for _, e := range p.Line([]byte(strings.TrimRight(line, "\n"))) {
				spoke = spoke || e.Kind == runlog.KindText
				if len(e.Text) > 257<<10 || len(e.Input) > 17<<10 || e.Usage != nil && (e.Usage.Input < 0 || e.Usage.Output < 0 || e.Usage.CacheRead < 0) {
					t.Fatalf("event out of bounds: %.200v", e)
				}
			}
		}
		r := p.Exit(agent.Ended{Exit: runlog.Exit{Cause: runlog.CauseExited, Code: code, EndedAt: time.Unix(1_800_000_000, 0)}, Stderr: stderr})
		if r.Status == agent.StatusOK && (code != 0 || !spoke || r.Text == "") || r.Status == "" {
			t.Errorf("status %q of code %d, spoke %v", r.Status, code, spoke)
		}
	})
}

// TestRefusedCallsAreCounted: calls that the policy or the hook refused are counted, other failures are not.
func TestRefusedCallsAreCounted(t *testing.T) {
	t.Parallel()
	p := gemini.New(agent.Program{}).NewParser()
	for _, line := range []string{
		lineInit, lineTool,
		`{"type":"tool_result","timestamp":"2026-11-22T05:59:19.593Z","tool_id":"run_shell_command__run_shell_command_1795327159570_0","status":"error","output":"Tool execution denied by policy.","error":{"type":"policy_violation","message":"Tool execution denied by policy."}}`,
		`{"type":"tool_result","timestamp":"2026-11-22T05:59:21.177Z","tool_id":"run_shell_command__run_shell_command_1795327161148_0","status":"error","output":"Tool execution blocked: The rules of this run refuse this call (Bash(touch denied:*)).","error":{"type":"policy_violation","message":"Tool execution blocked: The rules of this run refuse this call (Bash(touch denied:*))."}}`,
		`{"type":"tool_result","tool_id":"t2","status":"error","error":{"type":"invalid_tool_params","message":"policy_violation"}}`,
		lineOutput, textLine("Done."), lineDone,
	} {
		p.Line([]byte(line))
	}
	want := []string{"run_shell_command", "run_shell_command"}
	if diff := cmp.Diff(want, p.Exit(agent.Ended{Exit: runlog.Exit{Cause: runlog.CauseExited}}).Denials); diff != "" {
		t.Errorf("denials (-want +got):\n%s", diff)
	}
}

func TestJudgment(t *testing.T) {
	t.Parallel()
	agenttest.CheckEndings(t, gemini.New(agent.Program{}), endings())
}

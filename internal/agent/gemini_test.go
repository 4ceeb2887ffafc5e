package agent_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/runlog"
)

// Lines as the program printed them.
const (
	geminiInit   = `{"type":"init","timestamp":"2026-11-21T23:04:36.897Z","session_id":"s1","model":"gemini-2.5-pro"}`
	geminiAsked  = `{"type":"message","timestamp":"2026-11-21T23:04:37.011Z","role":"user","content":"What is 2+2?"}`
	geminiTool   = `{"type":"tool_use","timestamp":"2026-11-21T23:04:37.045Z","tool_name":"run_shell_command","tool_id":"t1","parameters":{"command":"exit 3"}}`
	geminiOutput = `{"type":"tool_result","timestamp":"2026-11-21T23:04:37.140Z","tool_id":"t1","status":"success","output":"out\nerr"}`
	geminiDone   = `{"type":"result","timestamp":"2026-11-21T23:04:37.170Z","status":"success","stats":{"total_tokens":70,"input_tokens":40,"output_tokens":12,"cached":10,"input":30,"duration_ms":273,"tool_calls":1,"models":{}}}`
	geminiStats  = `"stats":{"total_tokens":0,"input_tokens":0,"output_tokens":0,"cached":0,"input":0}}`
)

// geminiSays returns a chunk of the model's text.
func geminiSays(text string) string {
	return `{"type":"message","role":"assistant","content":"` + text + `","delta":true}`
}

// geminiFailed is a result that is none.
func geminiFailed(kind, message string) string {
	return `{"type":"result","status":"error","error":{"type":"` + kind + `","message":"` + message + `"},` + geminiStats
}

func geminiParser(t *testing.T) agent.Parser {
	t.Helper()
	return newAdapter(t, agent.Config{Adapter: agent.NameGemini}).NewParser()
}

// TestGeminiLines: chunks are joined, turns and tokens counted, and unknown lines ignored.
func TestGeminiLines(t *testing.T) {
	t.Parallel()
	p := geminiParser(t)
	var got []runlog.Event
	for _, line := range []string{
		geminiInit, geminiAsked, geminiSays("Look"), geminiSays("ing."), geminiTool, `{"type":"from_the_future"}`, `{`, `7`, geminiOutput,
		`{"type":"tool_result","tool_id":"t2","status":"error","error":{"type":"invalid_tool_params","message":"no such file"}}`,
		`{"type":"error","severity":"warning","message":"The model was changed."}`,
		geminiSays("It is "), geminiSays("4."), geminiDone,
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

// geminiEnds has one case for every way to end that was seen.
func geminiEnds() map[string]judgeCase {
	ended := func(code int, stderr string) agent.Ended {
		return agent.Ended{Exit: runlog.Exit{Cause: runlog.CauseExited, Code: code}, Stderr: stderr}
	}
	done := []string{geminiInit, geminiSays("Done."), geminiDone}
	failed := func(message string) []string { return []string{geminiInit, geminiFailed("Error", message)} }
	problem := func(message string, counted int) []string { // without an exit code
		return []string{
			geminiInit, `{"type":"error","severity":"error","message":"` + message + `"}`,
			fmt.Sprintf(`{"type":"result","status":"error","stats":{"total_tokens":%d,"input_tokens":%[1]d,"output_tokens":0}}`, counted),
		}
	}
	return map[string]judgeCase{
		"done":                     {lines: done, want: agent.StatusOK},
		"stopped, exit 0":          {lines: []string{geminiInit, geminiTool}, ended: agent.Ended{StopRequested: true}, want: agent.StatusInterrupted},
		"exit 0 and no result":     {lines: []string{geminiInit, geminiSays("Done.")}, want: agent.StatusCrashed},
		"success after a stop":     {lines: done, ended: agent.Ended{Exit: runlog.Exit{Cause: runlog.CauseStopped}}, want: agent.StatusInterrupted},
		"time up":                  {lines: done, ended: agent.Ended{Exit: runlog.Exit{Cause: runlog.CauseDuration, Message: "as the runner says"}}, want: agent.StatusDuration},
		"another session":          {lines: done, ended: agent.Ended{WantSession: "s2"}, want: agent.StatusNoSession},
		"no such session":          {ended: ended(42, "YOLO mode is enabled.\nError resuming session: Invalid session identifier \"x\".\n  Searched for sessions in y."), want: agent.StatusNoSession, says: "Invalid session"},
		"no sessions at all":       {ended: ended(42, "Error resuming session: No previous sessions found for this project."), want: agent.StatusNoSession},
		"an id in use":             {ended: ended(42, `Error starting session: Session ID "x" already exists.`), want: agent.StatusInvalid, says: "already exists"},
		"turns":                    {lines: []string{geminiInit, geminiTool, geminiFailed("FatalTurnLimitedError", "Reached max session turns")}, ended: ended(53, ""), want: agent.StatusMaxTurns, says: "Reached"},
		"no login":                 {ended: ended(41, "Invalid auth method selected."), want: agent.StatusAuth},
		"an untrusted folder":      {ended: ended(55, "not trusted"), want: agent.StatusInvalid},
		"a bad key":                {lines: failed("[API Error: API key not valid]"), ended: ended(144, `{"error":{"code":400,"message":"API key not valid"}}`), want: agent.StatusAuth},
		"refused":                  {lines: failed("[API Error: not allowed]"), ended: ended(147, ""), want: agent.StatusAuth},
		"a limit":                  {lines: failed("[API Error: Quota exceeded]"), ended: ended(173, `"code": 429`), want: agent.StatusRateLimited, says: "Quota"},
		"overloaded":               {lines: failed("[API Error: Overloaded]"), ended: ended(247, ""), want: agent.StatusOverloaded},
		"no such model":            {lines: failed("[API Error: model: x]"), ended: ended(1, "ModelNotFoundError: model: x\n  code: 404\n}"), want: agent.StatusInvalid},
		"too long":                 {lines: failed("The input token count (2000000) exceeds the maximum number of tokens allowed"), ended: ended(144, ""), want: agent.StatusContextOverflow},
		"too large":                {lines: failed("too large"), ended: ended(157, ""), want: agent.StatusContextOverflow},
		"no network":               {lines: failed("fetch failed"), ended: ended(1, "TypeError: fetch failed\n  cause: Error: connect ECONNREFUSED 127.0.0.1:1"), want: agent.StatusNetwork},
		"cut off":                  {lines: failed("[API Error: terminated]"), ended: ended(1, "TypeError: terminated"), want: agent.StatusNetwork, says: "terminated"},
		"cut off after a 429":      {lines: failed("[API Error: terminated]"), ended: ended(1, `{"error":{"code":429}}`+"\nTypeError: terminated"), want: agent.StatusNetwork},
		"cut off in a piece":       {lines: failed("[API Error: Incomplete JSON segment at the end]"), ended: ended(1, ""), want: agent.StatusNetwork},
		"a broken socket":          {lines: failed("[API Error: x]"), ended: ended(1, "code: 'UND_ERR_SOCKET'"), want: agent.StatusNetwork},
		"no headers":               {lines: failed("[API Error: UND_ERR_HEADERS_TIMEOUT]"), ended: ended(1, ""), want: agent.StatusNetwork},
		"a reset":                  {lines: failed("[API Error: read ECONNRESET]"), ended: ended(1, ""), want: agent.StatusNetwork},
		"a hang-up":                {lines: failed("[API Error: socket hang up]"), ended: ended(1, ""), want: agent.StatusNetwork},
		"closed too early":         {lines: failed("[API Error: Invalid response body: Premature close]"), ended: ended(1, ""), want: agent.StatusNetwork},
		"no fetch":                 {lines: failed("[API Error: exception TypeError: fetch failed sending request]"), ended: ended(1, ""), want: agent.StatusNetwork},
		"an error named so":        {lines: failed("[API Error: the process was terminated]"), ended: ended(1, ""), want: agent.StatusCrashed},
		"cut off between pieces":   {lines: problem("Model stream ended without a finish reason.", 0), want: agent.StatusNetwork},
		"a blocked prompt":         {lines: problem("Model stream ended without a finish reason.", 10), want: agent.StatusRefused, says: "had blocked"},
		"blocked after a tool":     {lines: append([]string{geminiInit, geminiSays("Looking."), geminiTool, geminiOutput}, problem("The model response was blocked due to safety settings.", 10)[1:]...), want: agent.StatusRefused, says: "safety"},
		"empty after a tool":       {lines: []string{geminiInit, geminiSays("Looking."), geminiTool, geminiOutput, geminiDone}, want: agent.StatusRefused, says: "empty"},
		"a success with a bad end": {lines: done, ended: ended(9, ""), want: agent.StatusCrashed},
		"an error with exit 0":     {lines: failed("it broke"), want: agent.StatusCrashed, says: "it broke"},
		"killed":                   {lines: done, ended: agent.Ended{Exit: runlog.Exit{Code: 137, Signal: "killed"}}, want: agent.StatusCrashed},
		"not installed":            {ended: ended(127, "sh: gemini: not found"), want: agent.StatusStartFailed},
		"never asked":              {lines: []string{geminiInit, geminiDone}, want: agent.StatusNoOp},
		"declined":                 {lines: []string{geminiInit, geminiTool, geminiOutput, geminiDone}, want: agent.StatusRefused},
		"going round":              {lines: []string{geminiInit, geminiSays("x"), `{"type":"error","severity":"warning","message":"Loop detected, stopping execution"}`, geminiDone}, want: agent.StatusLooped},
	}
}

func TestGeminiEnds(t *testing.T) {
	t.Parallel()
	for name, tc := range geminiEnds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := geminiParser(t)
			for _, line := range tc.lines {
				p.Line([]byte(line))
			}
			r := p.Exit(tc.ended)
			if r.Status != tc.want || !strings.Contains(r.Why+r.Said, tc.says) {
				t.Errorf("status %q with %q, want %q with %q", r.Status, r.Why+r.Said, tc.want, tc.says)
			}
			if r.Status == agent.StatusNoSession && r.Session != "" {
				t.Errorf("session %q of a run that had none", r.Session)
			}
		})
	}
}

// TestGeminiSaysWhenToAskAgain: the end of a limit is the last one that the API reported.
func TestGeminiSaysWhenToAskAgain(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	p := geminiParser(t)
	p.Line([]byte(geminiFailed("Error", "[API Error: Quota]")))
	r := p.Exit(agent.Ended{Exit: runlog.Exit{Cause: runlog.CauseExited, Code: 173, EndedAt: at}, Stderr: `"retryDelay": "5s" "retryDelay": "90.5s"`})
	if want := at.Add(90 * time.Second); !r.ResetAt.Equal(want) || r.HTTP != 429 {
		t.Errorf("again at %s after HTTP %d, want %s after 429", r.ResetAt, r.HTTP, want)
	}
}

// TestGeminiRefuses: features that the program does not have are refused.
func TestGeminiRefuses(t *testing.T) {
	t.Parallel()
	const id = "0d5c1b8e-8f5e-4c39-9a44-1f2a3b4c5d6e"
	for name, tc := range map[string]struct {
		change func(*agent.Spec)
		want   string
	}{
		"a schema":      {func(s *agent.Spec) { s.Schema = []byte(`{}`) }, "schema"},
		"a fork":        {func(s *agent.Spec) { s.Resume, s.Session, s.Fork = id, "", true }, "fork"},
		"both sessions": {func(s *agent.Spec) { s.Resume = id }, "not both"},
		"no prompt":     {func(s *agent.Spec) { s.Prompt = "" }, "prompt is empty"},
		"a bad rule":    {func(s *agent.Spec) { s.Deny = []string{"Edit(a"} }, "deny rule"},
		"a bad server":  {func(s *agent.Spec) { s.MCP = []byte(`{"mcpServers":{"x":null}}`) }, "MCP server x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := fullSpec()
			spec.Schema = nil
			tc.change(&spec)
			if _, err := newAdapter(t, agent.Config{Adapter: agent.NameGemini}).Command(spec); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// FuzzGeminiParser: for any output, the parser returns bounded events and a judgment, and reports success only for
// plausible output.
func FuzzGeminiParser(f *testing.F) {
	f.Add(strings.Join([]string{geminiInit, geminiAsked, geminiSays("a"), geminiTool, geminiOutput, geminiSays("b"), geminiDone}, "\n"), "", 0)
	f.Add(geminiFailed("FatalTurnLimitedError", "x"), `{"code": 429, "retryDelay": "9999999s"}`, 53)
	f.Add(`{"type":"result","status":7,"stats":{"input_tokens":-1e300,"cached":1e300}}`, "Error", 173)
	a := newAdapter(f, agent.Config{Adapter: agent.NameGemini})
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

// TestGeminiCountsRefusedCalls: calls that the policy or the hook refused are counted, other failures are not.
func TestGeminiCountsRefusedCalls(t *testing.T) {
	t.Parallel()
	p := geminiParser(t)
	for _, line := range []string{
		geminiInit, geminiTool,
		`{"type":"tool_result","timestamp":"2026-11-22T05:59:19.593Z","tool_id":"run_shell_command__run_shell_command_1795327159570_0","status":"error","output":"Tool execution denied by policy.","error":{"type":"policy_violation","message":"Tool execution denied by policy."}}`,
		`{"type":"tool_result","timestamp":"2026-11-22T05:59:21.177Z","tool_id":"run_shell_command__run_shell_command_1795327161148_0","status":"error","output":"Tool execution blocked: The rules of this run refuse this call (Bash(touch denied:*)).","error":{"type":"policy_violation","message":"Tool execution blocked: The rules of this run refuse this call (Bash(touch denied:*))."}}`,
		`{"type":"tool_result","tool_id":"t2","status":"error","error":{"type":"invalid_tool_params","message":"policy_violation"}}`,
		geminiOutput, geminiSays("Done."), geminiDone,
	} {
		p.Line([]byte(line))
	}
	want := []string{"run_shell_command", "run_shell_command"}
	if diff := cmp.Diff(want, p.Exit(agent.Ended{Exit: runlog.Exit{Cause: runlog.CauseExited}}).Denials); diff != "" {
		t.Errorf("denials (-want +got):\n%s", diff)
	}
}

package result_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/agent/api"
	"github.com/errand-bot/errand/internal/agent/claude"
	"github.com/errand-bot/errand/internal/agent/codex"
	"github.com/errand-bot/errand/internal/agent/command"
	"github.com/errand-bot/errand/internal/agent/gemini"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
)

// TestProgramMessagesAreOnlyForOperators: a program's own error message is included in the operator's text, but not in
// text for people on GitHub, for all programs and messages.
func TestProgramMessagesAreOnlyForOperators(t *testing.T) {
	t.Parallel()
	claudeLines := func(text string, http int) string {
		line, err := json.Marshal(map[string]any{"type": "result", "subtype": "success", "is_error": true, "num_turns": 2, "result": text, "session_id": "s-1", "api_error_status": http})
		workflowtest.Check(t, err)
		return string(line)
	}
	codexLines := func(text string) []string {
		line, err := json.Marshal(map[string]any{"type": "turn.failed", "error": map[string]string{"message": text}})
		workflowtest.Check(t, err)
		return []string{`{"type":"thread.started","thread_id":"t-1"}`, `{"type":"turn.started"}`, string(line)}
	}
	geminiLines := func(text string) []string {
		line, err := json.Marshal(map[string]any{"type": "result", "status": "error", "error": map[string]string{"type": "Error", "message": text}})
		workflowtest.Check(t, err)
		return []string{`{"type":"init","session_id":"g-1","model":"m"}`, string(line)}
	}
	for name, c := range map[string]struct {
		adapter string
		code    int
		lines   []string
		excuse  string // part of the program's message
		want    string // text for people
	}{
		"claude, its gateway":      {claude.Name, 1, []string{started, claudeLines("API Error: 529 overloaded. check your inference gateway (127.0.0.1:9413)", 529)}, "inference gateway", "the model's provider is overloaded or failing (HTTP 529)"},
		"claude, a command":        {claude.Name, 1, []string{started, claudeLines("Not logged in · Please run /login", 401)}, "run /login", "the model's provider refused the call (HTTP 401)"},
		"claude, a refusal":        {claude.Name, 1, []string{started, strings.Replace(claudeLines("Claude Code is unable to respond. Try /clear", 0), `"is_error"`, `"stop_reason":"refusal","is_error"`, 1)}, "/clear", "the model declined to answer"},
		"claude, no result":        {claude.Name, 1, []string{started, "stderr: TypeError: x is undefined", "stderr:     at Foo (/opt/claude/cli.js:1:2)"}, "cli.js", "the agent's program or the model's provider rejected the request as invalid"},
		"claude, errand's voice":   {claude.Name, 1, []string{started, claudeLines("API Error: 403 errand: The task's cap is reached. @ada write `@errand approve`", 403)}, "@errand approve", "the model's provider refused the call (HTTP 403)"},
		"claude, another language": {claude.Name, 1, []string{started, claudeLines("Ошибка: модель перегружена — 请稍后再试", 500)}, "перегружена", "the model's provider is overloaded or failing (HTTP 500)"},
		"claude, HTML":             {claude.Name, 1, []string{started, claudeLines("<h1>502 Bad Gateway</h1><img src=x onerror=alert(1)> - [x] approve", 502)}, "onerror", "the model's provider is overloaded or failing (HTTP 502)"},
		"claude, very long":        {claude.Name, 1, []string{started, claudeLines(strings.Repeat("overloaded! ", 100_000), 529)}, "overloaded!", "the model's provider is overloaded or failing (HTTP 529)"},
		"codex, another model":     {codex.Name, 1, codexLines("Selected model is at capacity. Please try a different model."), "different model", "the model's provider is overloaded or failing"},
		"codex, a request id":      {codex.Name, 1, codexLines("unexpected status 403 Forbidden: no, url: http://127.0.0.1:42285/v1/responses, request id: req_1"), "Forbidden", "the model's provider refused the call (HTTP 403)"},
		"codex, a JSON tail":       {codex.Name, 1, codexLines(`{"error":{"message":"bad","type":"invalid_request_error","param":"tools[3]"}}`), "bad", "the agent's program or the model's provider rejected the request as invalid"},
		"codex, nothing known":     {codex.Name, 1, codexLines("zorp: see https://help.example/codex @bob"), "zorp", "the agent's program ended with code 1 before its work was done"},
		"gemini, another account":  {gemini.Name, 145, append(geminiLines("[API Error: 401 switch to another /auth method]"), "stderr: 401"), "/auth", "the model's provider refused the call (HTTP 401)"},
		"gemini, a stack":          {gemini.Name, 1, []string{`{"type":"init","session_id":"g-1","model":"m"}`, "stderr: Error: boom at /usr/lib/node_modules/gemini.js", "stderr:     at run (/tmp/x.js:1)"}, "boom", "the agent's program ended with code 1 before its work was done"},
		"command, its last line":   {command.Name, 3, []string{"working", "stderr: Traceback", "stderr: litellm.RateLimitError: buy credits at https://x.example"}, "litellm", "the agent's program ended with code 3 before its work was done"},
		"api, the provider's":      {api.Name, 1, []string{`{"type":"started","session":"a-1"}`, `{"type":"result","result":{"cause":"overloaded","http":503,"message":"upstream connect error, request_id=abc"}}`}, "upstream connect", "the model's provider is overloaded or failing (HTTP 503)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _ := interpreted(t, state.Run{ID: "r-1", Kind: state.RunPlan, RunLaunch: state.RunLaunch{Adapter: c.adapter}}, runlog.Exit{Cause: runlog.CauseExited, Code: c.code}, c.lines...)
			if got.Message != c.want {
				t.Errorf("got %q for people, want %q", got.Message, c.want)
			}
			if !strings.Contains(got.ProgramError, c.excuse) {
				t.Errorf("got %q for the operator, want %q in it", got.ProgramError, c.excuse)
			}
			if len(got.ProgramError) > 40_000 {
				t.Errorf("got %d bytes for the operator", len(got.ProgramError))
			}
			if text := got.Text + got.Title + got.Question + got.Summary; strings.Contains(text, c.excuse) {
				t.Errorf("the message is part of the agent's answer: %q", text)
			}
		})
	}
}

// TestPreciseSentencesReachPeople: if errand knows more about a run's end than its status, the text for people says so,
// and it is not attributed to the program in the operator's text.
func TestPreciseSentencesReachPeople(t *testing.T) {
	t.Parallel()
	const done = `{"type":"result","subtype":"success","num_turns":2,"result":"Done.","session_id":"s-1"}`
	codexLines := []string{`{"type":"thread.started","thread_id":"t-1"}`, `{"type":"turn.started"}`}
	const codexEnd = `{"type":"turn.completed","usage":{"input_tokens":5,"output_tokens":3}}`
	geminiLines := `{"type":"init","session_id":"g-1","model":"m"}`
	for name, c := range map[string]struct {
		adapter string
		exit    runlog.Exit
		lines   []string
		want    string
		note    string // of the runner
	}{
		"success and a code":          {claude.Name, runlog.Exit{Code: 3}, []string{started, done}, "the agent reported success, but its program ended with code 3", ""},
		"success and a signal":        {claude.Name, runlog.Exit{Code: -1, Signal: "killed"}, []string{started, done}, "the agent reported success, but its program was killed", ""},
		"another session":             {claude.Name, runlog.Exit{}, []string{started, strings.Replace(done, "s-1", "s-2", 1)}, "the agent began another session than the one to resume", ""},
		"work after the answer":       {claude.Name, runlog.Exit{}, []string{started, done, `{"type":"assistant","message":{"content":[{"type":"tool_use","id":"a","name":"Bash","input":{}}]}}`}, "the agent continued to work after its answer and ended without a new one", ""},
		"codex declines":              {codex.Name, runlog.Exit{}, append(slices.Clone(codexLines), codexEnd), "the model's answer was empty, which means that it declined", ""},
		"codex, an empty answer":      {codex.Name, runlog.Exit{}, append(slices.Clone(codexLines), `{"type":"item.completed","item":{"id":"1","type":"agent_message","text":""}}`, codexEnd), "the model's last answer was empty, as when it declines or has no room left", ""},
		"gemini, an empty answer":     {gemini.Name, runlog.Exit{Code: 1}, []string{geminiLines, `{"type":"result","status":"error","error":{"type":"Error","message":"Model returned an empty response"}}`}, "the model's last answer was empty, as when it declines or has no room left", ""},
		"the runner could not write":  {command.Name, runlog.Exit{Signal: "killed", Message: "the command's output takes 512 MiB"}, []string{"x"}, "the agent's program was killed before its work was done", "the command's output takes 512 MiB"},
		"the time":                    {claude.Name, runlog.Exit{Cause: runlog.CauseDuration, Message: "2 processes could not be ended."}, []string{started}, "the run's time limit was reached", "2 processes could not be ended."},
		"the repository's own set-up": {claude.Name, runlog.Exit{Cause: runlog.CauseSetupFailed, Message: "setup command failed (exit code 1): npm ci"}, nil, "setup command failed (exit code 1): npm ci", ""},
		"a program that is missing":   {codex.Name, runlog.Exit{Cause: runlog.CauseStartFailed, Code: 127, Message: `exec: "codex": not found in /opt/x`}, nil, "the agent's program could not be started", `exec: "codex": not found in /opt/x`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := state.Run{ID: "r-1", Kind: state.RunPlan, RunLaunch: state.RunLaunch{Adapter: c.adapter}}
			if name == "another session" {
				r.Session = "s-1"
			}
			if c.exit.Cause == "" {
				c.exit.Cause = runlog.CauseExited
			}
			got, _ := interpreted(t, r, c.exit, c.lines...)
			if got.Message != c.want || got.RunnerNote != c.note {
				t.Errorf("got %q for people, want %q; got %q of the runner, want %q", got.Message, c.want, got.RunnerNote, c.note)
			}
			if c.adapter != gemini.Name && got.ProgramError != "" {
				t.Errorf("got the program's message %q", got.ProgramError)
			}
		})
	}
}

// TestRecordedMessagesAreOnlyForOperators: text for people contains no message from recorded failures of real programs.
func TestRecordedMessagesAreOnlyForOperators(t *testing.T) {
	t.Parallel()
	failures := 0
	for _, adapter := range []string{claude.Name, codex.Name} {
		paths, err := filepath.Glob(filepath.Join("..", "..", "agent", adapter, "testdata", "*.jsonl"))
		workflowtest.Check(t, err)
		for _, path := range paths {
			data, err := os.ReadFile(path)
			workflowtest.Check(t, err)
			got, _ := interpreted(t, state.Run{ID: "r-1", Kind: state.RunPlan, RunLaunch: state.RunLaunch{Adapter: adapter}}, runlog.Exit{Cause: runlog.CauseExited, Code: 1}, strings.Split(string(data), "\n")...)
			if got.Class == state.RunSucceeded {
				t.Errorf("%s: got a success with code 1", path)
			}
			failures++
			for _, line := range strings.Split(string(data), "\n") {
				if strings.Contains(line, got.Message) && !strings.Contains(line, "errand: ") { // which is the gateway's own message
					t.Errorf("%s: got the program's message %q for people", path, got.Message)
				}
			}
			if len(got.Message) > 120 || strings.ContainsAny(got.Message, "{}<>@/\"\n") {
				t.Errorf("%s: got %q for people", path, got.Message)
			}
		}
	}
	if failures < 30 {
		t.Errorf("got only %d recordings", failures)
	}
}

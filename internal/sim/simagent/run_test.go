package simagent_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/errand-bot/errand/internal/sim/simmodel"
	"github.com/google/go-cmp/cmp"
)

func TestEndings(t *testing.T) {
	t.Parallel()
	ok := simmodel.Turn{Text: "fine"}
	always := func(status int) simmodel.Turn { return simmodel.Turn{Status: status, Times: -1} }
	for name, tc := range map[string]struct {
		turns  []simmodel.Turn
		prompt string
		flags  []string
		env    []string
		code   int
		want   map[string]string
		asked  int
		tries  int // api_retry events
	}{
		"done": {turns: []simmodel.Turn{ok}, want: map[string]string{
			"subtype": "success", "is_error": "false", "result": "fine", "num_turns": "1", "terminal_reason": "completed", "api_error_status": "<nil>",
		}, asked: 1},
		"slash":        {prompt: "/help me", want: map[string]string{"subtype": "success", "num_turns": "0", "result": "Unknown command: /help"}},
		"no key":       {env: []string{"ANTHROPIC_AUTH_TOKEN="}, code: 1, want: map[string]string{"is_error": "true", "result": "Not logged in · Please run /login"}},
		"wrong key":    {turns: []simmodel.Turn{ok}, env: []string{"ANTHROPIC_AUTH_TOKEN=no", "CLAUDE_CODE_MAX_RETRIES=3"}, code: 1, want: map[string]string{"api_error_status": "401"}, asked: 4, tries: 3},
		"recovers":     {turns: []simmodel.Turn{{Text: "fine", Status: 503, Times: 4}}, want: map[string]string{"result": "fine"}, asked: 5, tries: 4},
		"ten retries":  {turns: []simmodel.Turn{always(529)}, code: 1, want: map[string]string{"api_error_status": "529", "subtype": "success", "is_error": "true"}, asked: 11, tries: 10},
		"not retried":  {turns: []simmodel.Turn{always(403)}, code: 1, want: map[string]string{"api_error_status": "403"}, asked: 1},
		"long wait":    {turns: []simmodel.Turn{{Status: 429, RetryAfter: 70, Message: "slow"}}, code: 1, want: map[string]string{"result": "API Error: Request rejected (429) · slow"}, asked: 1},
		"waits gladly": {turns: []simmodel.Turn{{Text: "fine", Status: 429, RetryAfter: 2}}, want: map[string]string{"result": "fine"}, asked: 2, tries: 1},
		"unreachable":  {env: []string{"ANTHROPIC_BASE_URL=http://127.0.0.1:1", "CLAUDE_CODE_MAX_RETRIES=1"}, code: 1, want: map[string]string{"api_error_status": "<nil>", "result": "API Error: Unable to connect to API (ConnectionRefused)"}, tries: 1},
		"too long":     {turns: []simmodel.Turn{{Status: 400, Message: "prompt is too long: 9 > 8"}}, code: 1, want: map[string]string{"terminal_reason": "prompt_too_long"}, asked: 1},
		"refusal":      {turns: []simmodel.Turn{{Text: "no", Stop: "refusal"}}, code: 1, want: map[string]string{"stop_reason": "refusal", "is_error": "true"}, asked: 1},
		"subscription": {
			turns: []simmodel.Turn{{Status: 429, Header: map[string]string{"anthropic-ratelimit-unified-status": "rejected", "anthropic-ratelimit-unified-reset": "1795300000"}}},
			env:   []string{"ANTHROPIC_AUTH_TOKEN=", "CLAUDE_CODE_OAUTH_TOKEN=key"}, code: 1,
			want: map[string]string{"result": "You've hit your session limit · resets 10:26pm (UTC)"}, asked: 1,
		},
		"max turns": {
			turns: []simmodel.Turn{{Bash: []string{"touch ran"}}, ok}, flags: []string{"--max-turns", "1"}, code: 1,
			want: map[string]string{"subtype": "error_max_turns", "num_turns": "2", "errors": "[Reached maximum number of turns (1)]"}, asked: 1,
		},
		"budget": {
			turns: []simmodel.Turn{{Text: "dear", Bash: []string{"true"}}, ok}, flags: []string{"--max-budget-usd", "0.00001"}, code: 1,
			want: map[string]string{"subtype": "error_max_budget_usd"}, asked: 1,
		},
		"cut off before a call": {turns: []simmodel.Turn{{Text: "all of it, whole", Cut: 1}}, want: map[string]string{"result": "all of it, whole"}, asked: 2},
		"cut off after a call":  {turns: []simmodel.Turn{{Bash: []string{"true", "x y z a b c d e f"}, Cut: 2}, ok}, want: map[string]string{"result": "fine"}, asked: 2},
		"unreadable stream":     {turns: []simmodel.Turn{{Text: "x", Cut: 1, Times: -1}}, env: []string{"CLAUDE_CODE_MAX_RETRIES=0"}, code: 1, want: map[string]string{"is_error": "true"}, asked: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if len(tc.turns) == 0 {
				tc.turns = []simmodel.Turn{ok}
			}
			w := newWorld(t, tc.turns...)
			w.env = append(w.env, tc.env...)
			if tc.prompt == "" {
				tc.prompt = "Work."
			}
			r := w.run(tc.prompt, tc.flags...)
			r.want(t, tc.code, tc.want)
			if n := len(w.model.Requests()); n != tc.asked {
				t.Errorf("the model received %d requests, want %d", n, tc.asked)
			}
			if n := r.count("system", "api_retry"); n != tc.tries {
				t.Errorf("got %d retry events, want %d", n, tc.tries)
			}
		})
	}
}

// TestRefusesToStart: invalid arguments end the agent with a line on stderr and nothing on stdout.
func TestRefusesToStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, simmodel.Turn{Text: "never"})
	base := w.flags
	for name, tc := range map[string]struct {
		flags  []string
		prompt string
		want   string
	}{
		"unknown flag":          {append(base, "--make-coffee"), "x", "unknown option '--make-coffee'"},
		"no print":              {[]string{"--verbose"}, "x", "--print"},
		"not verbose":           {[]string{"-p", "--output-format", "stream-json"}, "x", "requires --verbose"},
		"no prompt":             {base, " \n", "Input must be provided"},
		"format":                {[]string{"-p", "--output-format=xml"}, "x", "'xml' is invalid"},
		"mode":                  {append(base, "--permission-mode", "yolo"), "x", "'yolo' is invalid"},
		"missing value":         {append(base, "--model"), "x", "argument missing"},
		"resume what":           {append(base, "--resume"), "x", "--resume requires"},
		"turns":                 {append(base, "--max-turns", "0"), "x", "positive integer"},
		"money":                 {append(base, "--max-budget-usd", "x"), "x", "positive number"},
		"settings missing":      {append(base, "--settings", "/nowhere.json"), "x", "Settings file not found"},
		"settings are not JSON": {append(base, "--settings", "{oops"), "x", "Invalid JSON"},
		"MCP missing":           {append(base, "--mcp-config", "/nowhere.json"), "x", "Invalid MCP configuration"},
		"system missing":        {append(base, "--append-system-prompt-file", "/nowhere.md"), "x", "nowhere.md"},
		"session is not a UUID": {append(base, "--session-id", "mine"), "x", "Invalid session ID"},
		"session and fork":      {append(base, "--session-id", "x", "--resume", "y"), "x", "--fork-session"},
		"schema is not JSON":    {append(base, "--json-schema", "{"), "x", "--json-schema"},
		"continue":              {append(base, "-c"), "x", "--continue"},
		"bad model address":     {base, "x", "ANTHROPIC_BASE_URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one := *w
			one.t, one.flags = t, tc.flags
			if name == "bad model address" {
				one.env = append(one.env[:len(one.env):len(one.env)], "ANTHROPIC_BASE_URL=:")
			}
			r := one.run(tc.prompt)
			if r.code != 1 || r.out != "" || !strings.Contains(r.stderr, tc.want) {
				t.Errorf("got code %d, stdout %q, stderr %q; want %q", r.code, r.out, r.stderr, tc.want)
			}
		})
	}
	if r := w.run("x", "--version"); r.code != 0 || !strings.Contains(r.out, "simagent") {
		t.Errorf("version: got code %d, %q", r.code, r.out)
	}
}

func TestRootNeedsIsSandbox(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("skipped: the check only applies to root")
	}
	w := newWorld(t, simmodel.Turn{Text: "ok"})
	w.env = append(w.env, "IS_SANDBOX=yes")
	if r := w.run("x"); r.code != 1 || r.out != "" || !strings.Contains(r.stderr, "root/sudo") {
		t.Errorf("got code %d, stdout %q, stderr %q", r.code, r.out, r.stderr)
	}
}

func TestOtherFormats(t *testing.T) {
	t.Parallel()
	w := newWorld(t, simmodel.Turn{Bash: []string{"true"}}, simmodel.Turn{Text: "the answer"})
	w.flags = []string{"-p", "--dangerously-skip-permissions"}
	if r := w.run("", "--", "a", "prompt"); r.out != "the answer\n" || r.code != 0 {
		t.Errorf("text: got code %d, %q", r.code, r.out)
	}
	if r := w.run("x", "--output-format", "json"); len(r.lines) != 1 || r.result(t)["result"] != "the answer" {
		t.Errorf("json: %q", r.out)
	}
	w.flags = append(w.flags, "--verbose", "--output-format", "stream-json", "--include-partial-messages")
	if r := w.run("x"); r.count("stream_event", "") < 8 {
		t.Errorf("got %d partial events", r.count("stream_event", ""))
	}
}

// TestRequestsToTheModel checks the requests: prompts, tools, headers, and files mentioned as @path.
func TestRequestsToTheModel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, simmodel.Turn{Text: "ok"})
	w.write("notes.txt", "remember the milk")
	rules := w.write("rules.md", "Be exact.")
	r := w.run("See @notes.txt and @missing.txt", "--append-system-prompt-file", rules, "--tools", "Bash,Read", "--model", "claude-opus-4-8",
		"--mcp-config", `{"mcpServers":{"errand":{"type":"http","url":"http://127.0.0.1:1"}}}`, "--setting-sources", "", "--strict-mcp-config")
	r.want(t, 0, map[string]string{"result": "ok"})
	req := w.model.Requests()[0]
	var body struct {
		Model  string
		System []struct{ Text string }
		Tools  []struct{ Name string }
	}
	if err := json.Unmarshal(req.Body, &body); err != nil {
		t.Fatal(err)
	}
	if body.Model != "claude-opus-4-8" || !strings.HasSuffix(body.System[0].Text, "\n\nBe exact.") || len(body.Tools) != 2 {
		t.Errorf("got request %s", req.Body)
	}
	if !strings.Contains(string(req.Body), "remember the milk") {
		t.Error("the mentioned file was not sent")
	}
	if id := req.Header.Get("X-Claude-Code-Session-Id"); id != r.result(t)["session_id"] {
		t.Errorf("got session header %q", id)
	}
	if got := fmt.Sprint(r.lines[0]["mcp_servers"]); got != "[map[name:errand status:failed]]" {
		t.Errorf("got MCP servers %s", got)
	}
}

func TestFileTools(t *testing.T) {
	t.Parallel()
	call := func(tool string, input map[string]any) simmodel.Turn {
		return simmodel.Turn{Tools: []simmodel.Call{{Name: tool, Input: input}}}
	}
	w := newWorld(t,
		call("Write", map[string]any{"file_path": "dir/a.txt", "content": "one\ntwo\ntwo\n"}),
		call("Edit", map[string]any{"file_path": "dir/a.txt", "old_string": "two", "new_string": "2"}),
		call("Edit", map[string]any{"file_path": "dir/a.txt", "old_string": "two", "new_string": "2", "replace_all": true}),
		call("Edit", map[string]any{"file_path": "dir/a.txt", "old_string": "three", "new_string": "3"}),
		call("Edit", map[string]any{"file_path": "dir/a.txt", "old_string": "", "new_string": "3"}),
		call("Edit", map[string]any{"file_path": "missing", "old_string": "a", "new_string": "b"}),
		call("Read", map[string]any{"file_path": "dir/a.txt", "offset": 2, "limit": 1}),
		call("Read", map[string]any{"file_path": "dir"}),
		call("Read", map[string]any{}),
		call("Bash", map[string]any{}),
		simmodel.Turn{Text: "done"},
	)
	r := w.run("Work.")
	r.want(t, 0, map[string]string{"result": "done", "num_turns": "11"})
	if got := w.read("dir/a.txt"); got != "one\n2\n2\n" {
		t.Errorf("got file content %q", got)
	}
	var failed []bool
	for _, l := range r.lines {
		if l["type"] == "user" {
			failed = append(failed, strings.Contains(fmt.Sprint(l["message"]), "is_error:true"))
		}
	}
	if diff := cmp.Diff([]bool{false, true, false, true, true, true, false, true, true, true}, failed); diff != "" {
		t.Errorf("failed calls (-want +got):\n%s", diff)
	}
	if !strings.Contains(r.out, `"content":"2\t2"`) {
		t.Error("the second line was not read")
	}
}

func TestBash(t *testing.T) {
	t.Parallel()
	w := newWorld(t,
		simmodel.Turn{Tools: []simmodel.Call{{Name: "Bash", Input: map[string]any{"command": "echo begun; sleep 60", "timeout": 200}}}},
		simmodel.Turn{Bash: []string{"setsid sleep 60 >/dev/null 2>&1 & echo $! > pid; echo started"}},
		simmodel.Turn{Bash: []string{"yes | head -c 100000"}},
		simmodel.Turn{Text: "{{len .Last}}"},
	)
	r := w.run("Work.")
	r.want(t, 0, nil)
	if !strings.Contains(r.out, `Exit code 143\nCommand timed out after 200ms\nbegun`) {
		t.Errorf("the timeout is not reported in %s", r.out)
	}
	if got := r.result(t)["result"]; got != "30050" && !strings.HasPrefix(fmt.Sprint(got), "300") {
		t.Errorf("the model received %s bytes of a long output", got)
	}
	var pid int
	if _, err := fmt.Sscan(w.read("pid"), &pid); err != nil {
		t.Fatal(err)
	}
	// A child that leaves the session outlives the agent, as with the real one.
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the child was killed: %v", err)
	}
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	turns := []simmodel.Turn{
		{Bash: []string{"touch by-bash"}},
		{Bash: []string{"true && git push origin"}},
		{Tools: []simmodel.Call{{Name: "Write", Input: map[string]any{"file_path": ".github/workflows/x.yml", "content": "x"}}}},
		{Tools: []simmodel.Call{{Name: "Write", Input: map[string]any{"file_path": "free.txt", "content": "x"}}}},
		{Text: "done"},
	}
	deny := `{"permissions":{"deny":["Bash(git push:*)","Edit(.github/**)"]}}`
	for name, tc := range map[string]struct {
		flags   []string
		denied  int
		created []string
	}{
		"everything allowed":    {[]string{"--dangerously-skip-permissions"}, 0, []string{"by-bash", ".github/workflows/x.yml", "free.txt"}},
		"deny rules":            {[]string{"--dangerously-skip-permissions", "--settings", deny}, 1, []string{"by-bash", "free.txt"}},
		"wrong settings":        {[]string{"--dangerously-skip-permissions", "--settings", `{"permissions":{"deny":"oops"}}`}, 0, []string{"by-bash", ".github/workflows/x.yml", "free.txt"}},
		"no permission prompts": {nil, 4, nil},
		"edits are":             {[]string{"--permission-mode", "acceptEdits"}, 2, []string{".github/workflows/x.yml", "free.txt"}},
		"only shell commands":   {[]string{"--permission-mode", "dontAsk", "--allowedTools", "Bash"}, 2, []string{"by-bash"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, turns...)
			w.flags = w.flags[:4]
			r := w.run("Work.", tc.flags...)
			r.want(t, 0, map[string]string{"result": "done"})
			if n := len(r.result(t)["permission_denials"].([]any)); n != tc.denied {
				t.Errorf("got %d denials, want %d", n, tc.denied)
			}
			var created []string
			for _, f := range []string{"by-bash", ".github/workflows/x.yml", "free.txt"} {
				if w.exists(filepath.FromSlash(f)) {
					created = append(created, f)
				}
			}
			if diff := cmp.Diff(tc.created, created); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
		})
	}
}

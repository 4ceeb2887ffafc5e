package codex_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/agent/codex"
	"github.com/errand-bot/errand/internal/runlog"
)

// TestCommandLine compares complete commands with golden files.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	a := codex.New(agent.Program{Command: []string{"codex"}, Env: map[string]string{"GOFLAGS": "-mod=mod", "HOME": "/evil"}})
	resumed := agenttest.LeastSpec(codex.DefaultModel)
	resumed.Resume = "0d5c1b8e-8f5e-4c39-9a44-1f2a3b4c5d6e"
	for name, spec := range map[string]agent.Spec{"full": fullSpec(), "least": agenttest.LeastSpec(codex.DefaultModel), "resumed": resumed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := agenttest.CheckCommand(t, name, a, spec, *update)
			for _, secret := range []string{"secret-1", "secret-2", "token"} {
				if slices.ContainsFunc(cmd.Argv, func(a string) bool { return strings.Contains(a, secret) && !strings.Contains(a, "ERRAND_") }) {
					t.Errorf("%q is on the command line", secret)
				}
			}
		})
	}
}

// fullSpec uses every field that Codex can do something with.
func fullSpec() agent.Spec {
	s := agenttest.FullSpec()
	s.Model = codex.DefaultModel
	s.Prompt += " for $5 with $evil, ${x} and $(y)"
	s.System = "Be \"exact\".\n\tNo \x7f; 1 < 2."
	s.Deny = []string{"Edit(.github/**)", "Bash(git push:*)", "rm -rf /*", "Bash"}
	s.Shell = []string{"git", "npm run"}
	s.MCP = json.RawMessage(`{"mcpServers":{
		"errand":{"command":"{runner}","args":["mcp","a b"],"env":{"ERRAND_CALLBACK_TOKEN":"secret-1"}},
		"far-away":{"type":"http","url":"http://127.0.0.1:1/callback","headers":{"Authorization":"Bearer secret-2"}}}}`)
	return s
}

func TestInvalidSpecIsRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*agent.Spec)
		want   string
	}{
		"no prompt":        {func(s *agent.Spec) { s.Prompt = " \n" }, "prompt is empty"},
		"relative home":    {func(s *agent.Spec) { s.Home = "h" }, "home directory"},
		"a name to resume": {func(s *agent.Spec) { s.Resume = "latest" }, "not a UUID"},
		"empty rule":       {func(s *agent.Spec) { s.Deny = []string{""} }, "deny rule"},
		"huge rules":       {func(s *agent.Spec) { s.System = strings.Repeat("x", 130_000) }, "a command line takes"},
		"odd server":       {func(s *agent.Spec) { s.MCP = json.RawMessage(`{"mcpServers":{"a.b":{"command":"x"}}}`) }, "name of an MCP server"},
		"empty server":     {func(s *agent.Spec) { s.MCP = json.RawMessage(`{"mcpServers":{"a":{}}}`) }, "neither a command nor a URL"},
		"servers in a list": {
			func(s *agent.Spec) { s.MCP = json.RawMessage(`{"mcpServers":[]}`) }, "read the MCP configuration",
		},
		"a server with another home": {
			func(s *agent.Spec) {
				s.MCP = json.RawMessage(`{"mcpServers":{"a":{"command":"x","env":{"HOME":"/root"}}}}`)
			}, "sets HOME",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agenttest.CheckRefusal(t, codex.New(agent.Program{}), fullSpec(), tc.change, tc.want)
		})
	}
}

func FuzzPrompt(f *testing.F) {
	for _, seed := range []string{"$x", "a$b $", "[$c](d)", `\$e`, "$$f", "$ä", "${g}"} {
		f.Add(seed)
	}
	// Text that Codex treats as the name of a skill, as observed.
	named := regexp.MustCompile(`\$[A-Za-z0-9_:-]`)
	f.Fuzz(func(t *testing.T, prompt string) {
		spec := fullSpec()
		spec.Prompt = prompt
		cmd, err := codex.New(agent.Program{Command: []string{"codex"}}).Command(spec)
		if err != nil {
			return
		}
		in := string(cmd.Stdin)
		if named.MatchString(in) {
			t.Errorf("%q is read as %q", prompt, in)
		}
		if plain := strings.ReplaceAll(in, "$\\", "$"); !strings.HasPrefix(plain, strings.ReplaceAll(prompt, "$\\", "$")) {
			t.Errorf("%q was changed to %q", prompt, in)
		}
	})
}

func TestEvents(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		line string
		want []runlog.Event
	}{
		"started":       {`{"type":"thread.started","thread_id":"s"}`, []runlog.Event{{Kind: runlog.KindStarted, Session: "s"}}},
		"turn":          {`{"type":"turn.started"}`, nil},
		"retry":         {`{"type":"error","message":"Reconnecting... 1/5 (x)"}`, []runlog.Event{{Kind: runlog.KindRetry, Text: "Reconnecting... 1/5 (x)", IsError: true}}},
		"error":         {`{"type":"error","message":"no"}`, []runlog.Event{{Kind: runlog.KindNotice, Text: "no", IsError: true}}},
		"warning":       {`{"type":"item.completed","item":{"type":"error","message":"Model metadata"}}`, []runlog.Event{{Kind: runlog.KindNotice, Text: "Model metadata"}}},
		"thinking":      {`{"type":"item.completed","item":{"type":"reasoning","text":"hm"}}`, []runlog.Event{{Kind: runlog.KindThinking, Text: "hm"}}},
		"unknown item":  {`{"type":"item.completed","item":{"type":"of_the_future","text":"x"}}`, nil},
		"list of to-do": {`{"type":"item.started","item":{"type":"todo_list","items":[]}}`, nil},
		"odd fields":    {`{"type":"thread.started","thread_id":"s","usage":7,"item":[]}`, []runlog.Event{{Kind: runlog.KindStarted, Session: "s"}}},
		"command begun": {
			`{"type":"item.started","item":{"id":"i","type":"command_execution","command":"/bin/bash -lc \"echo \\\"a b\\\" '$x'\"","exit_code":null}}`,
			[]runlog.Event{{Kind: runlog.KindToolUse, ToolID: "i", ToolName: "shell", Input: `{"command":"echo \"a b\" '$x'"}`}},
		},
		"command in no shell": {
			`{"type":"item.started","item":{"id":"i","type":"command_execution","command":"git status"}}`,
			[]runlog.Event{{Kind: runlog.KindToolUse, ToolID: "i", ToolName: "shell", Input: `{"command":"git status"}`}},
		},
		"command seen at its end only": {
			`{"type":"item.completed","item":{"id":"i","type":"command_execution","command":"x","aggregated_output":"no\n","exit_code":2,"status":"failed"}}`,
			[]runlog.Event{
				{Kind: runlog.KindToolUse, ToolID: "i", ToolName: "shell", Input: `{"command":"x"}`},
				{Kind: runlog.KindToolResult, ToolID: "i", Text: "Exit code 2\nno", IsError: true},
			},
		},
		"command refused": {
			`{"type":"item.completed","item":{"id":"i","type":"command_execution","command":"x","aggregated_output":"policy","exit_code":null,"status":"declined"}}`,
			[]runlog.Event{
				{Kind: runlog.KindToolUse, ToolID: "i", ToolName: "shell", Input: `{"command":"x"}`},
				{Kind: runlog.KindToolResult, ToolID: "i", Text: "policy", IsError: true},
			},
		},
		"edit failed": {
			`{"type":"item.completed","item":{"id":"i","type":"file_change","changes":[{"path":"/w/a","kind":"add"}],"status":"failed"}}`,
			[]runlog.Event{
				{Kind: runlog.KindToolUse, ToolID: "i", ToolName: "apply_patch", Input: `{"changes":[{"path":"/w/a","kind":"add"}]}`},
				{Kind: runlog.KindToolResult, ToolID: "i", Text: "failed", IsError: true},
			},
		},
		"MCP": {
			`{"type":"item.completed","item":{"id":"i","type":"mcp_tool_call","server":"errand","tool":"note","arguments":{"a":1},"result":{"content":[{"type":"text","text":"kept"},{"type":"image"}]},"error":null,"status":"completed"}}`,
			[]runlog.Event{
				{Kind: runlog.KindToolUse, ToolID: "i", ToolName: "mcp__errand__note", Input: `{"a":1}`},
				{Kind: runlog.KindToolResult, ToolID: "i", Text: "kept\n[image]"},
			},
		},
		"MCP failed": {
			`{"type":"item.completed","item":{"id":"i","type":"mcp_tool_call","server":"errand","tool":"note","result":null,"error":{"message":"too many"},"status":"failed"}}`,
			[]runlog.Event{
				{Kind: runlog.KindToolUse, ToolID: "i", ToolName: "mcp__errand__note"},
				{Kind: runlog.KindToolResult, ToolID: "i", Text: "too many", IsError: true},
			},
		},
		"search": {
			`{"type":"item.completed","item":{"id":"i","type":"web_search","query":"x"}}`,
			[]runlog.Event{
				{Kind: runlog.KindToolUse, ToolID: "i", ToolName: "web_search", Input: `{"query":"x"}`},
				{Kind: runlog.KindToolResult, ToolID: "i"},
			},
		},
		"end": {
			`{"type":"turn.completed","usage":{"input_tokens":30,"cached_input_tokens":20,"output_tokens":4}}`,
			[]runlog.Event{{Kind: runlog.KindNotice, Text: "the session has used 30 tokens, 20 from the cache, and made 4"}, {Kind: runlog.KindResult}},
		},
		"made-up usage": {
			`{"type":"turn.completed","usage":{"input_tokens":-5,"cached_input_tokens":1e300,"output_tokens":"x"}}`,
			[]runlog.Event{{Kind: runlog.KindNotice, Text: "the session has used 1000000000000 tokens, 1000000000000 from the cache, and made 0"}, {Kind: runlog.KindResult}},
		},
		"failure": {`{"type":"turn.failed","error":{"message":"no"}}`, []runlog.Event{{Kind: runlog.KindResult, Text: "no", IsError: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, codex.New(agent.Program{Command: []string{"codex"}}).NewParser().Line([]byte(tc.line))); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLongLines(t *testing.T) {
	t.Parallel()
	p := codex.New(agent.Program{Command: []string{"codex"}}).NewParser()
	long := strings.Repeat("ä", 1<<20)
	for _, item := range []string{
		`{"id":"1","type":"command_execution","command":"x","aggregated_output":"` + long + `","exit_code":0}`,
		`{"id":"2","type":"agent_message","text":"` + long + `"}`,
	} {
		for _, e := range p.Line([]byte(`{"type":"item.completed","item":` + item + `}`)) {
			if len(e.Text) > 300<<10 {
				t.Errorf("%s of %d bytes", e.Kind, len(e.Text))
			}
		}
	}
	p.Line([]byte(`{"type":"turn.completed","usage":{"input_tokens":1}}`))
	if r := p.Exit(agent.Ended{}); r.Status != agent.StatusOK || r.Text != long {
		t.Errorf("%s, with an answer of %d bytes", r.Status, len(r.Text))
	}
}

func FuzzParser(f *testing.F) {
	f.Add(`{"type":"thread.started","thread_id":"s"}`+"\n"+`{"type":"turn.completed","usage":{"input_tokens":1e99}}`, 0, "")
	f.Add(`{"type":"item.started","item":{"id":"1","type":"command_execution","command":"/bin/bash -lc 'a'"}}`+"\n"+`{"type":"turn.failed"}`, 1, "Error: x")
	f.Add(`{"type":"item.completed","item":{"type":"mcp_tool_call","result":{"content":[7]},"error":"x"}}`, 143, "no rollout found")
	f.Fuzz(func(t *testing.T, out string, code int, stderr string) {
		p, q := codex.New(agent.Program{Command: []string{"codex"}}).NewParser(), codex.New(agent.Program{Command: []string{"codex"}}).NewParser()
		for line := range strings.SplitSeq(out, "\n") {
			q.Line([]byte(line))
			for _, e := range p.Line([]byte(line)) {
				if e.Kind == "" || len(e.Text) > 300<<10 || len(e.Input) > 20<<10 {
					t.Errorf("event %+v", e)
				}
			}
		}
		r := p.Exit(agent.Ended{Exit: runlog.Exit{Cause: runlog.CauseExited, Code: code}, Stderr: stderr, StopRequested: true})
		if r.Status != agent.StatusInterrupted {
			t.Errorf("after a stop the run counts as %q", r.Status)
		}
		r = q.Exit(agent.Ended{Exit: runlog.Exit{Cause: runlog.CauseExited, Code: code}, Stderr: stderr, WantSchema: true})
		if !slices.Contains(agenttest.Statuses(), r.Status) || len(r.Said) > 2010 || (r.Status == agent.StatusOK && (code != 0 || !json.Valid(r.Structured))) {
			t.Errorf("code %d: result %+v", code, r)
		}
		if r.Usage.Input < 0 || r.Usage.Output < 0 {
			t.Errorf("usage %+v", r.Usage)
		}
	})
}

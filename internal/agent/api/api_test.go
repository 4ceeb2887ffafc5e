package api_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/agent/api"
	"github.com/errand-bot/errand/internal/agentloop/wire"
	"github.com/errand-bot/errand/internal/runlog"
)

func fullSpec() agent.Spec {
	return agent.Spec{
		WorkDir: "/vm/work", Home: "/vm/home", RunDir: "/vm/run", Attachments: "/vm/attachments", Step: "plan", Model: "claude-opus-4-8", Prompt: "/do @this",
		System: "rules", BaseURL: "http://127.0.0.1:9413/llm/anthropic", RunToken: "the-token", Session: "0d5c1b8e-8f5e-4c39-9a44-1f2a3b4c5d6e",
		Shell: []string{"git", "npm run"}, Deny: []string{"Bash(git push:*)"}, MCP: json.RawMessage(`{"mcpServers":{}}`),
	}
}

// TestCommand: all settings of the agent are in one file that only its user can read; the token is neither in an
// argument nor in the environment.
func TestCommand(t *testing.T) {
	t.Parallel()
	a := api.New(agent.Program{Command: []string{"{runner}", "agent"}, Env: map[string]string{"HOME": "/evil", "CI": "1"}})
	cmd, err := a.Command(fullSpec())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"{runner}", "agent", "--settings", "/vm/run/agent.json"}, cmd.Argv); diff != "" {
		t.Errorf("argv (-want +got):\n%s", diff)
	}
	if cmd.Env["HOME"] != "/vm/home" || cmd.Env["CI"] != "1" || string(cmd.Stdin) != "/do @this" {
		t.Errorf("environment %v, prompt %q", cmd.Env, cmd.Stdin)
	}
	if len(cmd.Files) != 1 || cmd.Files[0].Mode != 0o600 || cmd.Files[0].Path != cmd.Argv[3] {
		t.Fatalf("files %+v", cmd.Files)
	}
	for _, text := range append(cmd.Argv, env(cmd.Env)...) {
		if strings.Contains(text, "the-token") {
			t.Errorf("the token is in %q", text)
		}
	}
	var got wire.Settings
	if err := json.Unmarshal(cmd.Files[0].Content, &got); err != nil {
		t.Fatal(err)
	}
	want := wire.Settings{
		WorkDir: "/vm/work", Home: "/vm/home", Attachments: "/vm/attachments", Model: "claude-opus-4-8", System: "rules", Session: fullSpec().Session,
		BaseURL: fullSpec().BaseURL, Token: "the-token", Shell: fullSpec().Shell, Deny: fullSpec().Deny, MCP: got.MCP,
	}
	if diff := cmp.Diff(want, got); diff != "" || len(got.MCP) == 0 {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

func env(vars map[string]string) (list []string) {
	for k, v := range vars {
		list = append(list, k+"="+v)
	}
	return list
}

func TestInvalidSpecIsRefused(t *testing.T) {
	t.Parallel()
	a := api.New(agent.Program{})
	for name, change := range map[string]func(*agent.Spec){
		"a session and another":    func(s *agent.Spec) { s.Resume = s.Session },
		"a session of another way": func(s *agent.Spec) { s.Session = "../x" },
		"no prompt":                func(s *agent.Spec) { s.Prompt = " " },
		"a relative home":          func(s *agent.Spec) { s.Home = "home" },
		"relative attachments":     func(s *agent.Spec) { s.Attachments = "attachments" },
	} {
		s := fullSpec()
		change(&s)
		if _, err := a.Command(s); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// output is a run as the loop prints it.
func output(result string) string {
	return `{"type":"started","session":"s1","model":"m"}
{"type":"usage","usage":{"input":10,"output":2,"cache_read":3,"cache_write":4}}
{"type":"usage","usage":{"input":1,"output":1}}
` + result
}

func TestJudgment(t *testing.T) {
	t.Parallel()
	ok := output(`{"type":"result","result":{"cause":"ok","text":"done","session":"s1","turns":2}}`)
	limited := output(`{"type":"result","result":{"cause":"rate_limited","http":429,"reset_at":1800000000,"message":"no more"}}`)
	exit := func(code int) runlog.Exit { return runlog.Exit{Cause: runlog.CauseExited, Code: code} }
	tests := map[string]struct {
		log   string
		ended agent.Ended
		want  agent.Status
	}{
		"ok":                      {ok, agent.Ended{Exit: exit(0)}, agent.StatusOK},
		"ok, but it failed":       {ok, agent.Ended{Exit: exit(1)}, agent.StatusCrashed},
		"ok, in another session":  {ok, agent.Ended{Exit: exit(0), WantSession: "s2"}, agent.StatusNoSession},
		"ok, without the answer":  {ok, agent.Ended{Exit: exit(0), WantSchema: true}, agent.StatusNoStructuredOutput},
		"ok, and we stopped it":   {ok, agent.Ended{Exit: exit(0), StopRequested: true}, agent.StatusInterrupted},
		"ok, after no model call": {`{"type":"result","result":{"cause":"ok","turns":9}}`, agent.Ended{Exit: exit(0)}, agent.StatusNoOp},
		"limited":                 {limited, agent.Ended{Exit: exit(1)}, agent.StatusRateLimited},
		"a cause of the future":   {output(`{"type":"result","result":{"cause":"bored"}}`), agent.Ended{Exit: exit(1)}, agent.StatusCrashed},
		"a cause of the runner":   {output(`{"type":"result","result":{"cause":"lost"}}`), agent.Ended{Exit: exit(1)}, agent.StatusCrashed},
		"killed":                  {output(""), agent.Ended{Exit: runlog.Exit{Cause: runlog.CauseExited, Signal: "killed"}}, agent.StatusCrashed},
		"stalled":                 {output(""), agent.Ended{Exit: runlog.Exit{Cause: runlog.CauseStalled}}, agent.StatusStalled},
		"no such program":         {"", agent.Ended{Exit: exit(127)}, agent.StatusStartFailed},
		"settings refused":        {"", agent.Ended{Exit: exit(1), Stderr: "errand-runner: read the settings: x"}, agent.StatusInvalid},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := api.New(agent.Program{}).NewParser()
			for line := range strings.Lines(test.log) {
				p.Line([]byte(strings.TrimSuffix(line, "\n")))
			}
			r := p.Exit(test.ended)
			if r.Status != test.want {
				t.Errorf("status %q (%s), want %q", r.Status, r.Reason+r.Said, test.want)
			}
			if name == "killed" && r.Usage != (runlog.Usage{Input: 11, Output: 3, CacheRead: 3, CacheWrite: 4}) {
				t.Errorf("usage %+v", r.Usage)
			}
			if name == "limited" && !r.ResetAt.Equal(time.Unix(1800000000, 0)) {
				t.Errorf("reset at %s", r.ResetAt)
			}
		})
	}
}

// FuzzParser: for any output, the parser succeeds, bounds its texts, and returns the same judgment each time.
func FuzzParser(f *testing.F) {
	f.Add([]byte(output(`{"type":"result","result":{"cause":"ok","structured":{"a":1},"reset_at":-1,"denials":["x"]}}`)), 0)
	f.Add([]byte(`{"type":"tool_use","id":"1","name":"bash","input":{"command":"x"}}`+"\n"+`{"type":"retry","delay_ms":-99999999999}`), 1)
	f.Add([]byte(`{"type":"usage","usage":{"input":-9223372036854775808}}`+"\n"+`{"type":"result","result":null}`), 130)
	a := api.New(agent.Program{Command: []string{os.Args[0]}})
	f.Fuzz(func(t *testing.T, log []byte, code int) {
		run := func() (events []runlog.Event, r agent.Result) {
			p := a.NewParser()
			for line := range strings.Lines(string(log)) {
				events = append(events, p.Line([]byte(line))...)
			}
			return events, p.Exit(agent.Ended{Exit: runlog.Exit{Cause: runlog.CauseExited, Code: code}, WantSchema: true})
		}
		events, r := run()
		for _, e := range events {
			if e.Kind == "" || len(e.Text) > 300<<10 || len(e.Input) > 20<<10 || e.Delay < 0 || e.Delay > time.Hour {
				t.Errorf("event %+v", e)
			}
		}
		if r.Usage.Input < 0 || r.Status == "" || r.Status == agent.StatusOK && (code != 0 || !json.Valid(r.Structured)) {
			t.Errorf("result %+v", r)
		}
		if _, again := run(); !cmp.Equal(r, again) {
			t.Errorf("judged again:\n%s", cmp.Diff(r, again))
		}
	})
}

// format is the output format of errand's own agent.
func format() agenttest.Format {
	line := func(t wire.Type, more string) string { return `{"type":"` + string(t) + `"` + more + `}` }
	return agenttest.Format{
		Begin: line(wire.TypeStarted, `,"session":"s1"`),
		Text: func(s string) string {
			return line(wire.TypeText, `,"text":"`+s+`"`) + "\n" + line(wire.TypeUsage, `,"usage":{"input":1}`)
		},
		ToolUse: line(wire.TypeToolUse, `,"id":"t","name":"Bash"`), ToolResult: line(wire.TypeToolResult, `,"id":"t","text":"a b"`),
		Final: func(s string) string {
			return line(wire.TypeResult, `,"result":{"cause":"ok","text":"`+s+`","session":"s1","turns":2}`)
		},
	}
}

func TestParser(t *testing.T) {
	t.Parallel()
	agenttest.RunParser(t, api.New(agent.Program{}), format())
}

package agent_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/google/go-cmp/cmp"
)

// fullSpec uses every field.
func fullSpec() agent.Spec {
	return agent.Spec{
		WorkDir: "/home/box/w", Home: "/home/box", RunDir: "/home/box/.errand/runs/r1", Step: "judge",
		Prompt: "errand-step: judge\nLook at @main.go", System: "Be exact.", Session: "0d5c1b8e-8f5e-4c39-9a44-1f2a3b4c5d6e",
		Tools: []string{"Bash", "Read"}, Deny: []string{"Edit(.github/**)"}, Shell: []string{"git", "npm run"},
		MCP: json.RawMessage(`{"mcpServers":{"errand":{"type":"http","url":"http://127.0.0.1:1/callback"}}}`), Schema: json.RawMessage("{\n \"type\": \"object\"}"),
		MaxTurns: 7, MaxUSD: 1.5, BaseURL: "http://127.0.0.1:1/llm", RunToken: "token",
	}
}

// TestCommandLines compares complete commands with golden files.
func TestCommandLines(t *testing.T) {
	t.Parallel()
	config := agent.Config{Models: map[string]string{"judge": "claude-haiku-4-5"}, Env: map[string]string{"GOFLAGS": "-mod=mod", "HOME": "/evil"}}
	least := agent.Spec{WorkDir: "/w", Home: "/h", RunDir: "/r", Prompt: "Work."}
	resumed := least
	resumed.Resume = "0d5c1b8e-8f5e-4c39-9a44-1f2a3b4c5d6e"
	other := config
	other.Adapter, other.Command = agent.NameCommand, []string{"/usr/bin/env", "my-agent"}
	text := fullSpec()
	text.Schema = nil
	for name, tc := range map[string]struct {
		cfg  agent.Config
		spec agent.Spec
	}{
		"claude_full":    {config, fullSpec()},
		"claude_least":   {agent.Config{}, least},
		"claude_resumed": {agent.Config{Command: []string{"/opt/errand-demo", "simagent"}}, resumed},
		"command_full":   {other, text},
		"gemini_full":    {agent.Config{Adapter: agent.NameGemini, Env: map[string]string{"GOOGLE_GEMINI_BASE_URL": "http://evil", "GOFLAGS": "-mod=mod"}}, text},
		"gemini_resumed": {agent.Config{Adapter: agent.NameGemini, Command: []string{"node", "/opt/gemini.js"}}, resumed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd, err := newAdapter(t, tc.cfg).Command(tc.spec)
			if err != nil {
				t.Fatal(err)
			}
			type file struct{ Path, Mode, Content string }
			shown := struct {
				Argv  []string
				Env   map[string]string
				Stdin string
				Files []file
			}{cmd.Argv, cmd.Env, string(cmd.Stdin), nil}
			for _, f := range cmd.Files {
				shown.Files = append(shown.Files, file{f.Path, f.Mode.String(), string(f.Content)})
			}
			golden(t, filepath.Join("testdata", "command", name+".golden.json"), shown)
		})
	}
}

func TestCommandRefuses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*agent.Spec)
		want   string
	}{
		"no prompt":        {func(s *agent.Spec) { s.Prompt = " \n" }, "prompt is empty"},
		"zero byte":        {func(s *agent.Spec) { s.Prompt = "a\x00b" }, "zero byte"},
		"relative work":    {func(s *agent.Spec) { s.WorkDir = "w" }, "work directory"},
		"no run directory": {func(s *agent.Spec) { s.RunDir = "" }, "run directory"},
		"both sessions":    {func(s *agent.Spec) { s.Resume = s.Session }, "not both"},
		"nothing to fork":  {func(s *agent.Spec) { s.Fork = true }, "fork"},
		"a path to resume": {func(s *agent.Spec) { s.Session, s.Resume = "", "/etc/passwd" }, "not a UUID"},
		"model as a flag":  {func(s *agent.Spec) { s.Model = "--resume" }, "not a model"},
		"wrong MCP":        {func(s *agent.Spec) { s.MCP = json.RawMessage("{") }, "MCP"},
		"wrong schema":     {func(s *agent.Spec) { s.Schema = json.RawMessage("x") }, "schema"},
		"empty rule":       {func(s *agent.Spec) { s.Deny = []string{""} }, "deny rule"},
		"no command":       {func(s *agent.Spec) { s.Shell = []string{"git:*) Bash(x"} }, "beginning of a command"},
		"tool as a flag":   {func(s *agent.Spec) { s.Tools = []string{"--bare"} }, "not the name of a tool"},
		"negative limit":   {func(s *agent.Spec) { s.MaxTurns = -1 }, "negative"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := fullSpec()
			tc.change(&spec)
			if _, err := newAdapter(t, agent.Config{}).Command(spec); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
}

func TestPromptIsNeutralised(t *testing.T) {
	t.Parallel()
	const note = "\n\n(Above, a backslash before an at sign stands for the at sign alone.)"
	for in, want := range map[string]string{
		"plain text":       "plain text",
		"mail a@b.c":       "mail a@b.c",
		"/clear":           "The task follows.\n\n/clear",
		" \n/clear":        "The task follows.\n\n \n/clear",
		"@x":               "\\@x" + note,
		"see (@../../x) @": "see (\\@../../x) @" + note,
		"@@x":              "\\@\\@x" + note,
		"\u00a0@x\n@\"y\"": "\u00a0\\@x\n\\@\"y\"" + note,
	} {
		spec := fullSpec()
		spec.Prompt = in
		cmd, err := newAdapter(t, agent.Config{}).Command(spec)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(cmd.Stdin)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", in, diff)
		}
	}
}

func FuzzPromptIsNeutralised(f *testing.F) {
	for _, seed := range []string{"/x", "a @b", "\u00a0@c", "@@d", "\\@e", "\t@\"f g\"", "x\r@y"} {
		f.Add(seed)
	}
	mentioned := regexp.MustCompile(`(^|[\s\pZ"'(\[{,;:])@[^\s]`)
	f.Fuzz(func(t *testing.T, prompt string) {
		spec := fullSpec()
		spec.Prompt = prompt
		cmd, err := newAdapter(t, agent.Config{}).Command(spec)
		if err != nil {
			return
		}
		in := string(cmd.Stdin)
		if strings.HasPrefix(strings.TrimSpace(in), "/") || mentioned.MatchString(in) {
			t.Errorf("%q is read as %q", prompt, in)
		}
		if plain := strings.NewReplacer("\\@", "@").Replace(in); !strings.Contains(plain, strings.ReplaceAll(prompt, "\\@", "@")) {
			t.Errorf("%q was changed to %q", prompt, in)
		}
	})
}

func TestConfig(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cfg  agent.Config
		want string
	}{
		"nothing":             {agent.Config{}, ""},
		"everything":          {agent.Config{Adapter: "command", Command: []string{"x"}, Model: "m", Models: map[string]string{"a": "b"}, Env: map[string]string{"A_1": ""}}, ""},
		"unknown adapter":     {agent.Config{Adapter: "emacs"}, "write one of: "},
		"command without any": {agent.Config{Adapter: "command"}, "agent.command"},
		"model":               {agent.Config{Model: "-x"}, "agent.model"},
		"models":              {agent.Config{Models: map[string]string{"plan": ""}}, "agent.models.plan"},
		"env":                 {agent.Config{Env: map[string]string{"A=B": "c"}}, "agent.env"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := agent.NewSet(tc.cfg)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("error %v, want one with %q", err, tc.want)
			}
		})
	}
	got := agent.DefaultConfig()
	want := agent.Config{Adapter: "claude", Command: []string{"claude"}, Model: agent.DefaultModel}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

// TestCommandAdapter runs a shell script as an agent.
func TestCommandAdapter(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		script string
		status agent.Status
		text   string
		says   string
	}{
		"answers":   {`read -r first; echo "got: $first"; echo "$ERRAND_STEP $(cat "$ERRAND_SYSTEM_FILE")"; touch made`, agent.StatusOK, "got: Work @x.\nimplement Be kind.", ""},
		"fails":     {`echo partly; echo oh no >&2; exit 3`, agent.StatusCrashed, "partly", "oh no"},
		"not there": {`exit 127`, agent.StatusStartFailed, "", ""},
		"killed":    {`kill -9 $$`, agent.StatusCrashed, "", ""},
		"quiet":     {`true`, agent.StatusOK, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := agenttest.Harness{Adapter: newAdapter(t, agent.Config{Adapter: agent.NameCommand, Command: []string{"/bin/sh", "-c", tc.script}})}
			box := agenttest.NewBox(t)
			spec := box.Spec(agenttest.Model{}, "Work @x.")
			spec.System = "Be kind."
			got := agenttest.Do(t, h, spec).Result
			if got.Status != tc.status || got.Text != tc.text || !strings.Contains(got.Why+got.Said, tc.says) {
				t.Errorf("result %+v", got)
			}
		})
	}
	if _, err := newAdapter(t, agent.Config{Adapter: agent.NameCommand, Command: []string{"x"}}).Command(fullSpec()); err == nil {
		t.Error("a schema was accepted")
	}
}

// TestCommandOutputIsBounded prints more than is kept.
func TestCommandOutputIsBounded(t *testing.T) {
	t.Parallel()
	p := newAdapter(t, agent.Config{Adapter: agent.NameCommand, Command: []string{"x"}}).NewParser()
	line := bytes.Repeat([]byte("x"), 900<<10)
	for range 10 {
		p.Line(line)
	}
	p.Line([]byte("the end"))
	got := p.Exit(agent.Ended{}).Text
	if len(got) > 4<<20 || !strings.HasPrefix(got, "(The first 5529606 bytes of the output are left out.)\n\nxxx") || !strings.HasSuffix(got, "x\nthe end") {
		t.Errorf("%d bytes are kept: %.100s", len(got), got)
	}
}

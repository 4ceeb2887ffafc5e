package claude_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/agent/claude"
)

// TestCommandLine compares complete commands with golden files.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	resumed := agenttest.LeastSpec(claude.DefaultModel)
	resumed.Resume = "0d5c1b8e-8f5e-4c39-9a44-1f2a3b4c5d6e"
	env := map[string]string{"GOFLAGS": "-mod=mod", "HOME": "/evil"}
	program := agent.Program{Command: []string{"claude"}}
	agenttest.CheckCommand(t, "full", claude.New(agent.Program{Command: program.Command, Env: env}), agenttest.FullSpec(), *update)
	agenttest.CheckCommand(t, "least", claude.New(program), agenttest.LeastSpec(claude.DefaultModel), *update)
	agenttest.CheckCommand(t, "resumed", claude.New(agent.Program{Command: []string{"/opt/errand-demo", "simagent"}}), resumed, *update)
}

func TestInvalidSpecIsRefused(t *testing.T) {
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
		"a path to resume": {func(s *agent.Spec) { s.Session, s.Resume = "", "/etc/passwd" }, "not a UUID"},
		"model as a flag":  {func(s *agent.Spec) { s.Model = "--resume" }, "not a model"},
		"wrong MCP":        {func(s *agent.Spec) { s.MCP = json.RawMessage("{") }, "MCP"},
		"wrong schema":     {func(s *agent.Spec) { s.Schema = json.RawMessage("x") }, "schema"},
		"empty rule":       {func(s *agent.Spec) { s.Deny = []string{""} }, "deny rule"},
		"no command":       {func(s *agent.Spec) { s.Shell = []string{"git:*) Bash(x"} }, "beginning of a command"},
		"no model":         {func(s *agent.Spec) { s.Model = "" }, "not a model"},
		"negative limit":   {func(s *agent.Spec) { s.MaxTurns = -1 }, "negative"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agenttest.CheckRefusal(t, claude.New(agent.Program{}), agenttest.FullSpec(), tc.change, tc.want)
		})
	}
}

func TestPromptIsEscaped(t *testing.T) {
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
		spec := agenttest.FullSpec()
		spec.Prompt = in
		cmd, err := claude.New(agent.Program{Command: []string{"claude"}}).Command(spec)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(cmd.Stdin)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", in, diff)
		}
	}
}

func FuzzPromptIsEscaped(f *testing.F) {
	for _, seed := range []string{"/x", "a @b", "\u00a0@c", "@@d", "\\@e", "\t@\"f g\"", "x\r@y"} {
		f.Add(seed)
	}
	mentioned := regexp.MustCompile(`(^|[\s\pZ"'(\[{,;:])@[^\s]`)
	f.Fuzz(func(t *testing.T, prompt string) {
		spec := agenttest.FullSpec()
		spec.Prompt = prompt
		cmd, err := claude.New(agent.Program{Command: []string{"claude"}}).Command(spec)
		if err != nil {
			return
		}
		in := string(cmd.Stdin)
		if strings.HasPrefix(strings.TrimSpace(in), "/") || mentioned.MatchString(in) {
			t.Errorf("%q is passed as %q", prompt, in)
		}
		if plain := strings.NewReplacer("\\@", "@").Replace(in); !strings.Contains(plain, strings.ReplaceAll(prompt, "\\@", "@")) {
			t.Errorf("%q was changed to %q", prompt, in)
		}
	})
}

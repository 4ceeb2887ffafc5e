package agenttest

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
)

// FullSpec returns a Spec that uses every field.
func FullSpec() agent.Spec {
	return agent.Spec{
		WorkDir: "/home/box/w", Home: "/home/box", RunDir: "/home/box/.errand/runs/r1", Attachments: "/home/box/attachments", Step: "judge", Model: "claude-haiku-4-5",
		Prompt: "errand-step: judge\nLook at @main.go", System: "Be exact.", Session: "0d5c1b8e-8f5e-4c39-9a44-1f2a3b4c5d6e",
		Deny: []string{"Edit(.github/**)"}, Shell: []string{"git", "npm run"},
		MCP: json.RawMessage(
			`{"mcpServers":{"errand":{"type":"http","url":"http://127.0.0.1:1/callback"}}}`,
		), Schema: json.RawMessage("{\n \"type\": \"object\"}"),
		MaxTurns: 7, MaxUSD: 1.5, BaseURL: "http://127.0.0.1:1/llm", RunToken: "token",
	}
}

// LeastSpec returns a Spec with only the required fields.
func LeastSpec(model string) agent.Spec {
	return agent.Spec{WorkDir: "/w", Home: "/h", RunDir: "/r", Model: model, Prompt: "Work."}
}

// CheckCommand compares the command of a Spec with testdata/command/NAME.golden.json, which it writes first if update is
// set, and returns the command.
func CheckCommand(t *testing.T, name string, a agent.Adapter, spec agent.Spec, update bool) agent.Cmd {
	t.Helper()
	cmd, err := a.Command(spec)
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
	Golden(t, filepath.Join("testdata", "command", name+".golden.json"), shown, update)
	return cmd
}

// CheckRefusal fails the test unless the adapter refuses the changed Spec with an error that contains the text.
func CheckRefusal(t *testing.T, a agent.Adapter, spec agent.Spec, change func(*agent.Spec), want string) {
	t.Helper()
	change(&spec)
	if _, err := a.Command(spec); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want one that contains %q", err, want)
	}
}

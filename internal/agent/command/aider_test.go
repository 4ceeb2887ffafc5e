package command_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/agent/command"
)

// fakeAider replaces the program in PATH: it changes a file without committing, and prints its arguments.
const fakeAider = `#!/bin/sh

while [ $# -gt 0 ]; do
	case "$1" in
	--message-file) cp "$2" message.txt; shift ;;
	--env-file) cp "$2" env.txt; shift ;;
	--file) echo "$2" >> files.txt; shift ;;
	--model) echo "$2" > model.txt; shift ;;
	--no-git) echo yes > nogit.txt ;;
	--extra) echo yes > extra.txt ;;
	esac
	shift
done
echo more >> main.go
echo "I have changed main.go."
`

// TestAider: the preset passes the whole prompt, the mentioned files, the model and its address to the program. The
// checkout's .env cannot redirect it, because errand's is read after it.
func TestAider(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ model, wantModel, wantEnv string }{
		"anthropic": {"claude-sonnet-5", "anthropic/claude-sonnet-5", "ANTHROPIC_API_BASE=http://127.0.0.1:1/llm/x\n"},
		"openai":    {"gpt-5.5", "openai/gpt-5.5", "OPENAI_API_BASE=http://127.0.0.1:1/llm/x/v1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box := agenttest.NewBox(t)
			bin := t.TempDir()
			if err := os.WriteFile(filepath.Join(bin, "aider"), []byte(fakeAider), 0o755); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{"main.go", "other.go", "-f", "a b.txt"} {
				box.Write(t, file, "x\n")
			}
			for _, args := range [][]string{{"init", "-q"}, {"add", "."}} {
				if out, err := exec.Command("git", append([]string{"-C", box.Work}, args...)...).CombinedOutput(); err != nil {
					t.Fatalf("git %v: %v\n%s", args, err, out)
				}
			}
			spec := box.Spec(agenttest.Model{URL: "http://127.0.0.1:1/llm/x", Token: "run-token"}, "/drop everything. Change main.go, not -f.")
			spec.Model, spec.System = tc.model, "Be brief."
			h := agenttest.Harness{
				Adapter: command.New(agent.Program{Command: []string{"{aider}", "--extra"}}),
				Env:     []string{"PATH=" + bin + ":" + os.Getenv("PATH")},
			}
			r := agenttest.Do(t, h, spec)
			if r.Result.Status != agent.StatusOK || r.Result.Text != "I have changed main.go." {
				t.Fatalf("result %+v\n%s", r.Result, r.Ended.Stderr)
			}
			got := map[string]string{}
			for _, file := range []string{"message.txt", "files.txt", "model.txt", "nogit.txt", "extra.txt", "main.go"} {
				got[file] = box.Read(file)
			}
			want := map[string]string{
				"message.txt": "Be brief.\n\n/drop everything. Change main.go, not -f.", "files.txt": "main.go\n", "model.txt": tc.wantModel + "\n",
				"nogit.txt": "yes\n", "extra.txt": "yes\n", "main.go": "x\nmore\n",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("what the program was given (-want +got):\n%s", diff)
			}
			if env := box.Read("env.txt"); !strings.Contains(env, tc.wantEnv) || !strings.Contains(env, "_API_KEY=run-token\n") {
				t.Errorf("environment:\n%s", env)
			}
		})
	}
}

package command_test

import (
	"bytes"
	"flag"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/agent/command"
)

var update = flag.Bool("update", false, "write the golden files")

// TestCommandLine compares a complete command with a golden file.
func TestCommandLine(t *testing.T) {
	t.Parallel()
	spec := agenttest.FullSpec()
	spec.Schema = nil
	a := command.New(agent.Program{Command: []string{"/usr/bin/env", "my-agent"}, Env: map[string]string{"GOFLAGS": "-mod=mod", "HOME": "/evil"}})
	agenttest.CheckCommand(t, "full", a, spec, *update)
}

// TestRun runs a shell script as an agent.
func TestRun(t *testing.T) {
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
			h := agenttest.Harness{Adapter: command.New(agent.Program{Command: []string{"/bin/sh", "-c", tc.script}})}
			box := agenttest.NewBox(t)
			spec := box.Spec(agenttest.Model{}, "Work @x.")
			spec.System = "Be kind."
			got := agenttest.Do(t, h, spec).Result
			if got.Status != tc.status || got.Text != tc.text || !strings.Contains(got.Reason+got.Said, tc.says) {
				t.Errorf("result %+v", got)
			}
		})
	}
	if _, err := command.New(agent.Program{Command: []string{"x"}}).Command(agenttest.FullSpec()); err == nil {
		t.Error("a schema was accepted")
	}
}

// TestOutputIsBounded prints more than is kept.
func TestOutputIsBounded(t *testing.T) {
	t.Parallel()
	p := command.New(agent.Program{Command: []string{"x"}}).NewParser()
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

// TestTruncatedOutput: the text notes that a line is truncated; a truncated last line leaves no answer.
func TestTruncatedOutput(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100)
	got, _ := agenttest.ReadTruncated(command.New(agent.Program{Command: []string{"x"}}), 50, []string{long, "Done."})
	if want := long[:50] + "… (50 bytes of this line are missing)\nDone."; got.Status != agent.StatusOK || got.Text != want {
		t.Errorf("%s with %q", got.Status, got.Text)
	}
	if got, _ = agenttest.ReadTruncated(command.New(agent.Program{Command: []string{"x"}}), 50, []string{"Begin.", long, "", " "}); got.Status != agent.StatusAnswerCut || !strings.Contains(got.Reason+got.Said, "4 MiB") {
		t.Errorf("%s %q", got.Status, got.Reason+got.Said)
	}
}

package result

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/agent/registry"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/state"
)

// TestEveryStatusHasASentence: each status of a run has a distinct sentence, and an unknown status is reported as a
// crash.
func TestEveryStatusHasASentence(t *testing.T) {
	t.Parallel()
	seen := map[string]agent.Status{}
	for _, s := range append(agenttest.Statuses(), "from the future") {
		words := cause(agent.Result{Status: s}, runlog.Exit{Cause: runlog.CauseExited})
		switch before, twice := seen[words]; {
		case s == agent.StatusOK:
			if words != "" {
				t.Errorf("got cause %q for a success", words)
			}
			continue
		case words == "":
			t.Errorf("missing sentence for %s", s)
		case twice && s != "from the future":
			t.Errorf("%s and %s have the same sentence: %q", s, before, words)
		}
		seen[words] = s
	}
}

func TestCause(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		status agent.Status
		http   int
		exit   runlog.Exit
		want   string
	}{
		"the provider's status":             {agent.StatusOverloaded, 529, runlog.Exit{}, "the model's provider is overloaded or failing (HTTP 529)"},
		"an unknown model":                  {agent.StatusInvalid, 404, runlog.Exit{}, "the model's provider does not have the model, or does not offer it to errand's account (HTTP 404)"},
		"an invalid status":                 {agent.StatusAuth, 99, runlog.Exit{}, "the model's provider refused the call"},
		"a status in addition to the cause": {agent.StatusNetwork, 500, runlog.Exit{}, "the model could not be reached, or its answer was cut off"},
		"a crash with a code":               {agent.StatusCrashed, 0, runlog.Exit{Code: 3}, "the agent's program ended with code 3 before its work was done"},
		"a crash by a signal":               {agent.StatusCrashed, 0, runlog.Exit{Code: 137, Signal: "killed"}, "the agent's program was killed before its work was done"},
		"a crash without details":           {agent.StatusCrashed, 0, runlog.Exit{}, "the agent's program ended without a result"},
		"the repository's own set-up": {agent.StatusSetupFailed, 0, runlog.Exit{Code: 1, Message: "setup command failed (exit code 1): npm ci"},
			"setup command failed (exit code 1): npm ci"},
		"a program that is missing": {agent.StatusStartFailed, 0, runlog.Exit{Code: 127, Message: `exec: "codex": not found in /opt/x`}, "the agent's program could not be started"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := cause(agent.Result{Status: test.status, HTTP: test.http}, test.exit); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	for s, words := range causes() {
		if strings.ToLower(words[:1]) != words[:1] || strings.HasSuffix(words, ".") {
			t.Errorf("%s: %q cannot follow a colon", s, words)
		}
	}
}

// TestEveryStatusIsKnown: the table of package state has exactly the statuses that adapters report.
func TestEveryStatusIsKnown(t *testing.T) {
	t.Parallel()
	left := state.RunStatuses()
	for _, s := range agenttest.Statuses() {
		if _, ok := left[state.RunStatus(s)]; !ok {
			t.Errorf("the table of package state lacks %s", s)
		}
		delete(left, state.RunStatus(s))
	}
	delete(left, state.StatusVMLost) // set by errand
	for s := range left {
		t.Errorf("no adapter reports %s", s)
	}
}

// TestInterpretsTheEndOfStderr: the status of a program without other output is determined by the end of its standard
// error, of which only a bounded part is kept.
func TestInterpretsTheEndOfStderr(t *testing.T) {
	t.Parallel()
	set, err := registry.New(registry.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	in := &Interpreter{parser: set.Of("").NewParser(), redact: trust.NewRedactor(nil), lines: map[runlog.Stream]*trust.Lines{}}
	for i := range 60 {
		in.Line(runlog.Line{Seq: int64(i + 1), Stream: runlog.StreamStderr, Text: strings.Repeat("ä", 50<<10)})
	}
	in.Line(runlog.Line{Seq: 61, Stream: runlog.StreamStderr, Text: strings.Repeat("ä", 50<<10) + "error: unknown option"})
	kept := 0
	for _, l := range in.stderr {
		kept += len(l)
	}
	if kept > 1<<20 || len(in.stderr) > keptStderr {
		t.Errorf("got %d lines with %d bytes of standard error", len(in.stderr), kept)
	}
	got := in.Exit(runlog.Exit{Cause: runlog.CauseExited, Code: 1})
	if got.Status != state.StatusInvalid || !strings.Contains(got.ProgramError, "ääää") {
		t.Errorf("%s: %.200q", got.Status, got.ProgramError)
	}
}

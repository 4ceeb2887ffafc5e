package agenttest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/runlog"
)

// shellRules sets the command lists of the shell scenarios.
func shellRules(s *agent.Spec, allow ...string) {
	s.Shell, s.Deny = allow, []string{"Bash(git push:*)", "Bash(touch denied:*)"}
}

// testShell: only listed commands run, alone, in chains and inside other commands. The others are refused, the model is
// informed, and the run continues.
func testShell(t *testing.T, h Harness) {
	box := NewBox(t)
	commands := []struct {
		line string
		made string // the file that the line makes if it is run
		runs bool
	}{
		{"touch plain", "plain", true},
		{"mkdir -p sub && (cd sub && touch chained)", "sub/chained", true},
		{"printf hello > written", "written", true},
		{"cp written copied; cat copied | tee teed", "teed", true},
		{"install written installed", "installed", false},
		{"touch first && install written second", "second", false},
		{"sh -c 'install written nested'", "nested", false},
		{"echo $(install written substituted)", "substituted", false},
		{"touch denied", "denied", false},
		{"(cd sub && touch denied)", "sub/denied", false},
		{"touch last", "last", true},
	}
	var turns []Turn
	for _, c := range commands {
		turns = append(turns, Turn{Bash: []string{c.line}})
	}
	m := h.Model(t, one(append(turns, Turn{Text: "Done."})...))
	spec := box.Spec(m, "Make files.")
	shellRules(&spec, "cat", "cd", "cp", "echo", "mkdir", "printf", "tee", "touch")
	spec.MaxTurns = 2 * len(commands)
	r := Do(t, h, spec)
	need(t, r, agent.StatusOK)
	refused := 0
	for _, c := range commands {
		if made := exists(box, c.made); made != c.runs {
			t.Errorf("%q: run %v, want %v", c.line, made, c.runs)
		}
		if !c.runs {
			refused++
		}
	}
	if len(r.Result.Denials) != refused {
		t.Errorf("denials %q, want %d", r.Result.Denials, refused)
	}
	failed := 0
	for _, e := range r.Events {
		if e.Kind == runlog.KindToolResult && e.IsError {
			failed++
		}
	}
	if failed != refused && !h.NoExitCodes && !h.Words {
		t.Errorf("%d calls failed, want the %d that were refused", failed, refused)
	}
}

// testShellAnything: without a list, everything except denied commands runs.
func testShellAnything(t *testing.T, h Harness) {
	box := NewBox(t)
	m := h.Model(t, one(Turn{Bash: []string{"printf x > a && install a b"}}, Turn{Bash: []string{"touch denied"}}, Turn{Text: "Done."}))
	spec := box.Spec(m, "Make files.")
	shellRules(&spec)
	spec.Shell = nil
	need(t, Do(t, h, spec), agent.StatusOK)
	if !exists(box, "b") || exists(box, "denied") {
		t.Errorf("b was made %v, denied %v", exists(box, "b"), exists(box, "denied"))
	}
}

// exists reports whether a file exists in the work directory.
func exists(b Box, name string) bool {
	_, err := os.Stat(filepath.Join(b.Work, name))
	return err == nil
}

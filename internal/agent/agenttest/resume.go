package agenttest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/agent"
)

// twoPrompts is a conversation of two runs; the second reply is only used for the second prompt.
func twoPrompts() Scenario {
	return Scenario{
		{Prompt: "second prompt", Turns: []Turn{{Text: "second answer"}}},
		{Prompt: "first prompt", Turns: []Turn{{Text: "first answer"}}},
	}
}

func testResume(t *testing.T, h Harness) {
	box := NewBox(t)
	m := h.Model(t, twoPrompts())
	first := Do(t, h, box.Spec(m, "first prompt"))
	need(t, first, agent.StatusOK)
	spec := box.Spec(m, "second prompt")
	spec.Resume = first.Result.Session
	second := Do(t, h, spec)
	need(t, second, agent.StatusOK)
	checkContinued(t, m, first, second)
}

// checkContinued fails unless the second run continued the first one.
func checkContinued(t *testing.T, m Model, first, second Outcome) {
	t.Helper()
	if first.Result.Session == "" || second.Result.Session != first.Result.Session {
		t.Errorf("session %q after %q", second.Result.Session, first.Result.Session)
	}
	bodies := m.Bodies()
	last := bodies[len(bodies)-1]
	for _, part := range []string{"first prompt", "second prompt"} {
		if !strings.Contains(last, part) {
			t.Errorf("the last request does not contain %q", part)
		}
	}
	if second.Result.Text != "second answer" {
		t.Errorf("text %q", second.Result.Text)
	}
}

func testResumeAfterStop(t *testing.T, h Harness) {
	for name, stop := range map[string]func(*Process){
		"asked": (*Process).Interrupt,
		"killed": func(p *Process) {
			if err := p.cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			box := NewBox(t)
			s := twoPrompts()
			s[1].Turns = []Turn{{Bash: []string{"touch running; sleep 5"}}, {Text: "first answer"}}
			m := h.Model(t, s)
			p := Start(t, h, box.Spec(m, "first prompt"))
			atWork(t, box, m, Turn{})
			stop(p)
			first := p.Wait()
			if first.Result.Status.Class() != agent.ClassRetryable {
				t.Errorf("status %q is not retryable", first.Result.Status)
			}
			spec := box.Spec(m, "second prompt")
			spec.Resume = first.Result.Session
			second := Do(t, h, spec)
			need(t, second, agent.StatusOK)
			checkContinued(t, m, first, second)
		})
	}
}

func testSessionFiles(t *testing.T, h Harness) {
	box := NewBox(t)
	m := h.Model(t, twoPrompts())
	first := Do(t, h, box.Spec(m, "first prompt"))
	need(t, first, agent.StatusOK)
	home := filepath.Join(t.TempDir(), "other-home")
	copied := 0
	for _, name := range h.Adapter.SessionFiles(box.Work, first.Result.Session) {
		copied += copyFiles(t, filepath.Join(box.Home, name), filepath.Join(home, name))
	}
	if copied == 0 {
		t.Fatal("no session file was there to copy")
	}
	box.Home = home
	spec := box.Spec(m, "second prompt")
	spec.Resume = first.Result.Session
	second := Do(t, h, spec)
	need(t, second, agent.StatusOK)
	checkContinued(t, m, first, second)
}

// copyFiles copies a file, or those in a folder, and returns their number.
func copyFiles(t *testing.T, from, to string) int {
	t.Helper()
	n := 0
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		target := to + strings.TrimPrefix(path, from)
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		n++
		return os.WriteFile(target, data, 0o600)
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // the folder for large outputs may be missing
		t.Fatal(err)
	}
	return n
}

func testUnknownSession(t *testing.T, h Harness) {
	m := h.Model(t, one(Turn{Text: "never said"}))
	spec := NewBox(t).Spec(m, "Go on.")
	spec.Resume = unknownID
	r := Do(t, h, spec)
	need(t, r, agent.StatusNoSession)
	if r.Result.Session != "" {
		t.Errorf("session %q, want none", r.Result.Session)
	}
	if n := len(m.Bodies()); n != 0 {
		t.Errorf("the model was asked %d times", n)
	}
}

func testSessionID(t *testing.T, h Harness) {
	spec := NewBox(t).Spec(h.Model(t, one(Turn{Text: "ok"})), "Begin.")
	spec.Session = unknownID
	r := Do(t, h, spec)
	need(t, r, agent.StatusOK)
	if r.Result.Session != unknownID {
		t.Errorf("session %q, want %q", r.Result.Session, unknownID)
	}
	again := Do(t, h, spec)
	need(t, again, agent.StatusInvalid)
}

// testOwnSessionID: a requested session id is ignored, and the run succeeds.
func testOwnSessionID(t *testing.T, h Harness) {
	spec := NewBox(t).Spec(h.Model(t, one(Turn{Text: "ok"})), "Begin.")
	spec.Session = unknownID
	r := Do(t, h, spec)
	need(t, r, agent.StatusOK)
	if s := r.Result.Session; s == "" || s == unknownID {
		t.Errorf("session %q, want one of the agent's own", s)
	}
}

// WaitFor polls until the condition holds, and fails the test if it does not hold in time.
func WaitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(deadline)
	defer end.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

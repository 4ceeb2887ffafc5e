package realcli

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/state"
)

// TestHeavyTurns limits the turns of a real program that has no such limit itself: the gateway denies the next call, a
// comment explains it, and the task continues in the same session when a person allows more turns.
func TestHeavyTurns(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	p := programs()["codex"]
	const turns = 3
	l := startLife(t, program(t, "codex"), "turns.yaml", func(c *demo.Config) {
		c.Adapter, c.Model = p.adapter, p.model
		c.Files = map[string]string{"slug.go": "package slug\n", ".errand.yml": "plan: none\nlimits: {turns: 3}\n"}
	})
	issue := l.assign("Say more", "There is too little.")
	failed := l.until(issue, "the failure", func(t *state.Task) bool { return t.Phase == state.PhaseFailed })
	if n := len(l.Model.Requests()); n != turns {
		t.Errorf("the model received %d requests, want %d", n, turns)
	}
	if r := failed.Runs[len(failed.Runs)-1]; r.Status != "max_turns" || r.Adapter != "codex" {
		t.Errorf("the run ended as %s: %s", r.Status, r.Message)
	}
	l.reachPhase(issue, "the hint", func(*state.Task) bool { return strings.Contains(l.botComments(issue), "retry turns=6") })
	if said := l.botComments(issue); strings.Contains(said, "/v1/responses") {
		t.Errorf("got comments:\n%s", said)
	}
	_, err := l.GitHub.As(demo.Maintainer).Comment(demo.Full, issue, "@errand retry turns=20")
	check(t, err)
	done := l.reachPhase(issue, "the pull request", func(t *state.Task) bool { return t.Phase == state.PhasePROpen })
	first, last := done.Runs[0], done.Runs[len(done.Runs)-1]
	if first.Session == "" || last.Session != first.Session || last.Status != "ok" {
		t.Errorf("session %q after %q, %s", last.Session, first.Session, last.Status)
	}
}

// reachPhase waits for a state of a task, even if the task fails on the way.
func (l *life) reachPhase(issue int, what string, ok func(*state.Task) bool) *state.Task {
	l.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(patience)
	defer end.Stop()
	for {
		if task := l.task(issue); task != nil && ok(task) {
			return task
		}
		select {
		case <-tick.C:
		case <-end.C:
			l.t.Fatalf("waiting for %s: timeout after %s", what, patience)
		}
	}
}

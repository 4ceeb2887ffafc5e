package watch_test

import (
	"testing"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state/event"
)

// TestSweepReportsConflicts: a sweep has the branch compared with its base if GitHub says that they conflict and the task does not know it, or
// if the task believes that they do and somebody has resolved it. Otherwise it has not.
func TestSweepReportsConflicts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		conflict, known bool
		pushed          bool // the webhook about it was lost
		want            bool
	}{
		"a new conflict":      {conflict: true, want: true},
		"a known conflict":    {conflict: true, known: true},
		"a resolved conflict": {known: true, want: true},
		"no conflict":         {},
		"an unknown head":     {pushed: true, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newSweepWorld(t)
			l.issue()
			push := func(branch, text string) string {
				head, err := l.sim.As("bob").PushCommit(full, simgithub.Commit{Branch: branch, Message: "Mend it", Files: map[string]string{"README.md": text}})
				check(t, err)
				return head
			}
			head := push("errand/1", "# ours\n")
			p, err := l.sim.As("bob").OpenPull(full, simgithub.NewPull{Title: "Mend it", Head: "errand/1"})
			check(t, err)
			l.prOpen(p.Number, head)
			if c.pushed {
				push("errand/1", "# theirs, too\n")
			}
			if c.conflict {
				push("main", "# theirs\n")
			}
			if c.known {
				l.happen(event.Event{Task: l.key, Payload: event.BaseRead{Known: head, Head: head, Base: "main", Result: event.BaseConflict, Workflow: "w"}})
			}
			for range 3 { // GitHub computes it after the first read
				checkSwept(t, l.sweeper.SweepState(t.Context()))
			}
			if got := len(l.reported(event.KindBaseMoved)) > 0; got != c.want {
				t.Errorf("the branch is compared with its base: %v, want %v", got, c.want)
			}
		})
	}
}

package watch_test

import (
	"testing"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// TestRestoredSweepStoresHeads: a restored errand learns where the branch of a pull request is, since the lost one may have pushed to it.
// Other sweeps do not read it: they could report a head from before errand's own push.
func TestRestoredSweepStoresHeads(t *testing.T) {
	t.Parallel()
	push := func(l *sweepWorld, file string) string {
		commit := simgithub.Commit{Branch: "errand/1", Message: "Mend it", Files: map[string]string{file: "b\n"}}
		head, err := l.sim.As("bob").PushCommit(full, commit)
		check(l.t, err)
		return head
	}
	for name, c := range map[string]struct {
		swept func(l *sweepWorld) error
		moved bool // the branch
		close bool
		want  bool
	}{
		"another head":    {swept: (*sweepWorld).sweepRestored, moved: true, want: true},
		"the same head":   {swept: (*sweepWorld).sweepRestored},
		"it is closed":    {swept: (*sweepWorld).sweepRestored, moved: true, close: true},
		"any other sweep": {swept: func(l *sweepWorld) error { return l.sweeper.SweepState(l.t.Context()) }, moved: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newSweepWorld(t)
			l.issue()
			old := push(l, "a")
			p, err := l.sim.As("bob").OpenPull(full, simgithub.NewPull{Title: "Mend it", Head: "errand/1"})
			check(t, err)
			before := l.prOpen(p.Number, old)
			if c.moved {
				push(l, "b")
			}
			if c.close {
				check(t, l.ada.Close(full, p.Number, ""))
			}
			for range 2 {
				checkSwept(t, c.swept(l))
			}
			after, err := l.Task(t.Context(), l.key)
			check(t, err)
			if changed := after.Branch.Head != before.Branch.Head; changed != c.want || len(l.reported(event.KindPushed)) > 1 {
				t.Errorf("the head was %s, and is %s; %d events", before.Branch.Head, after.Branch.Head, len(l.reported(event.KindPushed)))
			}
		})
	}
}

func (l *sweepWorld) sweepRestored() error { return l.sweeper.SweepRestored(l.t.Context()) }

// prOpen lets the task know an open pull request, with the head of its branch.
func (l *sweepWorld) prOpen(number int, head string) *state.Task {
	l.begun("mention")
	plain := settings.Default()
	plain.Plan = settings.PlanNone
	start := event.Start{Settings: plain, Visible: true, Branch: state.Branch{Name: "errand/1", Base: "main"}}
	l.happen(event.Event{Task: l.key, Payload: event.Started{Start: start}})
	return l.happen(event.Event{Task: l.key, Payload: event.PRFound{PR: state.PR{Number: number, State: state.PROpen}, Head: head}})
}

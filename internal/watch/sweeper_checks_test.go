package watch_test

import (
	"testing"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestSweepReadsUndecidedChecks: a sweep has checks read of which a version stored that they are undecided, but not since when: once per head, as
// long as the pull request is open.
func TestSweepReadsUndecidedChecks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		read   event.ChecksRead
		closed bool
		by     string // who pushes after the first sweeps
		want   int
	}{
		"pending":                {read: event.ChecksRead{Checks: "pending"}, want: 1},
		"unknown":                {read: event.ChecksRead{Checks: "unknown"}, want: 1},
		"pending, with its time": {read: event.ChecksRead{Checks: "pending", Pending: true}},
		"unknown, with its time": {read: event.ChecksRead{Checks: "unknown", Pending: true}},
		"failed":                 {read: event.ChecksRead{Checks: "failure"}},
		"green":                  {read: event.ChecksRead{Checks: "success"}},
		"nothing is reported":    {},
		"closed":                 {read: event.ChecksRead{Checks: "pending"}, closed: true},
		"bob pushes":             {read: event.ChecksRead{Checks: "pending"}, by: "bob", want: 2},
		"ada pushes":             {read: event.ChecksRead{Checks: "pending"}, by: "ada", want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newSweepWorld(t)
			l.issue()
			push := func(by, text string) string {
				head, err := l.sim.As(by).PushCommit(full, simgithub.Commit{Branch: "errand/1", Message: "Mend it", Files: map[string]string{"README.md": text}})
				check(t, err)
				return head
			}
			head := push("bob", "# ours\n")
			p, err := l.sim.As("bob").OpenPull(full, simgithub.NewPull{Title: "Mend it", Head: "errand/1"})
			check(t, err)
			l.prOpen(p.Number, head)
			read := func(head string) {
				c.read.Head = head
				l.happen(event.Event{Task: l.key, Payload: c.read})
			}
			read(head)
			if c.closed {
				check(t, l.sim.As("bob").Close(full, p.Number, ""))
			}
			sweep := func() {
				for range 3 {
					checkSwept(t, l.sweeper.SweepState(t.Context()))
				}
			}
			sweep()
			if c.by != "" {
				head = push(c.by, "# more\n")
				l.happen(event.Event{Task: l.key, By: state.Person{ID: 9, Login: c.by}, Payload: event.Pushed{Head: head}})
				read(head)
				sweep()
			}
			if got := len(l.reported(event.KindChecksChanged)); got != c.want {
				t.Errorf("the checks are read %d times, want %d", got, c.want)
			}
		})
	}
}

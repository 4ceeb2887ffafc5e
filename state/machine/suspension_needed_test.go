package machine

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// TestNeededSavedWorkIsKept: saved work that a run is waiting to restore is not deleted, however old, until a VM has
// it.
func TestNeededSavedWorkIsKept(t *testing.T) {
	t.Parallel()
	keep := DefaultPolicy().KeepAsleep
	due := event.Event{Payload: event.NewDue(state.DueUnused, "")}
	for _, mode := range []settings.SleepMode{settings.SleepArchive, settings.SleepSnapshot} {
		for _, waits := range []bool{false, true} {
			l := newLife(t)
			l.toPreliminary()
			e := suspendedOn("vm1", "a1")
			event.Of[event.Suspended](e).Work.Mode = mode
			l.do(e)
			put := l.now
			l.now = put.Add(keep - time.Minute)
			l.comment(state.VerbMessage)
			l.gathered()
			if waits {
				l.do(event.Event{Payload: event.StepBlocked{Waiting: &state.Waiting{Kind: state.WaitVM}}})
			}
			l.now = put.Add(keep)
			l.do(due)
			again := jobOf(l.jobs, state.JobDue)
			if l.task.Suspended == nil || jobOf(l.jobs, state.JobForget).Kind != "" || jobOf(l.jobs, state.JobPost).Kind != "" || !again.NotBefore.Equal(l.now.Add(restoreGrace)) {
				t.Fatalf("%s: got jobs %v, saved work %v; want the needed work kept", mode, kindsOf(l.jobs), l.task.Suspended)
			}
			l.do(event.Event{Run: l.task.Run.ID, Payload: event.Launched{Launch: state.Launch{Run: l.task.Run.ID, VM: state.VM{Name: "vm2", RestoredFrom: []string{"vm1"}}, Started: l.now}}})
			l.now = again.NotBefore
			l.do(due)
			if l.task.Suspended != nil || jobOf(l.jobs, state.JobForget).Args.Ref != "a1" {
				t.Errorf("%s: got jobs %v, want the restored work deleted", mode, kindsOf(l.jobs))
			}
		}
	}
}

package watch_test

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestReplacedPullRequestsAreComparedWithGitHub: a pull request that the task began anew without, and whose reopening no webhook
// reported, is reported, so that it is closed again.
func TestReplacedPullRequestsAreComparedWithGitHub(t *testing.T) {
	t.Parallel()
	l := newSweepWorld(t)
	l.issue()
	check(t, errOf(l.sim.As("bob").PushCommit(full, simgithub.Commit{Branch: "errand/1", Message: "Mend it", Files: map[string]string{"a": "b\n"}})))
	p, err := l.sim.As("bob").OpenPull(full, simgithub.NewPull{Title: "Mend it", Head: "errand/1"})
	check(t, err)
	check(t, l.ada.Close(full, p.Number, ""))
	l.begun("mention")
	restart := event.Commented{Comment: &state.Comment{ID: 1, Mention: true}, Orders: []state.Order{{Verb: state.VerbRestart}}}
	l.happen(event.Event{Task: l.key, By: ada, Permission: state.PermissionWrite, At: time.Now(), Payload: restart})
	l.happen(event.Event{Task: l.key, Payload: event.PROpened{PR: state.PR{Number: p.Number, State: "open"}}}) // by a job of the life before
	l.happen(event.Event{Task: l.key, Payload: event.PRReplaced{Number: p.Number, Closed: true}})
	checkSwept(t, l.sweeper.SweepState(t.Context()))
	if list := l.reported(event.KindPRReopened); len(list) != 0 {
		t.Fatalf("reported %+v about a closed pull request", list)
	}
	check(t, l.ada.Reopen(full, p.Number))
	checkSwept(t, l.sweeper.SweepState(t.Context()))
	if list := l.reported(event.KindPRReopened); len(list) != 1 || event.Of[event.PRReopened](list[0]).Number != p.Number {
		t.Errorf("reported %+v, want the reopening of #%d", list, p.Number)
	}
	jobs, err := l.Jobs(t.Context(), l.key)
	check(t, err)
	closing := false
	for _, j := range jobs {
		closing = closing || j.Kind == state.JobClosePR && j.Args.Number == p.Number
	}
	if !closing {
		t.Error("it is not closed again")
	}
}

package store

import (
	"fmt"
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/machine"
)

// However much people write, a task stays small enough to be stored.
func TestSeenIsBounded(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	s.next = func(old *state.Task, _ event.Event, _ machine.Policy) machine.Change {
		after := &state.Task{}
		if old != nil {
			after = old.Clone()
		}
		for i := len(after.SeenIDs); i < 10_000; i++ {
			after.SeenIDs = append(after.SeenIDs, fmt.Sprintf("review-comment:%d", 9_000_000_000+i))
		}
		return machine.Change{Task: after}
	}
	for i := range 3 {
		got := s.mustApply(t, event.Event{Task: task1, ID: fmt.Sprintf("comment:%d", i), Permission: state.PermissionWrite, Payload: event.Commented{}}, Ack{})
		if len(got.Task.SeenIDs) != 10_000 || !got.Task.HasSeen(fmt.Sprintf("comment:%d", i)) {
			t.Fatalf("got %d stored IDs", len(got.Task.SeenIDs))
		}
	}
}

// A command that was executed is not executed again when it is delivered again, whatever others have written since,
// also in the next life of the task.
func TestStrangersPushNothingOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		by         state.Person
		permission state.Permission
		n          int
	}{
		"strangers":         {eve, state.PermissionNone, 520},
		"readers":           {eve, state.PermissionRead, 520},
		"bots":              {state.Person{ID: 9, Login: "ci[bot]", Bot: true}, state.PermissionNone, 520},
		"no permission yet": {eve, "", 520}, // a 👍 is not vetted where it is checked as an approval
		"the same":          {eve, state.PermissionRead, 1},
		"many people":       {ada, state.PermissionWrite, 520},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestStore(t)
			s.next = machine.Next
			apply := func(e event.Event) Applied {
				t.Helper()
				e.Task = task1
				return s.mustApply(t, e, Ack{})
			}
			trigger := event.Event{By: ada, Permission: state.PermissionWrite, Via: "assigned", Repo: &state.Repo{ID: task1.Repo, Owner: "o", Name: "r"}, Payload: event.Triggered{Issue: &state.Issue{Title: "Bug"}}}
			apply(trigger)
			budget := event.Event{ID: "comment:7", By: ada, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 7, Mention: true}, Orders: []state.Order{{Verb: state.VerbBudget, MicroUSD: 5_000_000}}}}
			before := apply(budget).Task.Money.CapMicroUSD
			replay := func() {
				t.Helper()
				if got := apply(budget); got.Changed || got.Note != noteSeen {
					t.Errorf("applied again (%s): got cap %d after %d", got.Note, got.Task.Money.CapMicroUSD, before)
				}
			}
			for i := range c.n {
				e := event.Event{ID: fmt.Sprintf("comment:%d", 100+i), By: c.by, Permission: c.permission, Payload: event.Commented{Comment: &state.Comment{ID: int64(100 + i)}}}
				if c.permission == "" {
					e.ID, e.Payload = "thumb:"+e.ID, event.Thumb{Candidate: &state.Candidate{}}
				}
				apply(e)
			}
			replay()
			apply(event.Event{ID: "comment:8", By: ada, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 8, Mention: true}, Orders: []state.Order{{Verb: state.VerbCancel}}}})
			apply(trigger)
			replay()
		})
	}
}

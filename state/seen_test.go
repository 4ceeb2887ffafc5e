package state

import (
	"fmt"
	"testing"
)

// TestStrangersPushNothingOut: a command that was carried out is not carried out again when it is reported anew, whatever others
// have written since, in the next life of the task, too.
func TestStrangersPushNothingOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		by         Person
		permission Permission
		n          int
	}{
		"strangers":   {visitor, PermissionNone, 520},
		"readers":     {visitor, PermissionRead, 2 * maxSeen},
		"bots":        {Person{ID: 9, Login: "ci[bot]", Bot: true}, PermissionNone, 520},
		"nobody yet":  {visitor, "", 520}, // a 👍 is not vetted where it is checked as an approval
		"the same":    {visitor, PermissionRead, 1},
		"many people": {writer, PermissionWrite, 3 * maxSeen},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestStore(t)
			s.next = Next
			apply := func(e Event) Applied {
				t.Helper()
				e.Task = task1
				return s.mustApply(t, e, Ack{})
			}
			trigger := Event{Kind: EventTriggered, By: writer, Permission: PermissionWrite, Via: "assigned", Repo: &Repo{ID: task1.Repo, Owner: "o", Name: "r"}, Issue: &Issue{Title: "Bug"}}
			apply(trigger)
			budget := Event{Kind: EventCommented, ID: "comment:7", By: writer, Permission: PermissionWrite, Comment: &Comment{ID: 7, Mention: true}, Orders: []Order{{Verb: VerbBudget, MicroUSD: 5_000_000}}}
			before := apply(budget).Task.Money.CapMicroUSD
			replay := func() {
				t.Helper()
				if got := apply(budget); got.Changed || got.Note != noteSeen {
					t.Errorf("carried out again (%s): the cap is %d after %d", got.Note, got.Task.Money.CapMicroUSD, before)
				}
			}
			for i := range c.n {
				e := Event{Kind: EventCommented, ID: fmt.Sprintf("comment:%d", 100+i), By: c.by, Permission: c.permission, Comment: &Comment{ID: int64(100 + i)}}
				if c.permission == "" {
					e.Kind, e.ID, e.Candidate = EventThumb, "thumb:"+e.ID, &Candidate{}
				}
				apply(e)
			}
			replay()
			apply(Event{Kind: EventCommented, ID: "comment:8", By: writer, Permission: PermissionWrite, Comment: &Comment{ID: 8, Mention: true}, Orders: []Order{{Verb: VerbCancel}}})
			apply(trigger)
			replay()
		})
	}
}

// TestStrangersMakeNoOldReviewNew: what a round has answered is not taken up again because others wrote much meanwhile.
func TestStrangersMakeNoOldReviewNew(t *testing.T) {
	t.Parallel()
	task := &Task{Seen: []string{"thread:1:2"}}
	for i := range 2 * maxSeen {
		task.note(Event{ID: fmt.Sprintf("review-event:%d", i), Permission: PermissionRead})
	}
	if !task.Knows("thread:1:2") || len(task.Passed) != maxSeen || len(task.Seen) != 1 {
		t.Errorf("%d of writers and %d of others are remembered", len(task.Seen), len(task.Passed))
	}
}

// TestSeenIsBounded: however much is written, a task stays small enough to be stored.
func TestSeenIsBounded(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	s.next = func(old *Task, _ Event, _ Policy) Change {
		after := &Task{}
		if old != nil {
			after = old.clone()
		}
		for i := len(after.Seen); i < maxHeard; i++ {
			after.Seen = append(after.Seen, fmt.Sprintf("review-comment:%d", 9_000_000_000+i))
		}
		return Change{Task: after}
	}
	for i := range 3 {
		got := s.mustApply(t, Event{Kind: EventCommented, Task: task1, ID: fmt.Sprintf("comment:%d", i), Permission: PermissionWrite}, Ack{})
		if len(got.Task.Seen) != maxHeard || !got.Task.Knows(fmt.Sprintf("comment:%d", i)) {
			t.Fatalf("%d are remembered", len(got.Task.Seen))
		}
	}
}

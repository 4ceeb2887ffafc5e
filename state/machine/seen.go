package machine

import (
	"slices"

	"github.com/errand-bot/errand/state"
)

const (
	// maxSeen bounds Task.Passed, Task.Answered and Task.Posted.
	maxSeen = 500
	// maxHeard bounds Task.Seen. Nothing but acts of people who may direct errand takes room there, and GitHub takes at most 2,500
	// comments on an issue, so that nothing is dropped while it could still be reported again.
	maxHeard = 10_000
)

// MarkSeen remembers an event's id. What people did who may direct errand is kept, so that it is never done twice; for others, of
// whose acts nothing follows, there is a list of its own: however much strangers write, it pushes nothing out.
func MarkSeen(t *state.Task, e state.Event) {
	switch {
	case e.ID == "" || t.Knows(e.ID):
	case e.Permission.CanWrite():
		t.Seen = remember(t.Seen, e.ID, maxHeard)
	default:
		t.Passed = remember(t.Passed, e.ID, maxSeen)
	}
}

// remember appends s and keeps the newest.
func remember(list []string, s string, most int) []string {
	list = append(list, s)
	if len(list) > most {
		list = slices.Delete(list, 0, len(list)-most)
	}
	return list
}

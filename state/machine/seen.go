package machine

import (
	"slices"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

const (
	// maxSeen is the maximum length of Task.Passed, Task.Answered and Task.Posted.
	maxSeen = 500
	// maxWriterSeen is the maximum length of Task.Seen. Only actions of people with write access use its space, and GitHub
	// allows at most 2,500 comments on an issue, so no entry is dropped while its event could still be delivered again.
	maxWriterSeen = 10_000
)

// MarkSeen stores an event's ID. Actions of people with write access have a list of their own, so that none is applied
// twice: however much others write, it does not displace these entries.
func MarkSeen(t *state.Task, e event.Event) {
	switch {
	case e.ID == "" || t.HasSeen(e.ID):
	case e.Permission.CanWrite():
		t.SeenIDs = remember(t.SeenIDs, e.ID, maxWriterSeen)
	default:
		t.SeenUntrustedIDs = remember(t.SeenUntrustedIDs, e.ID, maxSeen)
	}
}

// remember appends s to list and keeps the newest entries, at most most of them.
func remember(list []string, s string, most int) []string {
	list = append(list, s)
	if len(list) > most {
		list = slices.Delete(list, 0, len(list)-most)
	}
	return list
}

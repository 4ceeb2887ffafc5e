package machine

import (
	"slices"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

const (
	// maxSeenIDs is the maximum length of Task.Passed, Task.Answered and Task.Posted.
	maxSeenIDs = 500
	// maxTrustedSeenIDs is the maximum length of Task.Seen. Only actions of people with write access use its space, and GitHub
	// allows at most 2,500 comments on an issue, so no entry is dropped while its event could still be delivered again.
	maxTrustedSeenIDs = 10_000
)

// MarkSeen stores an event's ID. Actions of people with write access have a list of their own, so that none is applied
// twice: however much others write, it does not displace these entries.
func MarkSeen(t *state.Task, e event.Event) {
	switch {
	case e.ID == "" || t.HasSeen(e.ID):
	case e.Permission.CanWrite():
		t.SeenIDs = appendBounded(t.SeenIDs, e.ID, maxTrustedSeenIDs)
	default:
		t.SeenUntrustedIDs = appendBounded(t.SeenUntrustedIDs, e.ID, maxSeenIDs)
	}
}

// appendBounded appends s to list and keeps the newest entries, at most most of them.
func appendBounded(list []string, s string, limit int) []string {
	list = append(list, s)
	if len(list) > limit {
		list = slices.Delete(list, 0, len(list)-limit)
	}
	return list
}

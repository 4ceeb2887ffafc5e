package fleet

import "github.com/errand-bot/errand/state"

// Reason is why a VM ended. The list is closed: status, log and metrics show
// these words, and docs explain each.
type Reason string

const (
	// ReasonDone: its task reached the end.
	ReasonDone Reason = "done"
	// ReasonCancelled: its task was cancelled.
	ReasonCancelled Reason = "cancelled"
	// ReasonFailed: its task failed and keeps no VM.
	ReasonFailed Reason = "failed"
	// ReasonFresh: `retry fresh` asked for a new one.
	ReasonFresh Reason = "retry_fresh"
	// ReasonAsleep: its work was put away and the task sleeps.
	ReasonAsleep Reason = "asleep"
	// ReasonLimit: the task's VM hours or money were used up.
	ReasonLimit Reason = "limit"
	// ReasonOrphan: the reaper found it without an owner.
	ReasonOrphan Reason = "orphan"
	// ReasonUnusable: it came up, but could not be used.
	ReasonUnusable Reason = "unusable"
	// ReasonCreateFailed: it never came up.
	ReasonCreateFailed Reason = "create_failed"
	// ReasonIdle: it ended itself after a time without contact.
	ReasonIdle Reason = "idle"
	// ReasonCrashed: its first process ended by itself.
	ReasonCrashed Reason = "crashed"
	// ReasonHostStopped: the host told it to stop.
	ReasonHostStopped Reason = "host_stopped"
	// ReasonVanished: it is gone and nothing says why, as after a power cut.
	ReasonVanished Reason = "vanished"
	// ReasonDiskFull: its disk had no room left.
	ReasonDiskFull Reason = state.VMDiskFull
	// ReasonOperator: a person ended it by hand.
	ReasonOperator Reason = "operator"
)

// Reasons lists all reasons.
func Reasons() []Reason {
	return []Reason{
		ReasonDone, ReasonCancelled, ReasonFailed, ReasonFresh, ReasonAsleep, ReasonLimit, ReasonOrphan,
		ReasonUnusable, ReasonCreateFailed, ReasonIdle, ReasonCrashed, ReasonHostStopped, ReasonVanished, ReasonDiskFull, ReasonOperator,
	}
}

// Valid reports whether r is in the list.
func (r Reason) Valid() bool {
	for _, known := range Reasons() {
		if r == known {
			return true
		}
	}
	return false
}

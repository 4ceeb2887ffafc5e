package fleet

import (
	"github.com/errand-bot/errand/state"
)

// A Reason is why a VM ended. The list is closed: status, log and metrics show these values, and the docs explain each.
type Reason string

const (
	// ReasonDone: its task was done.
	ReasonDone Reason = "done"
	// ReasonCancelled: its task was canceled.
	ReasonCancelled Reason = "cancelled"
	// ReasonFailed: its task failed and keeps no VM.
	ReasonFailed Reason = "failed"
	// ReasonFresh: `retry fresh` requested a new one.
	ReasonFresh Reason = "retry_fresh"
	// ReasonAsleep: its task was suspended.
	ReasonAsleep Reason = "asleep"
	// ReasonLimit: the task's limit on VM hours or cost was reached.
	ReasonLimit Reason = "limit"
	// ReasonOrphan: the reaper found it without an owner.
	ReasonOrphan Reason = "orphan"
	// ReasonUnusable: it came up but was unusable.
	ReasonUnusable Reason = "unusable"
	// ReasonCreateFailed: it did not come up.
	ReasonCreateFailed Reason = "create_failed"
	// ReasonIdle: it shut down after a time without contact.
	ReasonIdle Reason = "idle"
	// ReasonCrashed: its first process ended unexpectedly.
	ReasonCrashed Reason = "crashed"
	// ReasonHostStopped: the host stopped it.
	ReasonHostStopped Reason = "host_stopped"
	// ReasonVanished: it disappeared for an unknown reason, as after a power cut.
	ReasonVanished Reason = "vanished"
	// ReasonDiskFull: its disk was full.
	ReasonDiskFull Reason = state.VMDiskFull
	// ReasonOperator: the operator ended it.
	ReasonOperator Reason = "operator"
)

// Reasons returns all reasons.
func Reasons() []Reason {
	return []Reason{
		ReasonDone, ReasonCancelled, ReasonFailed, ReasonFresh, ReasonAsleep, ReasonLimit, ReasonOrphan,
		ReasonUnusable, ReasonCreateFailed, ReasonIdle, ReasonCrashed, ReasonHostStopped, ReasonVanished, ReasonDiskFull, ReasonOperator,
	}
}

// Valid reports whether r is one of [Reasons].
func (r Reason) Valid() bool {
	for _, known := range Reasons() {
		if r == known {
			return true
		}
	}
	return false
}

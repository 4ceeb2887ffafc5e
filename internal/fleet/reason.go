package fleet

import "github.com/errand-bot/errand/state"

// Reason is why a VM ended. Of the closed list these are the values in rows and metrics; the docs explain each.
type Reason = state.VMEndReason

// The reasons that the fleet stores, as documented there.
const (
	ReasonDone         = state.VMEndDone
	ReasonCancelled    = state.VMEndCancelled
	ReasonFailed       = state.VMEndFailed
	ReasonFresh        = state.VMEndRetryFresh
	ReasonAsleep       = state.VMEndAsleep
	ReasonLimit        = state.VMEndLimit
	ReasonOrphan       = state.VMEndOrphan
	ReasonUnusable     = state.VMEndUnusable
	ReasonCreateFailed = state.VMEndCreateFailed
	ReasonIdle         = state.VMEndIdle
	ReasonCrashed      = state.VMEndCrashed
	ReasonHostStopped  = state.VMEndHostStopped
	ReasonVanished     = state.VMEndVanished
	ReasonDiskFull     = state.VMEndDiskFull
	ReasonOperator     = state.VMEndOperator
)

// Reasons returns all reasons.
func Reasons() []Reason {
	return []Reason{
		ReasonDone, ReasonCancelled, ReasonFailed, ReasonFresh, ReasonAsleep, ReasonLimit, ReasonOrphan,
		ReasonUnusable, ReasonCreateFailed, ReasonIdle, ReasonCrashed, ReasonHostStopped, ReasonVanished, ReasonDiskFull, ReasonOperator,
	}
}

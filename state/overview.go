package state

import "time"

// TaskOverview is the part of an open task that webhooks, pages and sweeps need.
type TaskOverview struct {
	Key          TaskKey
	Phase        Phase
	Installation int64
	Waiting      WaitKind // empty if it does not wait
	Branch       string   // empty until there is one
	Base         string   // the branch into which it will be merged
	Head         string   // commit of the branch as errand left it; empty until it has published one
	HasPR        bool
	HasVM        bool

	// Queued is when the task began to wait in the queue for a VM, zero if it does not, and Place its last known place there.
	Queued time.Time
	Place  int
	// IdleVM is the task's VM if it may be suspended for another task, IdleSince the time since which it is idle, and WantedAt
	// that of the last request.
	IdleVM              string
	IdleSince, WantedAt time.Time
}

// Overview returns the task's overview.
func (t *Task) Overview() TaskOverview {
	g := TaskOverview{Key: t.Key, Phase: t.Phase, Installation: t.Installation, Branch: t.Branch.Name, Base: t.Branch.Base, Head: t.Branch.Head,
		HasPR: t.PR != nil, HasVM: t.VM != nil}
	if t.Waiting != nil {
		g.Waiting = t.Waiting.Kind
	}
	if t.IsQueuedForVM() {
		g.Queued, g.Place = t.Waiting.Since, t.Waiting.Place
	}
	if t.CanYieldVM() {
		g.IdleVM, g.IdleSince, g.WantedAt = t.VM.Name, t.IdleSince(), t.VM.WantedAt
	}
	return g
}

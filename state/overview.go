package state

// TaskOverview is the part of an open task that webhooks, pages and sweeps need.
type TaskOverview struct {
	Key          TaskKey
	Phase        Phase
	Installation int64
	Waiting      WaitKind // empty if it does not wait
	Branch       string   // empty until there is one
	Head         string   // commit of the branch as errand left it; empty until it has published one
	HasPR        bool
	HasVM        bool
}

// Overview returns the task's overview.
func (t *Task) Overview() TaskOverview {
	g := TaskOverview{Key: t.Key, Phase: t.Phase, Installation: t.Installation, Branch: t.Branch.Name, Head: t.Branch.Head, HasPR: t.PR != nil, HasVM: t.VM != nil}
	if t.Waiting != nil {
		g.Waiting = t.Waiting.Kind
	}
	return g
}

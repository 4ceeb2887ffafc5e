package state

// Glance is what others than a task's own steps have to know of an open task.
type Glance struct {
	Key          TaskKey
	Phase        Phase
	Installation int64
	Waiting      WaitKind // empty if it waits for nothing
	Branch       string   // empty until there is one
	Head         string   // commit of the branch as errand left it; empty until it has published one
	HasPR        bool
	HasVM        bool
}

// Glance says of a task what Store.Glances says.
func (t *Task) Glance() Glance {
	g := Glance{Key: t.Key, Phase: t.Phase, Installation: t.Installation, Branch: t.Branch.Name, Head: t.Branch.Head, HasPR: t.PR != nil, HasVM: t.VM != nil}
	if t.Waiting != nil {
		g.Waiting = t.Waiting.Kind
	}
	return g
}

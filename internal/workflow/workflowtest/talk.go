package workflowtest

import (
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// Sent runs the status job and stores its result.
func (w *World) Sent(change ...func(*state.Job)) event.Event {
	w.T.Helper()
	e := w.Do(state.JobStatus, change...)
	if e.Kind() == event.KindStatusSent {
		w.Task.Status = event.Of[event.StatusSent](e).Status
	}
	return e
}

// Proposed returns a task whose agent proposed an issue that ada requested.
func (w *World) Proposed() {
	w.T.Helper()
	w.Task.Proposed = []state.Proposal{
		{N: 1, Title: "Mend @ada's notes\nnow", Body: "Closes #1. @bob, the key is " + Secret + ".", By: w.Person("ada")},
	}
}

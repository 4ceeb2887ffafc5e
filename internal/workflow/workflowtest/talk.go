package workflowtest

import (
	"github.com/errand-bot/errand/state"
)

// Sent takes the status job and stores what it says.
func (w *World) Sent(change ...func(*state.Job)) state.Event {
	w.T.Helper()
	e := w.Do(state.JobStatus, change...)
	if e.Kind == state.EventStatusSent {
		w.Task.Status = *e.Status
	}
	return e
}

// Proposed has a task whose agent proposed an issue that ada wants.
func (w *World) Proposed() {
	w.T.Helper()
	w.Task.Proposed = []state.Proposal{{N: 1, Title: "Mend @ada's notes\nnow", Body: "Closes #1. @bob, the key is " + Secret + ".", By: w.Person("ada")}}
}

package state

import (
	"slices"
	"testing"
)

// TestAnAnswerIsNoTicketKey: what a person answers is a sentence; the job start looks for the key in
// it, as in everything else that people said.
func TestAnAnswerIsNoTicketKey(t *testing.T) {
	t.Parallel()
	task := &Task{
		Key: task1, Gen: 1, Phase: PhaseAwaitingAnswer, Resume: PhaseQueued, Step: JobStart, Settings: DefaultSettings(),
		Question: &Question{Kind: AskKey, Text: "[A-Z]+-[0-9]+"},
	}
	e := Event{Kind: EventCommented, Task: task1, By: writer, Permission: PermissionWrite, Comment: &Comment{ID: 7, Body: "It is ABC-5, I think."}}
	ch := Next(task, e, DefaultPolicy())
	starts := slices.ContainsFunc(ch.Jobs, func(j Job) bool { return j.Kind == JobStart })
	if ch.Task.Ticket != "" || ch.Task.Phase != PhaseQueued || !starts {
		t.Errorf("ticket %q, phase %s, jobs %v", ch.Task.Ticket, ch.Task.Phase, ch.Jobs)
	}
}

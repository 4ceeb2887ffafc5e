package machine

import (
	"slices"
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// TestAnswerIsNotATicketKey: a person's answer is a sentence; the job start searches it for the key, like all other
// text by people.
func TestAnswerIsNotATicketKey(t *testing.T) {
	t.Parallel()
	task := &state.Task{
		Key: state.TaskKey{Repo: 7, Issue: 1}, Gen: 1, TaskPhase: state.TaskPhase{Phase: state.PhaseAwaitingAnswer, Resume: state.PhaseQueued, Step: state.JobStart}, TaskIssue: state.TaskIssue{Settings: settings.Default()},
		TaskPlans: state.TaskPlans{Question: &state.Question{Kind: state.AskKey, Text: "[A-Z]+-[0-9]+"}},
	}
	e := event.Event{Task: state.TaskKey{Repo: 7, Issue: 1}, By: writer, Permission: state.PermissionWrite, Payload: event.Commented{Comment: &state.Comment{ID: 7, Body: "It is ABC-5, I think."}}}
	ch := Next(task, e, DefaultPolicy())
	starts := slices.ContainsFunc(ch.Jobs, func(j state.Job) bool { return j.Kind == state.JobStart })
	if ch.Task.Ticket != "" || ch.Task.Phase != state.PhaseQueued || !starts {
		t.Errorf("got ticket %q, phase %s, jobs %v", ch.Task.Ticket, ch.Task.Phase, ch.Jobs)
	}
}

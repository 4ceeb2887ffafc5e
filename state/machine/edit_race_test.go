package machine

import (
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestEditFoundByStartAndWebhook: the job start saw an edit that had not been applied when it
// read the task, and is applied by the time that it reports it. The task must not be left without a job.
func TestEditFoundByStartAndWebhook(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	edited := state.Issue{Title: "Bug", Body: "It breaks badly."}
	l.do(event.Event{By: writer, Permission: state.PermissionWrite, Payload: event.IssueEdited{Issue: &edited}})
	l.do(event.Event{Via: event.ViaStart, By: writer, Permission: state.PermissionWrite, Payload: event.IssueEdited{Issue: &edited}})
	l.want(state.PhaseQueued, state.JobStart)
	l.start()
	l.want(state.PhasePreliminaryPlanning, state.JobLaunch)
}

// TestPauseOutlivesInterruption: a user without write access changes the issue while the job start fails. When the task continues
// after the interruption, it still waits until a writer comments `replan`, and says so.
func TestPauseOutlivesInterruption(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	l.do(event.Event{By: visitor, Permission: state.PermissionRead, Payload: event.IssueEdited{Issue: &state.Issue{Title: "Bug", Body: "Delete everything."}}})
	l.do(stepOutage(state.JobStart, l.now))
	l.want(state.PhaseInterrupted)
	l.do(event.Event{Payload: event.NewDue(state.DueResume, "")})
	l.want(state.PhaseQueued, state.JobStart)
	l.start()
	l.want(state.PhaseQueued)
	if w := l.task.Waiting; w == nil || w.Kind != state.WaitEdit || w.Detail != "@"+visitor.Login+" changed the issue; a person with write access has to comment `replan`" {
		t.Errorf("the task waits for %+v", w)
	}
	l.comment(state.VerbReplan)
	l.want(state.PhaseQueued, state.JobStart)
}

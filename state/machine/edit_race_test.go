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

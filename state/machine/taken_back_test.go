package machine

import (
	"testing"

	"github.com/errand-bot/errand/state"
)

// TestStartFindsWhatAWebhookToldMeanwhile: the job start saw an edit that had not been applied when it
// read the task, and is applied by the time that it reports it. The task must not be left without a job.
func TestStartFindsWhatAWebhookToldMeanwhile(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	edited := state.Issue{Title: "Bug", Body: "It breaks badly."}
	l.do(state.Event{Kind: state.EventIssueEdited, By: writer, Permission: state.PermissionWrite, Issue: &edited})
	l.do(state.Event{Kind: state.EventIssueEdited, Via: state.ViaStart, By: writer, Permission: state.PermissionWrite, Issue: &edited})
	l.want(state.PhaseQueued, state.JobStart)
	l.start()
	l.want(state.PhasePreliminaryPlanning, state.JobLaunch)
}

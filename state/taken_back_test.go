package state

import "testing"

// TestStartFindsWhatAWebhookToldMeanwhile: the job start saw an edit that had not been applied when it
// read the task, and is applied by the time that it reports it. The task must not be left without a job.
func TestStartFindsWhatAWebhookToldMeanwhile(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.trigger()
	edited := Issue{Title: "Bug", Body: "It breaks badly."}
	l.do(Event{Kind: EventIssueEdited, By: writer, Permission: PermissionWrite, Issue: &edited})
	l.do(Event{Kind: EventIssueEdited, Via: ViaStart, By: writer, Permission: PermissionWrite, Issue: &edited})
	l.want(PhaseQueued, JobStart)
	l.start()
	l.want(PhasePreliminaryPlanning, JobLaunch)
}

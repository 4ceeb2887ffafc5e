package store

import (
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/machine"
)

// The next edit of the status comment is often queued while the previous one is being sent, when the time from which it
// must keep its distance is not known yet.
func TestStatusQueuedDuringAnEditKeepsItsDistance(t *testing.T) {
	t.Parallel()
	s := newTestStore(t)
	gap := machine.DefaultPolicy().StatusGap
	s.next = func(_ *state.Task, e event.Event, _ machine.Policy) machine.Change {
		job := state.Job{Kind: state.JobStatus, Lane: state.LaneStatus, Key: "status"}
		if sent, ok := e.Payload.(event.StatusSent); ok {
			job.NotBefore = sent.Status.At.Add(gap)
		}
		return machine.Change{Jobs: []state.Job{job}}
	}
	s.mustApply(t, spelled(task1, ""), Ack{})
	sending := s.mustClaim(t, state.LaneStatus)
	s.mustApply(t, spelled(task1, ""), Ack{}) // something that people can see
	s.advance(time.Second)
	sent := spelled(task1, "")
	sent.Payload = event.StatusSent{Status: state.StatusComment{At: s.time()}}
	s.mustApply(t, sent, Ack{Job: sending.ID, Epoch: sending.Epoch})
	s.wantClaims(t, "at once")
	s.advance(gap - time.Second)
	s.wantClaims(t, "within the gap")
	s.advance(time.Second)
	s.wantClaims(t, "after the gap", "status")
}

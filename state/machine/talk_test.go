package machine

import (
	"slices"
	"testing"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestUnvettedCommentsDelayApprovalBriefly: strangers who keep talking delay an approval for a moment only.
func TestUnvettedCommentsDelayApprovalBriefly(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.toPreliminary()
	p := l.task.NewestPlan()
	k := &state.Candidate{Approval: state.Approval{Kind: p.Kind, Hash: p.Hash, By: writer, Permission: state.PermissionWrite, Via: state.ViaReaction, Given: l.now}}
	for n := range 100 {
		jobs := l.do(event.Event{Context: event.Context{Unvetted: true}, Payload: event.Approved{Candidate: *k}})
		if l.task.Phase == state.PhasePlanning {
			if n != maxApprovalDelays {
				t.Errorf("got a valid approval after %d checks", n)
			}
			return
		}
		i := slices.IndexFunc(jobs, func(j state.Job) bool { return j.Kind == state.JobApprove })
		if i < 0 {
			t.Fatal("got no check of the approval, want one")
		}
		k = jobs[i].Candidate
	}
	t.Error("got no valid approval, want one")
}

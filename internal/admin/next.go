package admin

import (
	"fmt"

	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

// next describes in a sentence a task's next step, or who must act.
func next(t *state.Task) string {
	if t.Locked && !t.Ended() {
		return "The conversation is locked; comments wait until somebody unlocks it. " + nextStep(t)
	}
	return nextStep(t)
}

func nextStep(t *state.Task) string {
	if w := t.Waiting; w != nil && !t.Ended() {
		return "Waits for " + words.Wait(w.Kind) + "."
	}
	switch t.Phase {
	case state.PhaseAwaitingPreliminaryApproval, state.PhaseAwaitingPlanApproval, state.PhaseAwaitingPublishApproval:
		return nextApproval(t)
	case state.PhaseAwaitingAnswer:
		return "Somebody with write access has to answer a question."
	case state.PhasePROpen:
		if t.PR != nil && t.PR.Ready {
			return "The pull request is approved; somebody has to merge it."
		}
		return "Somebody has to review the pull request."
	case state.PhaseInterrupted:
		return "Continues automatically later."
	case state.PhaseFailed:
		return "Somebody has to write `retry`."
	case state.PhaseDone, state.PhaseCancelled:
		return "Over."
	}
	if r := t.Run; r != nil && r.State == state.RunStopping {
		return "The run is being stopped and its work saved."
	}
	if t.Run != nil && t.Run.State == state.RunActive {
		return "The agent is at work."
	}
	if t.Step != "" {
		return "Now: " + words.Step(t.Step) + "."
	}
	return "Continues automatically."
}

func nextApproval(t *state.Task) string {
	p := t.NewestPlan()
	switch {
	case p == nil || !p.Posted():
		return "It is about to be posted."
	case p.Stale != "" && p.Publish != nil:
		return "The posted changes can no longer be approved; somebody has to write `retry`."
	case p.Stale != "":
		return "The plan can no longer be approved; somebody has to ask for a new revision."
	}
	if p.Publish != nil {
		return fmt.Sprintf("Revision %d of the changes waits for a 👍 from somebody with write access before it is published.", p.Revision)
	}
	return fmt.Sprintf("Revision %d waits for a 👍 from somebody with write access.", p.Revision)
}

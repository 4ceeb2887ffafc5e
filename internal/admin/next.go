package admin

import (
	"fmt"

	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

// next says in a sentence what happens next with a task, or what is awaited from whom.
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
		return "A person with write permission has to answer a question."
	case state.PhasePROpen:
		if t.PR != nil && t.PR.Ready {
			return "The pull request is approved; somebody has to merge it."
		}
		return "Somebody has to review the pull request."
	case state.PhaseInterrupted:
		return "Goes on by itself after a while."
	case state.PhaseFailed:
		return "Somebody has to write `retry`."
	case state.PhaseDone, state.PhaseCancelled:
		return "Over."
	}
	if r := t.Run; r != nil && r.State == state.RunStopping {
		return "The run is being stopped, and its work saved."
	}
	if t.Run != nil && t.Run.State == state.RunActive {
		return "The agent is at work."
	}
	if t.Step != "" {
		return "Now: " + words.Step(t.Step) + "."
	}
	return "Goes on by itself."
}

func nextApproval(t *state.Task) string {
	p := t.NewestPlan()
	switch {
	case p == nil || !p.Posted():
		return "It is about to be posted."
	case p.Stale != "" && p.Publish != nil:
		return "The changes as they were shown can no longer be approved; somebody has to write `retry`."
	case p.Stale != "":
		return "The plan can no longer be approved; somebody has to ask for a new revision."
	}
	if p.Publish != nil {
		return fmt.Sprintf("The changes, revision %d, wait for a 👍 by a person with write permission before they are published.", p.Revision)
	}
	return fmt.Sprintf("Revision %d waits for a 👍 by a person with write permission.", p.Revision)
}

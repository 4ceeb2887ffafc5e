package admin

import (
	"fmt"

	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

// nextStep describes in a sentence a task's next step, or who must act.
func nextStep(t *state.Task) string {
	if t.Locked && !t.Ended() {
		return "The conversation is locked; comments wait until somebody unlocks it. " + unlockedNextStep(t)
	}
	return unlockedNextStep(t)
}

// unlockedNextStep is nextStep for a task whose conversation is not locked.
func unlockedNextStep(t *state.Task) string {
	switch t.Awaited() {
	case state.AwaitedCondition:
		return "Waits for " + words.Waiting(t.Waiting) + "."
	case state.AwaitedPosting:
		return "It is about to be posted."
	case state.AwaitedRevision:
		if t.NewestPlan().Publish != nil {
			return "The posted changes can no longer be approved; somebody has to write `retry`."
		}
		return "The plan can no longer be approved; somebody has to ask for a new revision."
	case state.AwaitedApproval:
		return nextApproval(t.NewestPlan())
	case state.AwaitedAnswer:
		return "Somebody with write access has to answer a question."
	case state.AwaitedRestart:
		return "Somebody with write access has to write `retry`, or how to continue."
	case state.AwaitedComment:
		return "Somebody with write access has to comment."
	case state.AwaitedMerge:
		return "The pull request is approved; somebody has to merge it."
	case state.AwaitedReview:
		return "Somebody has to review the pull request."
	case state.AwaitedReopening:
		return "Somebody has to reopen the pull request, or to write `retry`."
	case state.AwaitedResumption:
		return "Continues automatically later."
	case state.AwaitedBudget:
		return "A cap is reached; somebody with write access has to raise it by `budget`, or write `retry`."
	case state.AwaitedRetry:
		return "Somebody has to write `retry`."
	case state.AwaitedEnd:
		if !t.Purged.IsZero() {
			return "The task has ended, and its texts were purged: it cannot be continued, only begun again."
		}
		return "The task has ended."
	}
	return nextWork(t)
}

// nextWork describes the current work of errand or the agent.
func nextWork(t *state.Task) string {
	switch r := t.Run; {
	case r != nil && r.State == state.RunStopping:
		return "The run is being stopped and its work saved."
	case r != nil && r.State == state.RunLaunching:
		return fmt.Sprintf("Run %d is about to start.", r.Seq)
	case r != nil && r.State == state.RunActive:
		return "The agent is at work."
	case t.Step != "":
		return "Now: " + words.Step(t.Step) + "."
	}
	return "Continues automatically."
}

func nextApproval(p *state.Plan) string {
	if p.Publish != nil {
		return fmt.Sprintf("Revision %d of the changes waits for a 👍 from somebody with write access before it is published.", p.Revision)
	}
	return fmt.Sprintf("Revision %d waits for a 👍 from somebody with write access.", p.Revision)
}

// awaits names what the task waits for, in two or three words; empty if it continues without people. nextStep has the sentence.
func awaits(t *state.Task) string {
	switch t.Awaited() {
	case state.AwaitedCondition:
		if t.Waiting.Place > 0 {
			return fmt.Sprintf("%s (%s in the queue)", words.Wait(t.Waiting.Kind), words.Ordinal(t.Waiting.Place))
		}
		return words.Wait(t.Waiting.Kind)
	case state.AwaitedRevision:
		return "a new revision"
	case state.AwaitedApproval:
		return "an approval"
	case state.AwaitedAnswer:
		return "an answer"
	case state.AwaitedComment:
		return "a comment"
	case state.AwaitedMerge:
		return "a merge"
	case state.AwaitedReview:
		return "a review"
	case state.AwaitedReopening:
		return "reopening or retry"
	case state.AwaitedBudget:
		return "a higher cap"
	case state.AwaitedRestart, state.AwaitedRetry:
		return "a retry"
	}
	return ""
}

package state

// Awaited is what has to happen next for a task to go on: an event, or an action of any person with write access. It
// does not name a particular person. It is never stored.
type Awaited int

// Values of Awaited. All but the first four and AwaitedEnd require a person with write access.
const (
	// AwaitedCondition is the end of Task.Waiting, such as a limit.
	AwaitedCondition Awaited = iota
	// AwaitedRun is work of errand or of the agent.
	AwaitedRun
	// AwaitedResumption is an interrupted task that continues automatically.
	AwaitedResumption
	// AwaitedPosting is the comment with the newest plan or changes, which is about to be posted.
	AwaitedPosting
	// AwaitedApproval is an approval of the newest plan or changes, and AwaitedRevision a request for others because
	// they can no longer be approved.
	AwaitedApproval
	AwaitedRevision
	// AwaitedAnswer is an answer to Task.Question, AwaitedRestart a decision how a stopped task continues, and
	// AwaitedComment any comment.
	AwaitedAnswer
	AwaitedRestart
	AwaitedComment
	// AwaitedReview is a review of the pull request, and AwaitedMerge its merge.
	AwaitedReview
	AwaitedMerge
	// AwaitedReopening is a decision whether to reopen the closed pull request.
	AwaitedReopening
	// AwaitedRetry is a command after a failure, and AwaitedBudget one after a cap was reached: a higher cap, or a retry.
	AwaitedRetry
	AwaitedBudget
	// AwaitedEnd is nothing: the task has ended.
	AwaitedEnd
)

// Awaited returns what has to happen next, but not who has to do it. Comments and pages both describe its result.
func (t *Task) Awaited() Awaited {
	if t.Waiting != nil && !t.Ended() {
		return AwaitedCondition
	}
	switch t.Phase {
	case PhaseAwaitingPreliminaryApproval, PhaseAwaitingPlanApproval, PhaseAwaitingPublishApproval:
		return t.awaitedApproval()
	case PhaseAwaitingAnswer:
		return t.awaitedAnswer()
	case PhasePROpen:
		if t.PR != nil && t.PR.Ready {
			return AwaitedMerge
		}
		return AwaitedReview
	case PhasePRClosed:
		if t.Step == JobReopen {
			return AwaitedRun
		}
		return AwaitedReopening
	case PhaseInterrupted:
		return AwaitedResumption
	case PhaseFailed:
		if t.End != nil && t.End.Class == ClassBudget {
			return AwaitedBudget
		}
		return AwaitedRetry
	case PhaseDone, PhaseCancelled:
		return AwaitedEnd
	}
	return AwaitedRun
}

// IsHeldUp reports whether the task would be at work if it did not wait for something other than people: neither errand
// nor an agent works for it.
func (t *Task) IsHeldUp() bool {
	return t.Waiting != nil && (t.Phase.Working() || t.Phase == PhaseInterrupted) && (t.Run == nil || t.Run.State == RunLaunching)
}

func (t *Task) awaitedApproval() Awaited {
	switch p := t.NewestPlan(); {
	case p == nil || !p.Posted():
		return AwaitedPosting
	case p.Stale != "":
		return AwaitedRevision
	}
	return AwaitedApproval
}

func (t *Task) awaitedAnswer() Awaited {
	switch {
	case t.Question == nil:
		return AwaitedComment
	case t.Question.Kind == AskStopped:
		return AwaitedRestart
	}
	return AwaitedAnswer
}

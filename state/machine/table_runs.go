package machine

import (
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// runRows are the rows of the supervisors' reports. Events of superseded runs fit no row.
var runRows = []Row{
	{
		From: running, On: event.KindProgress,
		If: "messages wait for the agent, which executes no tool", when: all(isActiveRun, isBetweenTools),
		To: same, do: interruptBetweenTools,
		Doc: "the run is stopped, and its session continues with the messages",
	},
	{
		From: running, On: event.KindDue,
		If: "messages to the agent", when: isSteering,
		To: same, do: readMessages,
		Doc: "they are read again; the run is stopped at the next moment without a tool, at the latest a minute after the first message",
	},
	{
		From: open, On: event.KindProgress,
		when: isActiveRun,
		To:   same, do: storeProgress,
		Doc: "last activity, session and money are stored",
	},
	{
		From: running, On: event.KindToolCalled,
		If: "the run may", when: acceptsCall,
		To: same, do: storeCall,
		Doc: "the agent's tool call is stored: a note, a proposed issue, a question, the end of the run",
	},
	{
		From: running, On: event.KindDue,
		If: "a run that asked a question still continues", when: all(isDue(state.DueQuestion), continuesAfterQuestion),
		To: []state.Phase{state.PhaseAwaitingAnswer}, do: stopAndPostQuestion,
		Doc: "it is stopped, its work saved, and the question posted",
	},
	{
		From: running, On: event.KindDue,
		If: "a run that was refused the model because of its turns still continues", when: all(isDue(state.DueTurns), continuesWithoutTurns),
		To: []state.Phase{state.PhaseFailed}, do: stopWithoutTurns,
		Doc: "it is stopped, its work saved; the hint names more turns",
	},
	{
		From: anyPhase, On: event.KindModelCalled,
		If: "the run is the task's", when: func(c *change) bool { return runOfEvent(c) != nil },
		To: same, do: addCost,
		Doc: "added to the cost of run and task",
	},
	{
		From: anyPhase, On: event.KindRunEnded,
		If: "it was ordered to stop, or the task has ended", when: ifActiveRun(isRunStopping),
		To: same, do: closeRun,
		Doc: "the run is stored",
	},
	{
		From: anyPhase, On: event.KindRunEnded,
		If:   "it was dropped before its result was known",
		when: func(c *change) bool { return !isActiveRun(c) && droppedRun(c) != nil },
		To:   same, do: storeDroppedResult,
		Doc: "its cost is counted",
	},
	{
		From: running, On: event.KindRunEnded,
		If: "the session to resume was not there",
		when: ifActiveRun(func(c *change) bool {
			return c.result.Status == state.StatusNoSession && c.t.Run.Session != "" && !reachedRunLimit(c)
		}),
		To: same, do: repeatWithoutSession,
		Doc: "repeated without it, with the conversation so far in the prompt",
	},
	{
		From: running, On: event.KindRunEnded,
		If: "its conversation became too long, for the first time", when: ifActiveRun(isFirstOverflow),
		To: same, do: restartSession,
		Doc: "repeated in a new session, with the conversation so far in the prompt",
	},
	{
		From: running, On: event.KindRunEnded,
		If:   "its conversation became too long again",
		when: ifActiveRun(func(c *change) bool { return c.result.Status == state.StatusContextOverflow }),
		To:   []state.Phase{state.PhaseFailed}, do: failRun,
		Doc: "the work is saved; reason and hint are posted",
	},
	{
		From: running, On: event.KindRunEnded,
		If: "it, or its task, has reached a cap", when: ifActiveRun(isAtCap),
		To: []state.Phase{state.PhaseFailed}, do: failRun,
		Doc: "the work is saved; a comment names the cap and how to raise it",
	},
	{
		From: running, On: event.KindRunEnded,
		If: "all tasks together have reached a cap, or the model's provider has a limit or refuses the key", when: ifActiveRun(hasTemporaryDenial),
		To: []state.Phase{state.PhaseInterrupted}, do: waitForLimit,
		Doc: "continues automatically afterwards",
	},
	{
		From: running, On: event.KindRunEnded,
		If: "a limit, a lost VM, an overloaded model", when: ifActiveRun(isClass(state.RunRetryable)),
		To: []state.Phase{state.PhaseInterrupted, state.PhaseFailed}, do: retryRunLater,
		Doc: "retried automatically after a while, a limited number of times",
	},
	{
		From: running, On: event.KindRunEnded,
		If: "anything else that is not success", when: ifActiveRun(not(isClass(state.RunSucceeded))),
		To: []state.Phase{state.PhaseFailed}, do: failRun,
		Doc: "the work is saved; reason and hint are posted",
	},
	{
		From: running, On: event.KindRunEnded,
		If: "it did not get messages that came at its end", when: ifActiveRun(missesMessages),
		To: same, do: continueWithMessages,
		Doc: "its session continues with the messages",
	},
	{
		From: running, On: event.KindRunEnded,
		If: "its closing block cannot be read, for the first time", when: ifActiveRun(hasUnreadableBlock),
		To: same, do: launchRepair,
		Doc: "the agent is asked again for the block alone, in the same session",
	},
	{
		From: building, On: event.KindRunEnded,
		If: "checks", when: ifActiveRun(isCheckRun),
		To: []state.Phase{Same, state.PhaseImplementing, state.PhaseAddressingReview}, do: applyChecks,
		Doc: "passed: published; failed: the agent gets the ends of the outputs, a limited number of times",
	},
	{
		From: running, On: event.KindRunEnded,
		If: "it read comments on its question and leaves the question open", when: ifActiveRun(leavesQuestion),
		To: []state.Phase{state.PhaseAwaitingAnswer}, do: reopenQuestion,
		Doc: "the answer, if there is one, is posted, else 👀 becomes 👍; the question waits for an answer again",
	},
	{
		From: running, On: event.KindRunEnded,
		If: "it asks a question", when: ifActiveRun(asksQuestion),
		To: []state.Phase{state.PhaseAwaitingAnswer}, do: postAgentQuestion,
		Doc: "the question is posted",
	},
	{
		From: planning, On: event.KindRunEnded,
		If: "nothing is to be built", when: ifActiveRun(isReport),
		To: []state.Phase{state.PhaseDone}, do: endWithReport,
		Doc: "the answer is a comment, and the task is done",
	},
	{
		From: planning, On: event.KindRunEnded,
		If: "it considered comments and leaves the plan as it is", when: ifActiveRun(leavesPlan),
		To: awaiting, do: keepPlan,
		Doc: "the answer, if there is one, is posted, else 👀 becomes 👍; the revision can still be approved, and held approvals are checked",
	},
	{
		From: planning, On: event.KindRunEnded,
		If: "something trusted was said meanwhile", when: ifActiveRun(isPlanOutdated),
		To: same, do: reviseBeforePosting,
		Doc: "revised before it is posted",
	},
	{
		From: planning, On: event.KindRunEnded,
		when: isActiveRun,
		To:   awaiting, do: createPlan,
		Doc: "the new revision is posted and waits for approval",
	},
	{
		From: building, On: event.KindRunEnded,
		when: isActiveRun,
		To:   same, do: collectWork,
		Doc: "the changeset is read from the VM",
	},
}

// ifActiveRun returns the condition that the event is about the current run and f holds.
func ifActiveRun(f func(*change) bool) func(*change) bool { return all(isActiveRun, f) }

// publishRows are the rows from a changeset to the pull request.
var publishRows = []Row{
	{
		From: building, On: event.KindCollected,
		If: "the push gate refuses", when: func(c *change) bool { return len(of[event.Collected](c).Refusals) > 0 },
		To: []state.Phase{state.PhaseAwaitingAnswer}, do: postRefusals,
		Doc: "rule, path and remedy are posted",
	},
	{
		From: []state.Phase{state.PhaseImplementing}, On: event.KindCollected,
		If: "no net change", when: isUnchanged,
		To: []state.Phase{state.PhaseAwaitingAnswer}, do: askAboutNoChanges,
		Doc: "reported in a comment; no failure",
	},
	{
		From: []state.Phase{state.PhaseAddressingReview}, On: event.KindCollected,
		If: "no net change", when: isUnchanged,
		To: same, do: func(c *change) { c.enqueueStep(state.JobAnswer) },
		Doc: "the threads are answered without a commit",
	},
	{
		From: building, On: event.KindCollected,
		If: "a push meanwhile", when: isBehind,
		To: []state.Phase{Same, state.PhaseInterrupted}, do: rebaseFirst,
		Doc: "the VM's commits are rebased onto it and judged again",
	},
	{
		From: building, On: event.KindCollected,
		If: "the repository has checks", when: wantsChecks,
		To: same, do: storeAndCheck,
		Doc: "the checks run on the changeset's tree",
	},
	{
		From: building, On: event.KindCollected,
		To: same, do: storeAndPublish,
		Doc: "published as data, or shown first",
	},
	{
		From: building, On: event.KindDiffReady,
		If:   "something trusted was said meanwhile",
		when: all(isCurrentDiff, func(c *change) bool { return len(c.t.PendingFeedback()) > 0 }, not(reachedRunLimit)),
		To:   same, do: func(c *change) { c.launchRun(runOfPhase(c.t.Phase)) },
		Doc: "the agent considers it before the changes are shown",
	},
	{
		From: building, On: event.KindDiffReady,
		when: isCurrentDiff,
		To:   asking, do: createPublishRevision,
		Doc: "the changes are posted and wait for approval",
	},
	{
		From: building, On: event.KindCommitted,
		when: isCurrentWork,
		To:   same, do: enqueueMove,
		Doc: "the objects are on GitHub; the branch is moved next",
	},
	{
		From: building, On: event.KindBranchAhead,
		If: "not too often", when: mayRebase,
		To: same, do: func(c *change) { rebase(c, of[event.BranchAhead](c).Head) },
		Doc: "after a push, the VM's commits are rebased onto it and judged again",
	},
	{
		From: building, On: event.KindBranchAhead,
		To: []state.Phase{state.PhaseInterrupted}, do: func(c *change) { rebaseLater(c, of[event.BranchAhead](c).Head) },
		Doc: "repeated pushes: retried after a while",
	},
	{
		From: building, On: event.KindConflict,
		If: "after too many runs without a person's response", when: reachedRunLimit,
		To: []state.Phase{state.PhaseFailed}, do: failAtRunLimit,
		Doc: "reason and hint are posted",
	},
	{
		From: building, On: event.KindConflict,
		To: []state.Phase{Same, state.PhaseAwaitingAnswer}, do: askToResolve,
		Doc: "a round for the agent; after several, people are asked",
	},
	{
		From: []state.Phase{state.PhaseImplementing}, On: event.KindBranchMoved,
		If: "no pull request yet", when: all(isCurrentWork, not(hasPR)),
		To: same, do: func(c *change) { storeHead(c); c.enqueueStep(state.JobOpenPR) },
		Doc: "the pull request is opened",
	},
	{
		From: building, On: event.KindBranchMoved,
		when: isCurrentWork,
		To:   same, do: func(c *change) { storeHead(c); c.enqueueStep(state.JobAnswer) },
		Doc: "the threads are answered",
	},
	{
		From: parked, On: event.KindBranchMoved,
		If: "the pull request was closed during the push", when: isCurrentWork,
		To: same, do: storeLateHead,
		Doc: "the branch's new head is stored",
	},
	{
		From: building, On: event.KindPROpened,
		To: []state.Phase{state.PhasePROpen}, do: waitForReview,
		Doc: "the pull request waits for people",
	},
	{
		From: building, On: event.KindPRFound,
		If: "no pull request is known", when: not(hasPR),
		To: []state.Phase{state.PhasePROpen}, do: continueFoundPR,
		Doc: "errand was restored from a backup, and opened it after that; unpublished work is saved",
	},
	{
		From: []state.Phase{state.PhaseAddressingReview}, On: event.KindAnswersFound,
		If: "the run is about to be launched, or its work to be rebased", when: func(c *change) bool { return isLaunching(c) || isRebasing(c) },
		To: []state.Phase{Same, state.PhasePROpen}, do: continueUnanswered,
		Doc: "errand was restored from a backup, and answered them after that; the run, or another round, addresses the rest, and without a rest the round is over",
	},
	{
		From: []state.Phase{state.PhaseAwaitingAnswer, state.PhaseFailed, state.PhaseCancelled, state.PhaseDone},
		On:   event.KindPROpened,
		If:   "the task changed course while it was being opened",
		when: func(c *change) bool { return c.t.PR == nil && c.t.Branch.Head != "" },
		To:   same, do: storePR,
		Doc: "it is noted, so that people find it",
	},
	{
		From: anyPhase, On: event.KindPROpened,
		If: "the task began anew while it was being opened", when: func(c *change) bool { return c.t.PR == nil && c.t.Branch.Head == "" },
		To: same, do: replaceLatePR,
		Doc: "it is closed, with a link to the work",
	},
	{
		From: building, On: event.KindThreadsAnswered,
		If:   "the answers are in a pending review",
		when: func(c *change) bool { return c.t.Work != nil && of[event.ThreadsAnswered](c).Review != "" },
		To:   same, do: submitReview,
		Doc: "the review is submitted",
	},
	{
		From: building, On: event.KindThreadsAnswered,
		To: []state.Phase{state.PhasePROpen, state.PhaseAddressingReview}, do: endRound,
		Doc: "the round is over; feedback that arrived meanwhile starts the next one",
	},
	{
		From: open, On: event.KindDue,
		If: "no webhook has reported a check of the head", when: areChecksUnread,
		To: same, do: readChecks,
		Doc: "its checks are read: some may have been reported before the head was known, and a required one may never be",
	},
	{
		From: open, On: event.KindDue,
		If: "no check of the draft may have started for a while", when: isDraftLate,
		To: same, do: func(*change) {},
		Doc: "it is marked ready for review, at once or after the present work, if no check has started",
	},
	{
		From: building, On: event.KindMergePending,
		when: all(hasPR, isCurrentWork),
		To:   same, do: preventMerge,
		Doc: "a comment announces that errand prevents the merge; then the branch is moved",
	},
	{
		From: open, On: event.KindPRChanged,
		when: hasPR,
		To:   same, do: storePRChange,
		Doc: "whether it is a draft is stored; if nothing is missing, the pull request is marked ready or merged",
	},
	{
		From: anyPhase, On: event.KindPRFinished,
		when: hasPR,
		To:   same, do: storeFinish,
		Doc: "the result is stored; a refusal is reported once",
	},
	{
		From: []state.Phase{state.PhasePROpen}, On: event.KindChecksExamined,
		If: "they are the head's, and nobody has been asked to take over", when: isExamined,
		To: []state.Phase{Same, state.PhaseAddressingReview}, do: applyExamination,
		Doc: "errand has checks run again, waits for them, begins a round that repairs the others, or asks people to take over",
	},
	{
		From: open, On: event.KindBaseMoved,
		To: same, do: noteBaseMoved,
		Doc: "the branch is compared with its base, a moment later or after the present work",
	},
	{
		From: []state.Phase{state.PhasePROpen}, On: event.KindBaseRead,
		If: "they conflict, and errand has not tried too often", when: all(hasPR, isBaseResult(event.BaseConflict), not(isOutdatedRead), mayResolve),
		To: []state.Phase{state.PhaseAddressingReview}, do: resolveBaseConflict,
		Doc: "a round begins, in which the agent merges the base",
	},
	{
		From: open, On: event.KindBaseRead,
		when: hasPR,
		To:   same, do: storeBaseRead,
		Doc: "the new head is stored if GitHub updated the branch; a command is answered, and a refusal reported once",
	},
	{
		From: []state.Phase{state.PhasePROpen}, On: event.KindGathered,
		If: "there is something to do", when: all(hasNewFeedback, not(reachedRunLimit)),
		To: []state.Phase{state.PhaseAddressingReview}, do: beginRound,
		Doc: "a round begins",
	},
	{
		From: asking, On: event.KindGathered,
		If: "there is something to do", when: hasNewFeedback,
		To: []state.Phase{state.PhaseAddressingReview}, do: reviseForReview,
		Doc: "a change request: the agent addresses it, and the new changes are shown",
	},
	{
		From: open, On: event.KindGathered,
		To: same, do: keepFeedback,
		Doc: "kept for the next round",
	},
}

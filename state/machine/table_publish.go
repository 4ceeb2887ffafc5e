package machine

import (
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

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
		when: all(isCurrentDiff, func(c *change) bool { return len(c.pendingFeedback()) > 0 }, not(reachedRunLimit)),
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
		If: "the run is about to be launched", when: isLaunching,
		To: []state.Phase{Same, state.PhasePROpen}, do: continueUnanswered,
		Doc: "errand was restored from a backup, and answered them after that; the run addresses the rest, and without a rest the round is over",
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
		From: []state.Phase{state.PhasePROpen}, On: event.KindChecksExamined,
		If: "they are the head's, and nobody has been asked to take over", when: isExamined,
		To: []state.Phase{Same, state.PhaseAddressingReview}, do: applyExamination,
		Doc: "errand waits for checks that run again, begins a round that repairs the others, or asks people to take over",
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

package machine

import "github.com/errand-bot/errand/state"

// publishRows are the rows from a changeset to the pull request.
var publishRows = []Row{
	{
		From: building, On: state.EventCollected,
		If: "the push gate refuses", when: func(c *change) bool { return len(c.e.Refusals) > 0 },
		To: []state.Phase{state.PhaseAwaitingAnswer}, do: refused,
		Doc: "rule, path and remedy are posted",
	},
	{
		From: []state.Phase{state.PhaseImplementing}, On: state.EventCollected,
		If: "no net change", when: nothingNew,
		To: []state.Phase{state.PhaseAwaitingAnswer}, do: noChanges,
		Doc: "reported in a comment; no failure",
	},
	{
		From: []state.Phase{state.PhaseAddressingReview}, On: state.EventCollected,
		If: "no net change", when: nothingNew,
		To: same, do: func(c *change) { c.work(state.JobAnswer) },
		Doc: "the threads are answered without a commit",
	},
	{
		From: building, On: state.EventCollected,
		If: "a push meanwhile", when: behind,
		To: []state.Phase{Same, state.PhaseInterrupted}, do: rebaseFirst,
		Doc: "the VM's commits are rebased onto it and judged again",
	},
	{
		From: building, On: state.EventCollected,
		If: "the repository has checks", when: wantsChecks,
		To: same, do: check,
		Doc: "the checks run on the changeset's tree",
	},
	{
		From: building, On: state.EventCollected,
		To: same, do: publish,
		Doc: "published as data, or shown first",
	},
	{
		From: building, On: state.EventShown,
		If:   "something trusted was said meanwhile",
		when: all(thisShown, func(c *change) bool { return len(c.untaken()) > 0 }, not(tooMany)),
		To:   same, do: func(c *change) { c.launchRun(runOfPhase(c.t.Phase)) },
		Doc: "the agent considers it before the changes are shown",
	},
	{
		From: building, On: state.EventShown,
		when: thisShown,
		To:   asking, do: shown,
		Doc: "the changes are posted and wait for approval",
	},
	{
		From: building, On: state.EventCommitted,
		when: thisWork,
		To:   same, do: committed,
		Doc: "the objects are on GitHub; the branch is moved next",
	},
	{
		From: building, On: state.EventOvertaken,
		If: "not too often", when: canRebase,
		To: same, do: func(c *change) { rebase(c, c.e.Head) },
		Doc: "after a push, the VM's commits are rebased onto it and judged again",
	},
	{
		From: building, On: state.EventOvertaken,
		To: []state.Phase{state.PhaseInterrupted}, do: func(c *change) { rebaseLater(c, c.e.Head) },
		Doc: "repeated pushes: retried after a while",
	},
	{
		From: building, On: state.EventConflict,
		If: "after too many runs without a person's response", when: tooMany,
		To: []state.Phase{state.PhaseFailed}, do: tooManyRuns,
		Doc: "reason and hint are posted",
	},
	{
		From: building, On: state.EventConflict,
		To: []state.Phase{Same, state.PhaseAwaitingAnswer}, do: conflict,
		Doc: "a round for the agent; after several, people are asked",
	},
	{
		From: []state.Phase{state.PhaseImplementing}, On: state.EventMoved,
		If: "no pull request yet", when: all(thisWork, not(hasPR)),
		To: same, do: func(c *change) { moved(c); c.work(state.JobOpenPR) },
		Doc: "the pull request is opened",
	},
	{
		From: building, On: state.EventMoved,
		when: thisWork,
		To:   same, do: func(c *change) { moved(c); c.work(state.JobAnswer) },
		Doc: "the threads are answered",
	},
	{
		From: building, On: state.EventPROpened,
		To: []state.Phase{state.PhasePROpen}, do: prOpened,
		Doc: "the pull request waits for people",
	},
	{
		From: []state.Phase{state.PhaseAwaitingAnswer, state.PhaseFailed, state.PhaseCancelled, state.PhaseDone},
		On:   state.EventPROpened,
		If:   "the task changed course while it was being opened",
		when: func(c *change) bool { return c.t.PR == nil && c.t.Branch.Head != "" },
		To:   same, do: func(c *change) { c.t.PR = c.e.PR },
		Doc: "it is noted, so that people find it",
	},
	{
		From: building, On: state.EventAnswered,
		To: []state.Phase{state.PhasePROpen, state.PhaseAddressingReview}, do: answered,
		Doc: "the round is over; feedback that arrived meanwhile starts the next one",
	},
	{
		From: []state.Phase{state.PhasePROpen}, On: state.EventGathered,
		If: "there is something to do", when: all(freshFeedback, not(tooMany)),
		To: []state.Phase{state.PhaseAddressingReview}, do: round,
		Doc: "a round begins",
	},
	{
		From: asking, On: state.EventGathered,
		If: "there is something to do", when: freshFeedback,
		To: []state.Phase{state.PhaseAddressingReview}, do: reviewedChanges,
		Doc: "a change request: the agent addresses it, and the new changes are shown",
	},
	{
		From: open, On: state.EventGathered,
		To: same, do: keepFeedback,
		Doc: "kept for the next round",
	},
}

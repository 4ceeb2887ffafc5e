package machine

import (
	"slices"

	"github.com/errand-bot/errand/state"
)

// peopleRows are the rows of people's actions other than commands.
var peopleRows = []Row{
	{
		On: state.EventTriggered,
		If: "by a user without the permission", when: not(allowed),
		To: same, do: refuseTrigger,
		Doc: "the trigger gets a 😕, nothing starts",
	},
	{
		On: state.EventTriggered,
		To: []state.Phase{state.PhaseQueued}, do: begin,
		Doc: "the task starts: 👀, a status comment, and a check of the repository",
	},
	{
		From: ended, On: state.EventTriggered,
		If: "by a writer, after the end", when: all(allowed, not(outdated)),
		To: []state.Phase{state.PhaseQueued}, do: begin,
		Doc: "the task starts again",
	},
	{
		From: open, On: state.EventTriggered,
		If: "by a user without the permission", when: not(allowed),
		To: same, do: ignore,
		Doc: "counted in the status comment",
	},
	{
		From: []state.Phase{state.PhaseFailed}, On: state.EventTriggered,
		To: resumed, do: retry,
		Doc: "like `retry`",
	},
	{
		From: open, On: state.EventTriggered,
		To: same, do: secondTrigger,
		Doc: "one task per issue: a second trigger is answered",
	},
	{
		From: open, On: state.EventUntriggered,
		If: "it was done before the task began", when: beforeBegin,
		To: same, do: func(*change) {},
		Doc: "none: the trigger is later",
	},
	{
		From: open, On: state.EventIssueClosed,
		If: "it was done before the task began, and the issue may be open again", when: beforeBegin,
		To: same, do: func(*change) {},
		Doc: "none: the trigger is later",
	},
	{
		From: open, On: state.EventUntriggered,
		If: "the assignment or label that started it", when: sameTrigger,
		To:  []state.Phase{state.PhaseCancelled},
		do:  func(c *change) { c.cancel("the " + takenBack(c.t.Trigger.Via) + " was removed" + by(c.e.By)) },
		Doc: "canceled; a running agent is stopped and its work saved",
	},
	{
		From: open, On: state.EventIssueClosed,
		If: "a pull request is open", when: func(c *change) bool { return hasPR(c) && c.e.Via != state.ViaConfirmed },
		To: same, do: func(c *change) { c.due(state.DueClosed, "issue", c.e.Now) },
		Doc: "the pull request is checked, because a merge closes the issue, too",
	},
	{
		From: open, On: state.EventIssueClosed,
		To: []state.Phase{state.PhaseCancelled}, do: func(c *change) { c.cancel("the issue was closed") },
		Doc: "the task is canceled",
	},
	{
		From: open, On: state.EventIssueGone,
		To: []state.Phase{state.PhaseCancelled}, do: gone,
		Doc: "canceled without a comment: the issue no longer exists",
	},
	{
		From: open, On: state.EventGone,
		To: []state.Phase{state.PhaseCancelled}, do: gone,
		Doc: "canceled without a comment: the App no longer has access",
	},
	{
		From: ended, On: state.EventBack,
		If:   "it ended because errand had no access",
		when: func(c *change) bool { return c.t.End != nil && c.t.End.Class == state.ClassAccess },
		To:   same, do: back,
		Doc: "a comment says so",
	},
	{
		From: anyPhase, On: state.EventRenamed,
		To: same, do: moveTo,
		Doc: "the repository's new name and its installation are stored",
	},
	{
		From: anyPhase, On: state.EventLocked,
		If: "it was open", when: func(c *change) bool { return !c.t.Locked },
		To: same, do: func(c *change) { c.t.Locked = true },
		Doc: "shown in the status comment; comments wait",
	},
	{
		From: anyPhase, On: state.EventUnlocked,
		If: "it was locked", when: func(c *change) bool { return c.t.Locked },
		To: same, do: func(c *change) { c.t.Locked = false },
		Doc: "comments that waited are posted",
	},
	{
		From: open, On: state.EventIssueEdited,
		If: "the text is as frozen", when: textAsFrozen,
		To: same, do: unpause,
		Doc: "a reverted edit ends the pause",
	},
	{
		From: slices.Concat([]state.Phase{state.PhaseQueued}, planning, awaiting), On: state.EventIssueEdited,
		If: "by a user without write access", when: not(allowed),
		To: same, do: outsiderEdit,
		Doc: "paused: the difference is shown until a writer comments `replan`",
	},
	{
		From: awaiting, On: state.EventIssueEdited,
		To: planning, do: refreezeAndRevise,
		Doc: "the new text is frozen and a new revision is made",
	},
	{
		From: slices.Concat([]state.Phase{state.PhaseQueued}, planning), On: state.EventIssueEdited,
		If: "by a writer, while the task was starting", when: func(c *change) bool { return c.e.Via == state.ViaStart },
		To: same, do: refreezeAndStart,
		Doc: "the new text is frozen, and everything is read again",
	},
	{
		From: slices.Concat([]state.Phase{state.PhaseQueued}, planning), On: state.EventIssueEdited,
		To: same, do: refreeze,
		Doc: "the new text is frozen; the plan under way is revised before it is posted",
	},
	{
		From: approving, On: state.EventPlanEdited,
		If: "a sweep found a ticked box", when: via(state.ViaSweep),
		To: same, do: unseenTick,
		Doc: "no approval, because it is unknown who ticked it: the box is cleared, with a comment",
	},
	{
		From: open, On: state.EventPlanEdited,
		If: "a sweep found a ticked box, and no plan waits for approval", when: via(state.ViaSweep),
		To: same, do: func(*change) {},
		Doc: "nothing",
	},
	{
		From: approving, On: state.EventPlanEdited,
		If: "only the approval box, ticked, by a writer", when: all(ticked, allowed),
		To: same, do: checkCandidate,
		Doc: "the tick is checked as an approval",
	},
	{
		From: open, On: state.EventPlanEdited,
		If: "only a tick, by a user who may not approve or where nothing waits", when: ticked,
		To: same, do: untick,
		Doc: "the tick is cleared",
	},
	{
		From: open, On: state.EventPlanEdited,
		If: "only ticked boxes", when: func(c *change) bool { return c.e.OnlyBoxes },
		To: same, do: func(*change) {},
		Doc: "nothing",
	},
	{
		From: open, On: state.EventPlanEdited,
		To: same, do: func(c *change) { c.stale("", state.StaleEdited) },
		Doc: "that revision can never be approved again",
	},
	{
		From: anyPhase, On: state.EventPlanDeleted,
		when: knowsComment,
		To:   same, do: commentDeleted,
		Doc: "later texts do not link to that comment; a revision can never be approved again",
	},
	{
		From: approving, On: state.EventThumb,
		If: "on a plan", when: func(c *change) bool { return c.e.Candidate != nil },
		To: same, do: checkCandidate,
		Doc: "the 👍 is checked as an approval; a 👍 by a user without write access is counted in the status comment",
	},
	{
		From: open, On: state.EventThumb,
		If: "by a user who may not approve", when: not(allowed),
		To: same, do: ignore,
		Doc: "counted in the status comment",
	},
	{
		From: slices.Concat(planning, building), On: state.EventThumb,
		If: "on a plan that is being revised", when: func(c *change) bool { return c.e.Candidate != nil },
		To: same, do: lateThumb,
		Doc: "answered: a change request came first",
	},
	{
		From: awaiting, On: state.EventThumb,
		If: "on a comment of a user without write access",
		To: planning, do: vouched,
		Doc: "it counts as a comment by the person who approved it: the discussion is read again for a new revision",
	},
	{
		From: working, On: state.EventThumb,
		If: "on a comment of a user without write access", when: func(c *change) bool { return c.e.Comment != nil },
		To: same, do: keepOrPoke,
		Doc: "kept for the next run; a task that waits for text starts",
	},
	{
		From: open, On: state.EventReviewed,
		If: "by a user without the permission", when: not(allowed),
		To: same, do: ignore,
		Doc: "counted in the status comment",
	},
	{
		From: open, On: state.EventReviewed,
		when: hasPR,
		To:   same, do: reviewed,
		Doc: "reviews are gathered for a while into one round; a bare approval sets ready to merge",
	},
	{
		From: open, On: state.EventPRClosed,
		If: "merged", when: func(c *change) bool { return c.e.Merged && hasPR(c) },
		To: []state.Phase{state.PhaseDone}, do: merged,
		Doc: "done: VM gone, a last comment",
	},
	{
		From: open, On: state.EventPRClosed,
		when: hasPR,
		To:   []state.Phase{state.PhaseCancelled}, do: func(c *change) { c.cancel("the pull request was closed without a merge") },
		Doc: "the task is canceled",
	},
	{
		From: open, On: state.EventPushed,
		To: same, do: pushed,
		Doc: "the branch's new head is stored; the next run starts from it",
	},
	{
		From: open, On: state.EventChecksChanged,
		If: "a pull request is open", when: hasPR,
		To: same, do: readChecks,
		Doc: "all checks of its head are read, a moment later",
	},
	{
		From: open, On: state.EventChecksRead,
		If: "they differ from the displayed ones", when: func(c *change) bool { return hasPR(c) && c.t.PR.Checks != c.e.Checks },
		To: same, do: func(c *change) { c.t.PR.Checks = c.e.Checks },
		Doc: "shown in the status comment",
	},
	{
		From: working, On: state.EventPoked,
		If: "it waits for something", when: func(c *change) bool { return c.t.Waiting != nil },
		To: same, do: again,
		Doc: "checked again now",
	},
}

package machine

import (
	"slices"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// peopleRows are the rows of people's actions other than commands.
var peopleRows = []Row{
	{
		On: event.KindTriggered,
		If: "by a user without the permission", when: not(isAuthorized),
		To: same, do: refuseTrigger,
		Doc: "the trigger gets a 😕, nothing starts",
	},
	{
		On: event.KindTriggered,
		To: []state.Phase{state.PhaseQueued}, do: beginTask,
		Doc: "the task starts: 👀, a status comment, and a check of the repository",
	},
	{
		From: ended, On: event.KindTriggered,
		If: "by a writer, after the end", when: all(isAuthorized, not(isOutdated)),
		To: []state.Phase{state.PhaseQueued, state.PhaseImplementing}, do: beginTask,
		Doc: "the task continues its pull request, if that is open or was closed recently; otherwise it starts again",
	},
	{
		From: open, On: event.KindTriggered,
		If: "by a user without the permission", when: not(isAuthorized),
		To: same, do: countIgnored,
		Doc: "counted in the status comment",
	},
	{
		From: []state.Phase{state.PhaseFailed}, On: event.KindTriggered,
		To: resumed, do: retry,
		Doc: "like `retry`",
	},
	{
		From: parked, On: event.KindTriggered,
		If: "after the pull request was closed", when: not(isSaidBeforeClosing),
		To: same, do: requestReopening,
		Doc: "the pull request is reopened",
	},
	{
		From: open, On: event.KindTriggered,
		To: same, do: addTrigger,
		Doc: "one task per issue: a second trigger is answered, unless it comes right after the first",
	},
	{
		From: open, On: event.KindUntriggered,
		If: "it was done before the task began, or before the same trigger was given again", when: predatesTrigger,
		To: same, do: func(*change) {},
		Doc: "none: the trigger is later",
	},
	{
		From: open, On: event.KindIssueClosed,
		If: "it was done before the task began, and the issue may be open again", when: predatesTask,
		To: same, do: func(*change) {},
		Doc: "none: the trigger is later",
	},
	{
		From: open, On: event.KindUntriggered,
		If: "the assignment or label that started it", when: isStartingTrigger,
		To:  []state.Phase{state.PhaseCancelled},
		do:  func(c *change) { c.cancel("the " + triggerNoun(c.t.Trigger.Via) + " was removed" + byPerson(c.e.By)) },
		Doc: "canceled; a running agent is stopped and its work saved",
	},
	{
		From: open, On: event.KindIssueClosed,
		If: "a pull request is open", when: func(c *change) bool { return hasPR(c) && c.e.Via != event.ViaConfirmed },
		To: same, do: func(c *change) { c.scheduleDue(state.DueClosed, "issue", c.e.Now) },
		Doc: "the pull request is checked, because a merge closes the issue, too",
	},
	{
		From: open, On: event.KindIssueClosed,
		To: []state.Phase{state.PhaseCancelled}, do: func(c *change) { c.cancel(state.EndIssueClosed) },
		Doc: "the task is canceled",
	},
	{
		From: open, On: event.KindIssueGone,
		To: []state.Phase{state.PhaseCancelled}, do: endWithoutIssue,
		Doc: "canceled without a comment: the issue no longer exists",
	},
	{
		From: open, On: event.KindAccessLost,
		To: []state.Phase{state.PhaseCancelled}, do: endWithoutAccess,
		Doc: "canceled without a comment: the App no longer has access",
	},
	{
		From: ended, On: event.KindAccessRegained,
		If:   "it ended because errand had no access",
		when: func(c *change) bool { return c.t.End != nil && c.t.End.Class == state.ClassAccess },
		To:   same, do: postAccessRegained,
		Doc: "a comment says so",
	},
	{
		From: anyPhase, On: event.KindRenamed,
		To: same, do: storeRepo,
		Doc: "the repository's new name and visibility and its installation are stored",
	},
	{
		From: anyPhase, On: event.KindLocked,
		If: "it was open", when: func(c *change) bool { return !c.t.Locked },
		To: same, do: func(c *change) { c.t.Locked = true },
		Doc: "shown in the status comment; comments wait",
	},
	{
		From: anyPhase, On: event.KindUnlocked,
		If: "it was locked", when: func(c *change) bool { return c.t.Locked },
		To: same, do: func(c *change) { c.t.Locked = false },
		Doc: "comments that waited are posted",
	},
	{
		From: open, On: event.KindIssueEdited,
		If: "the text is known as it was later", when: isEditOutdated,
		To: same, do: func(*change) {},
		Doc: "none: the event came late",
	},
	{
		From: open, On: event.KindIssueEdited,
		If: "the text is as frozen", when: isTextUnchanged,
		To: same, do: resumeAfterRevertedEdit,
		Doc: "a reverted edit ends the pause",
	},
	{
		From: slices.Concat([]state.Phase{state.PhaseQueued}, planning, awaiting), On: event.KindIssueEdited,
		If: "by a user without write access", when: not(isAuthorized),
		To: same, do: pauseForEdit,
		Doc: "paused: the difference is shown until a writer comments `replan`",
	},
	{
		From: awaiting, On: event.KindIssueEdited,
		To: planning, do: refreezeAndRevise,
		Doc: "the new text is frozen and a new revision is made",
	},
	{
		From: slices.Concat([]state.Phase{state.PhaseQueued}, planning), On: event.KindIssueEdited,
		If: "by a writer, while the task was starting", when: func(c *change) bool { return c.e.Via == event.ViaStart },
		To: same, do: refreezeAndStart,
		Doc: "the new text is frozen, and everything is read again",
	},
	{
		From: slices.Concat([]state.Phase{state.PhaseQueued}, planning), On: event.KindIssueEdited,
		To: same, do: refreeze,
		Doc: "the new text is frozen; the plan under way is revised before it is posted",
	},
	{
		From: approving, On: event.KindCommentEdited,
		If: "a sweep found a ticked box", when: isVia(event.ViaSweep),
		To: same, do: clearSweptTick,
		Doc: "no approval, because it is unknown who ticked it: the box is cleared, with a comment",
	},
	{
		From: open, On: event.KindCommentEdited,
		If: "a sweep found a ticked box, and no plan waits for approval", when: isVia(event.ViaSweep),
		To: same, do: func(*change) {},
		Doc: "nothing",
	},
	{
		From: approving, On: event.KindCommentEdited,
		If: "only the approval box, ticked, by a writer", when: all(isOnlyTick, isAuthorized),
		To: same, do: checkCandidate,
		Doc: "the tick is checked as an approval",
	},
	{
		From: planning, On: event.KindCommentEdited,
		If: "only the approval box of a plan whose comments are considered, ticked, by a writer", when: all(isOnlyTick, isAuthorized, isHeldRevision),
		To: same, do: checkCandidate,
		Doc: "the tick is checked, and then held until the comments have been considered",
	},
	{
		From: open, On: event.KindCommentEdited,
		If: "only a tick, by a user who may not approve or where nothing waits", when: isOnlyTick,
		To: same, do: clearTick,
		Doc: "the tick is cleared",
	},
	{
		From: open, On: event.KindCommentEdited,
		If: "only ticked boxes", when: func(c *change) bool { return of[event.CommentEdited](c).OnlyBoxes },
		To: same, do: func(*change) {},
		Doc: "nothing",
	},
	{
		From: open, On: event.KindCommentEdited,
		To: same, do: func(c *change) { c.markStale("", state.StaleEdited) },
		Doc: "that revision can never be approved again",
	},
	{
		From: anyPhase, On: event.KindCommentDeleted,
		when: knowsComment,
		To:   same, do: forgetComment,
		Doc: "later texts do not link to that comment; a revision can never be approved again",
	},
	{
		From: planning, On: event.KindThumb,
		If: "on a plan whose comments are considered", when: isHeldRevision,
		To: same, do: checkCandidate,
		Doc: "the 👍 is checked, and then held until the comments have been considered",
	},
	{
		From: approving, On: event.KindThumb,
		If: "on a plan", when: func(c *change) bool { return c.e.Candidate() != nil },
		To: same, do: checkCandidate,
		Doc: "the 👍 is checked as an approval; a 👍 by a user without write access is counted in the status comment",
	},
	{
		From: open, On: event.KindThumb,
		If: "by a user who may not approve", when: not(isAuthorized),
		To: same, do: countIgnored,
		Doc: "counted in the status comment",
	},
	{
		From: slices.Concat(planning, building), On: event.KindThumb,
		If: "on a plan that is being revised", when: func(c *change) bool { return c.e.Candidate() != nil },
		To: same, do: rejectLateThumb,
		Doc: "answered: a change request came first",
	},
	{
		From: awaiting, On: event.KindThumb,
		If: "on a comment of a user without write access",
		To: same, do: gatherVouched,
		Doc: "it counts as a comment by the person who approved it, and is gathered like one",
	},
	{
		From: working, On: event.KindThumb,
		If: "on a comment of a user without write access", when: func(c *change) bool { return c.e.Comment() != nil },
		To: same, do: keepVouched,
		Doc: "kept for the next run; a task that waits for text starts",
	},
	{
		From: open, On: event.KindReviewed,
		If: "by a user without the permission", when: not(isAuthorized),
		To: same, do: countIgnored,
		Doc: "counted in the status comment",
	},
	{
		From: open, On: event.KindReviewed,
		when: hasPR,
		To:   same, do: gatherReview,
		Doc: "reviews are gathered for a while into one round; a bare approval sets ready to merge",
	},
	{
		From: open, On: event.KindPRClosed,
		If: "merged", when: func(c *change) bool { return of[event.PRClosed](c).Merged && hasPR(c) },
		To: []state.Phase{state.PhaseDone}, do: endMerged,
		Doc: "done: VM gone, a last comment",
	},
	{
		From: without(open, state.PhasePRClosed), On: event.KindPRClosed,
		If: "not reopened since", when: func(c *change) bool { return hasPR(c) && !isPRClosed(c) && !isCloseOutdated(c) },
		To: parked, do: park,
		Doc: "a running agent is stopped and its work saved; the task is kept for 14 days",
	},
	{
		From: ended, On: event.KindPRClosed,
		If: "it was open", when: all(isPRState(state.PROpen), not(isCloseOutdated)),
		To: same, do: storePRState,
		Doc: "noted: a new trigger continues with it for 14 days, unless it was merged",
	},
	{
		From: ended, On: event.KindPRReopened,
		If: "it was closed", when: all(isTaskPR, isPRState(state.PRClosed), not(isReopenOutdated)),
		To: same, do: storePRState,
		Doc: "noted: a new trigger continues with it",
	},
	{
		From: anyPhase, On: event.KindPRReopened,
		If: "the task began anew without it", when: isReplacedPR,
		To: same, do: closeReopened,
		Doc: "it is closed again, with a link to the work",
	},
	{
		From: anyPhase, On: event.KindPRReplaced,
		To: same, do: storeReplaced,
		Doc: "a replaced pull request is not open; a comment there says why errand closed it",
	},
	{
		From: []state.Phase{state.PhaseQueued, state.PhaseFailed, state.PhaseInterrupted}, On: event.KindPRReopened,
		If: "the pull request that the task continues is open", when: all(isTaskPR, isAdopting),
		To: []state.Phase{state.PhasePROpen}, do: resumeReopened,
		Doc: "the task continues there; reviews and comments since begin a round",
	},
	{
		From: open, On: event.KindPRReopened,
		If: "it was closed", when: all(isTaskPR, isPRClosed, not(isReopenOutdated)),
		To: []state.Phase{state.PhasePROpen}, do: resumeReopened,
		Doc: "the task continues; feedback that was not answered, and since, is gathered into a round",
	},
	{
		From: without(open, state.PhasePRClosed), On: event.KindPRReopened,
		If: "the webhook about the closing is late", when: all(isTaskPR, not(isPRClosed), not(isReopenOutdated)),
		To: same, do: storeReopened,
		Doc: "noted, so that the closing has no effect",
	},
	{
		From: parked, On: event.KindDue,
		If: "the pull request may have stayed closed", when: isDue(state.DuePRClosed),
		To: same, do: announceClosed,
		Doc: "the VM is released, its work kept, and a comment says how to continue",
	},
	{
		From: []state.Phase{state.PhasePRClosed, state.PhaseInterrupted, state.PhaseFailed}, On: event.KindDue,
		If: "the pull request has been closed for long", when: all(isDue(state.DueParked), isPRClosed),
		To: []state.Phase{Same, state.PhaseCancelled}, do: expireClosed,
		Doc: "canceled, unless it was reopened meanwhile",
	},
	{
		From: open, On: event.KindPushed,
		To: same, do: storePush,
		Doc: "the branch's new head is stored; the next run starts from it",
	},
	{
		From: open, On: event.KindChecksChanged,
		If: "a pull request is open", when: hasPR,
		To: same, do: readChecks,
		Doc: "all checks of its head are read, a moment later",
	},
	{
		From: open, On: event.KindChecksRead,
		If: "they are the head's, and differ from the displayed ones or may still change", when: wantsChecksRead,
		To: same, do: storeChecks,
		Doc: "shown in the status comment; read again later if they only have to stay as they are",
	},
	{
		From: working, On: event.KindConditionChanged,
		If: "it waits for something", when: func(c *change) bool { return c.t.Waiting != nil },
		To: same, do: recheckWaiting,
		Doc: "checked again now",
	},
}

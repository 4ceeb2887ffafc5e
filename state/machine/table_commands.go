package machine

import (
	"slices"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// commandRows are the rows of commands, of the operator's purge, and of comments without commands.
var commandRows = []Row{
	{
		On: event.KindCommented, Verb: state.VerbPlan,
		If: "by a writer, on an issue", when: all(isAuthorized, isOnIssue),
		To: []state.Phase{state.PhaseQueued}, do: beginTask,
		Doc: "a mention starts the task",
	},
	{
		On: event.KindCommented, Verb: state.VerbMessage,
		If: "by a writer, on an issue, only thanks, an emoji or a bare +1", when: all(isAuthorized, isOnIssue, startsNothing),
		To: same, do: acknowledgeRemark,
		Doc: "it gets a 👍; nothing starts",
	},
	{
		On: event.KindCommented, Verb: state.VerbMessage,
		If: "by a writer, on an issue", when: all(isAuthorized, isOnIssue),
		To: []state.Phase{state.PhaseQueued}, do: beginTask,
		Doc: "a mention starts the task",
	},
	{
		On: event.KindCommented, Verb: state.VerbRestart,
		If: "by a writer, on an issue", when: all(isAuthorized, isOnIssue),
		To: []state.Phase{state.PhaseQueued}, do: beginTask,
		Doc: "there is nothing to restart: like `plan`",
	},
	{
		On: event.KindCommented, Verb: state.VerbRestart,
		when: isOnIssue,
		To:   same, do: refuseTrigger,
		Doc: "the trigger gets a 😕, nothing starts",
	},
	{
		On: event.KindCommented, Verb: state.VerbPlan,
		when: isOnIssue,
		To:   same, do: refuseTrigger,
		Doc: "the trigger gets a 😕, nothing starts",
	},
	{
		On: event.KindCommented, Verb: state.VerbMessage,
		when: isOnIssue,
		To:   same, do: refuseTrigger,
		Doc: "the trigger gets a 😕, nothing starts",
	},
	{
		From: anyPhase, On: event.KindCommented, Verb: state.VerbPlan,
		If: "in the issue's text", when: isIssueText,
		To: same, do: func(*change) {},
		Doc: "none: the task has begun",
	},
	{
		From: anyPhase, On: event.KindCommented, Verb: state.VerbMessage,
		If: "in the issue's text", when: isIssueText,
		To: same, do: func(*change) {},
		Doc: "none: the agent reads the issue's text",
	},
	{
		From: anyPhase, On: event.KindCommented,
		If:   "a mention in the issue's text that was removed before it was read",
		when: func(c *change) bool { return isIssueText(c) && c.e.Comment().Withdrawn != "" },
		To:   same, do: func(*change) {},
		Doc: "none",
	},
	{
		From: anyPhase, On: event.KindCommented,
		If:   "it was deleted, hidden or edited before it was read",
		when: func(c *change) bool { return c.e.Comment().Withdrawn != "" },
		To:   same, do: replyToWithdrawnComment,
		Doc: "no effect; commands, and edits that may contain some, are answered",
	},
	{
		From: anyPhase, On: event.KindCommented,
		If: "by a user without the permission", when: not(isAuthorized),
		To: same, do: countMention,
		Doc: "a mention is counted in the status comment, other comments are withheld from the agent",
	},
	{
		From: anyPhase, On: event.KindCommented, Verb: state.VerbHelp,
		To: same, do: reply(state.ReplyHelp),
		Doc: "the commands are listed",
	},
	{
		From: anyPhase, On: event.KindCommented, Verb: state.VerbUnknown,
		To: same, do: reply(state.ReplyUnknown),
		Doc: "the most similar command is named",
	},
	{
		From: anyPhase, On: event.KindCommented, Verb: state.VerbStatus,
		To: same, do: reply(state.ReplyStatus),
		Doc: "the state in one paragraph, with a link to the status comment",
	},
	{
		From: anyPhase, On: event.KindCommented, Verb: state.VerbRestart,
		If: "the issue is closed", when: isIssueClosed,
		To: same, do: reply(state.ReplyRetryClosed),
		Doc: "a reply asks to reopen the issue first; the pull request stays open",
	},
	{
		From: open, On: event.KindCommented, Verb: state.VerbRestart,
		If: "not said before the task began", when: not(predatesTask),
		To: []state.Phase{state.PhaseQueued}, do: restart,
		Doc: "a running agent is stopped, the pull request closed with a link, and the task begins anew",
	},
	{
		From: ended, On: event.KindCommented, Verb: state.VerbRestart,
		If: "after the end, and the text of the issue is known", when: all(not(isOutdated), hasIssueText),
		To: []state.Phase{state.PhaseQueued}, do: restart,
		Doc: "the pull request is closed with a link, and the task begins anew",
	},
	{
		From: anyPhase, On: event.KindCommented, Verb: state.VerbRestart,
		To: same, do: reply(state.ReplyStatus),
		Doc: "it came late, or the operator gave it after the texts were purged: a reply shows the state",
	},
	{
		From: ended, On: event.KindPurged,
		If: "nothing of it is under way", when: canPurge,
		To: same, do: purge,
		Doc: "its texts are deleted; numbers, times and IDs stay",
	},
	{
		From: ended, On: event.KindCommented, Verb: state.VerbPlan,
		If: "on the issue, which is closed, after the end, and there is no pull request to continue", when: all(isOnIssue, isIssueClosed, not(isOutdated), not(isAdoptable)),
		To: same, do: reply(state.ReplyRetryClosed),
		Doc: "a reply asks to reopen the issue first",
	},
	{
		From: ended, On: event.KindCommented, Verb: state.VerbPlan,
		If: "on the issue, after the end", when: all(isOnIssue, not(isOutdated)),
		To: []state.Phase{state.PhaseQueued, state.PhaseImplementing}, do: beginTask,
		Doc: "the task continues its pull request, if that is open or was closed recently; otherwise it starts again",
	},
	{
		From: ended, On: event.KindCommented, Verb: state.VerbPlan,
		To: same, do: replyToEndedTask,
		Doc: "😕, and, once, a reply that the task has ended and how to start again",
	},
	{
		From: ended, On: event.KindCommented, Verb: state.VerbMessage,
		If: "it consists of thanks, an emoji or a bare +1", when: startsNothing,
		To: same, do: acknowledgeRemark,
		Doc: "it gets a 👍; nothing starts",
	},
	{
		From: ended, On: event.KindCommented, Verb: state.VerbMessage,
		To: same, do: replyToEndedTask,
		Doc: "😕, and, once, a reply that the task has ended and how to start again",
	},
	{
		From: ended, On: event.KindCommented, Verb: state.VerbBudget,
		To: same, do: reply(state.ReplyStatus),
		Doc: "a reply says that the task has ended",
	},
	{
		From: ended, On: event.KindCommented, Verb: state.VerbModel,
		To: same, do: reply(state.ReplyStatus),
		Doc: "a reply says that the task has ended",
	},
	{
		From: ended, On: event.KindCommented, Verb: state.VerbCancel,
		To: same, do: reply(state.ReplyNothingToCancel),
		Doc: "nothing to cancel",
	},
	{
		From: approving, On: event.KindCommented, Verb: state.VerbApprove,
		To: []state.Phase{Same, state.PhaseImplementing, state.PhaseAddressingReview}, do: checkApproveCommand,
		Doc: "checked as an approval; changes that are approved on a condition go back to the agent",
	},
	{
		From: planning, On: event.KindCommented, Verb: state.VerbApprove,
		If: "comments on the plan are considered", when: func(c *change) bool { return c.t.ConsideredPlan() != nil },
		To: same, do: checkApproveCommand,
		Doc: "checked, and then held until the comments have been considered",
	},
	{
		From: anyPhase, On: event.KindCommented, Verb: state.VerbApprove,
		To: same, do: reply(state.ReplyNonePending),
		Doc: "no plan waits for an approval",
	},
	{
		From: open, On: event.KindCommented, Verb: state.VerbCancel,
		If: "it was said before the task began", when: predatesTask,
		To: same, do: reply(state.ReplyNothingToCancel),
		Doc: "nothing to cancel then",
	},
	{
		From: open, On: event.KindCommented, Verb: state.VerbCancel,
		To: []state.Phase{state.PhaseCancelled}, do: func(c *change) { c.cancel(c.e.By.Handle() + " canceled it") },
		Doc: "canceled; a running agent is stopped and its work saved",
	},
	{
		From: append([]state.Phase{state.PhaseInterrupted}, working...), On: event.KindCommented, Verb: state.VerbStop,
		To: []state.Phase{state.PhaseAwaitingAnswer}, do: stopByHand,
		Doc: "the run, if there is one, is stopped, its work saved, the VM kept; the task waits for a person",
	},
	{
		From: anyPhase, On: event.KindCommented, Verb: state.VerbStop,
		To: same, do: reply(state.ReplyNothingToCancel),
		Doc: "nothing runs",
	},
	{
		From: asking, On: event.KindCommented, Verb: state.VerbRetry,
		If: "they can no longer be approved", when: func(c *change) bool { return c.t.NewestPlan().Stale != "" },
		To: building, do: showAgain,
		Doc: "the changes are shown again",
	},
	{
		From: resumable, On: event.KindCommented, Verb: state.VerbRetry,
		To: resumed, do: retry,
		Doc: "continues where it stopped, on a new VM with `fresh`",
	},
	{
		From: working, On: event.KindCommented, Verb: state.VerbRetry,
		If: "it waits for something", when: func(c *change) bool { return c.t.Waiting != nil },
		To: same, do: recheckWaiting,
		Doc: "checked again now",
	},
	{
		From: parked, On: event.KindCommented, Verb: state.VerbRetry,
		If: "after the pull request was closed", when: not(isSaidBeforeClosing),
		To: same, do: requestReopening,
		Doc: "the pull request is reopened",
	},
	{
		From: canceled, On: event.KindCommented, Verb: state.VerbRetry,
		If: "the issue is closed, and there is no pull request", when: all(canRetry, isIssueClosed, not(isAdoptable)),
		To: same, do: reply(state.ReplyRetryClosed),
		Doc: "a reply asks to reopen the issue first",
	},
	{
		From: canceled, On: event.KindCommented, Verb: state.VerbRetry,
		If: "while its work is kept, or its pull request can be continued", when: canRetry,
		To: resumed, do: retryCanceled,
		Doc: "the next life continues with the pull request, or where the task ended, with the saved work; a plan of an issue that was edited since is revised",
	},
	{
		From: anyPhase, On: event.KindCommented, Verb: state.VerbRetry,
		To: same, do: reply(state.ReplyNothingToRetry),
		Doc: "nothing to retry",
	},
	{
		From: slices.Concat(planning, awaiting, []state.Phase{state.PhaseQueued, state.PhaseFailed, state.PhaseAwaitingAnswer}),
		On:   event.KindCommented, Verb: state.VerbReplan,
		If: "before anything was built", when: func(c *change) bool { return c.t.PR == nil },
		To: []state.Phase{state.PhaseQueued, state.PhasePreliminaryPlanning, state.PhasePlanning}, do: replan,
		Doc: "the issue is read and frozen again, and a new revision is made",
	},
	{
		From: anyPhase, On: event.KindCommented, Verb: state.VerbReplan,
		To: same, do: reply(state.ReplyTooLate),
		Doc: "too late to replan",
	},
	{
		From: open, On: event.KindCommented, Verb: state.VerbBudget,
		To:  []state.Phase{Same, state.PhasePreliminaryPlanning, state.PhasePlanning, state.PhaseImplementing, state.PhaseAddressingReview},
		do:  raiseBudget,
		Doc: "the cap is raised; a task that stopped at it continues",
	},
	{
		From: open, On: event.KindCommented, Verb: state.VerbModel,
		To: same, do: setModel,
		Doc: "the next runs use that model",
	},
	{
		From: []state.Phase{state.PhaseAwaitingAnswer}, On: event.KindCommented, Verb: state.VerbCreatePR,
		If: "errand has asked for the ticket key", when: answersTicketKey,
		To: working, do: resumeWithTicketKey,
		Doc: "continues with that ticket key",
	},
	{
		From: anyPhase, On: event.KindCommented, Verb: state.VerbIssue,
		To: same, do: createIssue,
		Doc: "the proposed issue of that number is created, once; answered with a link",
	},
	{
		From: open, On: event.KindCommented, Verb: state.VerbCreatePR,
		To: same, do: storeTicketKey,
		Doc: "the ticket key is noted",
	},
	{
		From: ended, On: event.KindCommented, Verb: state.VerbCreatePR,
		To: same, do: reply(state.ReplyStatus),
		Doc: "a reply says that the task has ended",
	},
	{
		From: parked, On: event.KindCommented, Verb: state.VerbPlan,
		If: "after the pull request was closed", when: not(isSaidBeforeClosing),
		To: same, do: requestReopening,
		Doc: "the pull request is reopened",
	},
	{
		From: open, On: event.KindCommented, Verb: state.VerbPlan,
		To: same, do: reply(state.ReplyOneTask),
		Doc: "one task per issue",
	},
	{
		From: open, On: event.KindCommented, Verb: state.VerbMessage,
		If: "it consists of thanks, an emoji or a bare +1", when: startsNothing,
		To: same, do: acknowledgeRemark,
		Doc: "it gets a 👍; nothing starts",
	},
	{
		From: open, On: event.KindCommented,
		If:   "where comments are read, addressed to somebody else, or nothing but thanks, an emoji or a bare +1",
		when: all(isRead, startsNothing),
		To:   same, do: keepInDiscussion,
		Doc: "discussion: later prompts carry it; nothing starts",
	},
	{
		From: slices.Concat(approving, planning), On: event.KindCommented, Verb: state.VerbMessage,
		If: `only "LGTM" or the like`, when: isApprovingRemark,
		To: same, do: replyHowToApprove,
		Doc: "answered, once per revision, with how to approve; nothing starts",
	},
	{
		From: slices.Concat(approving, planning), On: event.KindCommented,
		If:   `where comments are read, only "LGTM" or the like`,
		when: all(isRead, isApprovingRemark),
		To:   same, do: replyHowToApprove,
		Doc: "answered, once per revision, with how to approve; nothing starts",
	},
	{
		From: approving, On: event.KindCommented, Verb: state.VerbMessage,
		To: same, do: gatherPlanComment,
		Doc: "👀; comments are gathered for a while, then the agent considers them",
	},
	{
		From: approving, On: event.KindCommented,
		If:   "the only commands are in quotes, code or other markup, and there is other text",
		when: func(c *change) bool { return c.e.Comment().Quoted && c.e.Comment().Words && isRead(c) },
		To:   same, do: replyQuotedAndGather,
		Doc: "a reply says that quoted commands do not count; the comment is gathered like any other",
	},
	{
		From: approving, On: event.KindCommented,
		If:   "there are only commands in quotes, code or other markup",
		when: func(c *change) bool { return c.e.Comment().Quoted },
		To:   same, do: replyQuotedCommand,
		Doc: "a reply says that quoted commands do not count; no revision is made",
	},
	{
		From: awaiting, On: event.KindCommented,
		To: same, do: gatherPlanComment,
		Doc: "👀; comments are gathered for a while, then the agent considers them",
	},
	{
		From: asking, On: event.KindCommented,
		To: same, do: gatherPlanComment,
		Doc: "👀; comments are gathered for a while, then the agent addresses them",
	},
}

// withoutTask are the rows of commands on an issue without a task that start none: because the issue is closed, or because they need a task.
func withoutTask() (rows []Row) {
	starting := []state.Verb{state.VerbPlan, state.VerbMessage, state.VerbRestart}
	isStarting := func(o state.Order) bool { return slices.Contains(starting, o.Verb) }
	startsNone := func(c *change) bool { return !slices.ContainsFunc(of[event.Commented](c).Orders, isStarting) }
	for _, verb := range append(starting, state.VerbApprove, state.VerbCancel, state.VerbStop, state.VerbRetry, state.VerbStatus, state.VerbReplan, state.VerbBudget,
		state.VerbModel, state.VerbCreatePR, state.VerbIssue, state.VerbUpdate, state.VerbRebase, state.VerbHelp, state.VerbUnknown) {
		rows = append(rows, Row{
			On: event.KindCommented, Verb: verb,
			If: "by a writer, in a comment on an issue that is closed", when: all(isAuthorized, isOnIssue, isIssueClosed, not(isIssueText), not(startsNothing)),
			To: same, do: replyWithoutTask(state.ReplyNoTaskClosed),
			Doc: "😕, and, once a day, a comment that asks to reopen the issue",
		})
		if !slices.Contains(starting, verb) {
			rows = append(rows, Row{
				On: event.KindCommented, Verb: verb,
				If: "by a writer, in a comment on an issue, without a command that starts a task", when: all(isAuthorized, isOnIssue, not(isIssueText), startsNone),
				To: same, do: replyWithoutTask(state.ReplyNoTask),
				Doc: "😕, and, once a day, a comment that says how to start a task",
			})
		}
	}
	return rows
}

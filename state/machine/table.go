package machine

import (
	"slices"

	"github.com/errand-bot/errand/state"
)

// Row is one line of the transition table: in one of the phases From, the event On (for a comment:
// with the command Verb) leads to one of the phases To.
type Row struct {
	From []state.Phase // nil: no task yet
	On   state.EventKind
	Verb state.Verb // of EventCommented; empty for other events and for plain comments
	// If names the condition, in words.
	If string
	// To lists where the task may be afterwards; a single entry "same" leaves the phase alone.
	To  []state.Phase
	Doc string // what happens, one sentence

	when func(*change) bool
	do   func(*change)
}

// Same stands in Row.To for "the phase does not change".
const Same state.Phase = "same"

// fits reports whether the row applies to what the change has come to so far.
func (r *Row) fits(c *change) bool {
	if c.t == nil {
		return r.From == nil && (r.when == nil || r.when(c))
	}
	return slices.Contains(r.From, c.t.Phase) && (r.when == nil || r.when(c))
}

// Table returns the transition table. docs/lifecycle.md is made from it.
func Table() []Row { return slices.Clone(table) }

// Groups of phases that rows share.
var (
	anyPhase  = state.Phases()
	ended     = []state.Phase{state.PhaseDone, state.PhaseCancelled}
	open      = without(state.Phases(), state.PhaseDone, state.PhaseCancelled)
	planning  = []state.Phase{state.PhasePreliminaryPlanning, state.PhasePlanning}
	awaiting  = []state.Phase{state.PhaseAwaitingPreliminaryApproval, state.PhaseAwaitingPlanApproval}
	asking    = []state.Phase{state.PhaseAwaitingPublishApproval}
	approving = slices.Concat(awaiting, asking)
	building  = []state.Phase{state.PhaseImplementing, state.PhaseAddressingReview}
	running   = []state.Phase{state.PhasePreliminaryPlanning, state.PhasePlanning, state.PhaseImplementing, state.PhaseAddressingReview}
	working   = append([]state.Phase{state.PhaseQueued}, running...)
	resumable = []state.Phase{state.PhaseFailed, state.PhaseInterrupted, state.PhaseAwaitingAnswer}
	resumed   = slices.Concat(working, approving, []state.Phase{state.PhasePROpen}) // where jobs bring a task on, and a stopped one goes on
	same      = []state.Phase{Same}
)

// without returns all phases but some.
func without(all []state.Phase, but ...state.Phase) []state.Phase {
	return slices.DeleteFunc(slices.Clone(all), func(p state.Phase) bool { return slices.Contains(but, p) })
}

// table is the whole life of a task. It is read, never changed; rows are tried from the top.
var table = slices.Concat(peopleRows(), orderRows(), runRows(), stepRows(), sleepRows(), publishRows(), talkRows())

// peopleRows are what people do besides commands.
func peopleRows() []Row {
	return []Row{
		{On: state.EventTriggered, If: "by somebody who may not", To: same, Doc: "the trigger gets a 😕, nothing starts", when: not(allowed), do: refuseTrigger},
		{On: state.EventTriggered, To: []state.Phase{state.PhaseQueued}, Doc: "the task begins: 👀, a status comment, and a look at the repository", do: begin},
		{From: ended, On: state.EventTriggered, If: "by a writer, after the end", To: []state.Phase{state.PhaseQueued}, Doc: "the task begins anew", when: all(allowed, not(outdated)), do: begin},
		{From: open, On: state.EventTriggered, If: "by somebody who may not", To: same, Doc: "counted in the status comment", when: not(allowed), do: ignore},
		{From: []state.Phase{state.PhaseFailed}, On: state.EventTriggered, To: resumed, Doc: "as retry", do: retry},
		{From: open, On: state.EventTriggered, To: same, Doc: "one task per issue: a second trigger is told so", do: secondTrigger},
		{From: open, On: state.EventUntriggered, If: "it was done before the task began", To: same, Doc: "nothing: the trigger is the later word", when: beforeBegin, do: func(*change) {}},
		{From: open, On: state.EventIssueClosed, If: "it was done before the task began, and the issue may be open again", To: same, Doc: "nothing: the trigger is the later word", when: beforeBegin, do: func(*change) {}},
		{From: open, On: state.EventUntriggered, If: "the assignment or label that started it", To: []state.Phase{state.PhaseCancelled}, Doc: "cancelled; a running agent is stopped and its work saved", when: sameTrigger, do: func(c *change) { c.cancel("the " + takenBack(c.t.Trigger.Via) + " was taken back" + by(c.e.By)) }},
		{From: open, On: state.EventIssueClosed, If: "a pull request is open", To: same, Doc: "look at the pull request: a merge closes the issue too", when: func(c *change) bool { return hasPR(c) && c.e.Via != state.ViaConfirmed }, do: func(c *change) { c.due("closed", "issue", c.e.Now) }},
		{From: open, On: state.EventIssueClosed, To: []state.Phase{state.PhaseCancelled}, Doc: "cancelled", do: func(c *change) { c.cancel("the issue was closed") }},
		{From: open, On: state.EventIssueGone, To: []state.Phase{state.PhaseCancelled}, Doc: "cancelled without a comment: there is no issue any more", do: gone},
		{From: open, On: state.EventGone, To: []state.Phase{state.PhaseCancelled}, Doc: "cancelled without a comment: the App has no access any more", do: gone},
		{From: ended, On: state.EventBack, If: "it ended because errand had no access", To: same, Doc: "people are told so", when: func(c *change) bool { return c.t.End != nil && c.t.End.Class == state.ClassAccess }, do: back},
		{From: anyPhase, On: state.EventRenamed, To: same, Doc: "the repository's new name is stored, and whose installation reaches it", do: moveTo},
		{From: anyPhase, On: state.EventLocked, If: "it was open", To: same, Doc: "shown in the status comment; comments wait", when: func(c *change) bool { return !c.t.Locked }, do: func(c *change) { c.t.Locked = true }},
		{From: anyPhase, On: state.EventUnlocked, If: "it was locked", To: same, Doc: "comments that waited are posted", when: func(c *change) bool { return c.t.Locked }, do: func(c *change) { c.t.Locked = false }},
		{From: open, On: state.EventIssueEdited, If: "text as frozen", To: same, Doc: "an edit that was taken back ends the pause", when: textAsFrozen, do: unpause},
		{From: slices.Concat([]state.Phase{state.PhaseQueued}, planning, awaiting), On: state.EventIssueEdited, If: "by an outsider", To: same, Doc: "pause: the difference is shown until a writer says replan", when: not(allowed), do: outsiderEdit},
		{From: awaiting, On: state.EventIssueEdited, To: planning, Doc: "the new text is frozen and a new revision is made", do: refreezeAndRevise},
		{From: slices.Concat([]state.Phase{state.PhaseQueued}, planning), On: state.EventIssueEdited, If: "by a writer, while the task was in the making", To: same, Doc: "the new text is frozen, and everything is read again", when: func(c *change) bool { return c.e.Via == state.ViaStart }, do: refreezeAndStart},
		{From: slices.Concat([]state.Phase{state.PhaseQueued}, planning), On: state.EventIssueEdited, To: same, Doc: "the new text is frozen; the plan under way is revised before it is posted", do: refreeze},
		{From: approving, On: state.EventPlanEdited, If: "a sweep found a ticked box", To: same, Doc: "no approval, because nobody knows who ticked it: the box is cleared, with a comment", when: via(state.ViaSweep), do: unseenTick},
		{From: open, On: state.EventPlanEdited, If: "a sweep found a ticked box, and no plan waits for approval", To: same, Doc: "nothing", when: via(state.ViaSweep), do: func(*change) {}},
		{From: approving, On: state.EventPlanEdited, If: "only the approval box, ticked, by a writer", To: same, Doc: "the tick is checked as an approval", when: all(ticked, allowed), do: checkCandidate},
		{From: open, On: state.EventPlanEdited, If: "only a tick, by somebody who may not approve or where nothing waits", To: same, Doc: "the tick is taken back", when: ticked, do: untick},
		{From: open, On: state.EventPlanEdited, If: "only boxes", To: same, Doc: "nothing", when: func(c *change) bool { return c.e.OnlyBoxes }, do: func(*change) {}},
		{From: open, On: state.EventPlanEdited, To: same, Doc: "that revision can never be approved again", do: func(c *change) { c.stale(state.StaleEdited) }},
		{From: anyPhase, On: state.EventPlanDeleted, To: same, Doc: "nothing links to that comment any more; a revision can never be approved again", when: knowsComment, do: commentDeleted},
		{From: approving, On: state.EventThumb, If: "on a plan", To: same, Doc: "the 👍 is checked as an approval; that of somebody who may not is counted in the status comment", when: func(c *change) bool { return c.e.Candidate != nil }, do: checkCandidate},
		{From: open, On: state.EventThumb, If: "by somebody who may not approve", To: same, Doc: "counted in the status comment", when: not(allowed), do: ignore},
		{From: slices.Concat(planning, building), On: state.EventThumb, If: "on a plan that is being made anew", To: same, Doc: "answered: a change request came first", when: func(c *change) bool { return c.e.Candidate != nil }, do: lateThumb},
		{From: awaiting, On: state.EventThumb, If: "on an outsider's comment", To: planning, Doc: "it counts as a comment by the person who vouched for it: the discussion is read anew, and a new revision made", do: vouched},
		{From: working, On: state.EventThumb, If: "on an outsider's comment", To: same, Doc: "kept for the next run; a task that waits for text starts", when: func(c *change) bool { return c.e.Comment != nil }, do: keepOrPoke},
		{From: open, On: state.EventReviewed, If: "by somebody who may not", To: same, Doc: "counted in the status comment", when: not(allowed), do: ignore},
		{From: open, On: state.EventReviewed, To: same, Doc: "reviews are gathered for a while into one round; a bare approval sets ready to merge", when: hasPR, do: reviewed},
		{From: open, On: state.EventPRClosed, If: "merged", To: []state.Phase{state.PhaseDone}, Doc: "done: VM gone, a last comment", when: func(c *change) bool { return c.e.Merged && hasPR(c) }, do: merged},
		{From: open, On: state.EventPRClosed, To: []state.Phase{state.PhaseCancelled}, Doc: "cancelled", when: hasPR, do: func(c *change) { c.cancel("the pull request was closed without a merge") }},
		{From: open, On: state.EventPushed, To: same, Doc: "the branch's new head is stored; the next run starts from it", do: pushed},
		{From: open, On: state.EventChecksChanged, If: "a pull request is open", To: same, Doc: "all checks of its head are read, a moment later", when: hasPR, do: readChecks},
		{From: open, On: state.EventChecksRead, If: "they differ from what is shown", To: same, Doc: "shown in the status comment", when: func(c *change) bool { return hasPR(c) && c.t.PR.Checks != c.e.Detail }, do: func(c *change) { c.t.PR.Checks = c.e.Detail }},
		{From: working, On: state.EventPoked, If: "it waits for something", To: same, Doc: "look again now", when: func(c *change) bool { return c.t.Waiting != nil }, do: again},
	}
}

// orderRows are the commands and plain comments.
func orderRows() []Row {
	msg := func(c *change) bool { return c.e.Comment.Mention }
	return []Row{
		{On: state.EventCommented, Verb: state.VerbPlan, If: "by a writer, on an issue", To: []state.Phase{state.PhaseQueued}, Doc: "a mention starts the task", when: all(allowed, onIssue), do: begin},
		{On: state.EventCommented, Verb: state.VerbMessage, If: "by a writer, on an issue", To: []state.Phase{state.PhaseQueued}, Doc: "a mention starts the task", when: all(allowed, onIssue), do: begin},
		{On: state.EventCommented, Verb: state.VerbPlan, To: same, Doc: "the trigger gets a 😕, nothing starts", when: onIssue, do: refuseTrigger},
		{On: state.EventCommented, Verb: state.VerbMessage, To: same, Doc: "the trigger gets a 😕, nothing starts", when: onIssue, do: refuseTrigger},
		{From: anyPhase, On: state.EventCommented, If: "it was deleted, hidden or edited before it was read", To: same, Doc: "nothing is done; commands, and edits that could be some, are answered", when: func(c *change) bool { return c.e.Comment.Withdrawn != "" }, do: withdrawnComment},
		{From: anyPhase, On: state.EventCommented, If: "by somebody who may not", To: same, Doc: "a mention is counted in the status comment, other comments are withheld from the agent", when: not(allowed), do: outsiderComment},
		{From: anyPhase, On: state.EventCommented, Verb: state.VerbHelp, To: same, Doc: "the commands are listed", do: reply(state.ReplyHelp)},
		{From: anyPhase, On: state.EventCommented, Verb: state.VerbUnknown, To: same, Doc: "the nearest command is named", do: reply(state.ReplyUnknown)},
		{From: anyPhase, On: state.EventCommented, Verb: state.VerbStatus, To: same, Doc: "the state in one paragraph, with a link to the status comment", do: reply(state.ReplyStatus)},
		{From: ended, On: state.EventCommented, Verb: state.VerbPlan, If: "on the issue, after the end", To: []state.Phase{state.PhaseQueued}, Doc: "the task begins anew", when: all(onIssue, not(outdated)), do: begin},
		{From: ended, On: state.EventCommented, Verb: state.VerbPlan, To: same, Doc: "😕, and told, once, that the task is over and how to begin anew", do: endedMessage},
		{From: ended, On: state.EventCommented, Verb: state.VerbMessage, To: same, Doc: "😕, and told, once, that the task is over and how to begin anew", do: endedMessage},
		{From: ended, On: state.EventCommented, Verb: state.VerbBudget, To: same, Doc: "told that the task is over", do: reply(state.ReplyStatus)},
		{From: ended, On: state.EventCommented, Verb: state.VerbModel, To: same, Doc: "told that the task is over", do: reply(state.ReplyStatus)},
		{From: ended, On: state.EventCommented, Verb: state.VerbCancel, To: same, Doc: "nothing to cancel", do: reply(state.ReplyNothingToCancel)},
		{From: approving, On: state.EventCommented, Verb: state.VerbApprove, To: []state.Phase{Same, state.PhaseImplementing, state.PhaseAddressingReview}, Doc: "checked as an approval; changes that are approved on a condition go back to the agent", do: checkOrder},
		{From: anyPhase, On: state.EventCommented, Verb: state.VerbApprove, To: same, Doc: "no plan waits for an approval", do: reply(state.ReplyNoneOpen)},
		{From: open, On: state.EventCommented, Verb: state.VerbCancel, If: "it was said before the task began", To: same, Doc: "nothing to cancel then", when: beforeBegin, do: reply(state.ReplyNothingToCancel)},
		{From: open, On: state.EventCommented, Verb: state.VerbCancel, To: []state.Phase{state.PhaseCancelled}, Doc: "cancelled; a running agent is stopped and its work saved", do: func(c *change) { c.cancel("@" + c.e.By.Login + " cancelled it") }},
		{From: append([]state.Phase{state.PhaseInterrupted}, working...), On: state.EventCommented, Verb: state.VerbStop, To: []state.Phase{state.PhaseAwaitingAnswer}, Doc: "the run, if there is one, is stopped, its work saved, the VM kept; nothing goes on by itself", do: stopByHand},
		{From: anyPhase, On: state.EventCommented, Verb: state.VerbStop, To: same, Doc: "nothing runs", do: reply(state.ReplyNothingToCancel)},
		{From: asking, On: state.EventCommented, Verb: state.VerbRetry, If: "they cannot be approved any more", To: building, Doc: "the changes are shown anew", when: func(c *change) bool { return c.t.NewestPlan().Stale != "" }, do: showAgain},
		{From: resumable, On: state.EventCommented, Verb: state.VerbRetry, To: resumed, Doc: "goes on where it stopped, on a new VM if told so", do: retry},
		{From: working, On: state.EventCommented, Verb: state.VerbRetry, If: "it waits for something", To: same, Doc: "look again now", when: func(c *change) bool { return c.t.Waiting != nil }, do: again},
		{From: anyPhase, On: state.EventCommented, Verb: state.VerbRetry, To: same, Doc: "nothing to retry", do: reply(state.ReplyNothingToRetry)},
		{From: slices.Concat(planning, awaiting, []state.Phase{state.PhaseQueued, state.PhaseFailed, state.PhaseAwaitingAnswer}), On: state.EventCommented, Verb: state.VerbReplan, If: "before anything was built", To: []state.Phase{state.PhaseQueued, state.PhasePreliminaryPlanning, state.PhasePlanning}, Doc: "the issue is read and frozen anew, and a new revision is made", when: func(c *change) bool { return c.t.PR == nil }, do: replan},
		{From: anyPhase, On: state.EventCommented, Verb: state.VerbReplan, To: same, Doc: "too late to plan anew", do: reply(state.ReplyTooLate)},
		{From: open, On: state.EventCommented, Verb: state.VerbBudget, To: []state.Phase{Same, state.PhasePreliminaryPlanning, state.PhasePlanning, state.PhaseImplementing, state.PhaseAddressingReview}, Doc: "the cap is raised; a task that stopped at it goes on", do: budget},
		{From: open, On: state.EventCommented, Verb: state.VerbModel, To: same, Doc: "the next runs use that model", do: model},
		{From: []state.Phase{state.PhaseAwaitingAnswer}, On: state.EventCommented, Verb: state.VerbCreatePR, If: "errand has asked for the ticket key", To: working, Doc: "goes on with that ticket key", when: answersKey, do: createPR},
		{From: anyPhase, On: state.EventCommented, Verb: state.VerbIssue, To: same, Doc: "the proposed issue of that number is created, once; answered with a link", do: createIssue},
		{From: open, On: state.EventCommented, Verb: state.VerbCreatePR, To: same, Doc: "the ticket key is noted", do: noteTicket},
		{From: ended, On: state.EventCommented, Verb: state.VerbCreatePR, To: same, Doc: "told that the task is over", do: reply(state.ReplyStatus)},
		{From: open, On: state.EventCommented, Verb: state.VerbPlan, To: same, Doc: "one task per issue", do: reply(state.ReplyOneTask)},
		{From: awaiting, On: state.EventCommented, Verb: state.VerbMessage, To: planning, Doc: "a change request: a new revision", do: revise},
		{From: asking, On: state.EventCommented, Verb: state.VerbMessage, To: building, Doc: "a change request: the agent works on it, and the changes are shown anew", do: revise},
		{From: approving, On: state.EventCommented, If: "a command stands in a quote, in code or in other markup only", To: same, Doc: "told that quoted commands do not count; no revision is made", when: func(c *change) bool { return c.e.Comment.Quoted }, do: quoted},
		{From: awaiting, On: state.EventCommented, To: planning, Doc: "a change request: a new revision", do: revise},
		{From: asking, On: state.EventCommented, If: "on the issue", To: building, Doc: "a change request: the agent works on it, and the changes are shown anew", when: func(c *change) bool { return !c.e.Comment.OnPR }, do: revise},
		{From: []state.Phase{state.PhaseAwaitingAnswer}, On: state.EventCommented, Verb: state.VerbMessage, To: working, Doc: "the answer: goes on", do: answer},
		{From: []state.Phase{state.PhaseAwaitingAnswer}, On: state.EventCommented, If: "on the issue, not after a stop", To: working, Doc: "the answer: goes on", when: func(c *change) bool {
			return !c.e.Comment.OnPR && (c.t.Question == nil || c.t.Question.Kind != state.AskStopped)
		}, do: answer},
		{From: []state.Phase{state.PhasePROpen}, On: state.EventCommented, Verb: state.VerbMessage, To: same, Doc: "gathered for a while into one round", do: reviewComment},
		{From: slices.Concat(running, []state.Phase{state.PhaseInterrupted, state.PhaseFailed}), On: state.EventCommented, Verb: state.VerbMessage, If: "it mentions the bot", To: same, Doc: "kept, and answered after the run; said so once", when: msg, do: keepMessage},
		{From: []state.Phase{state.PhaseQueued}, On: state.EventCommented, Verb: state.VerbMessage, To: same, Doc: "👀; read when it starts; what waits looks again", do: heardEarly},
		{From: planning, On: state.EventCommented, To: same, Doc: "kept: the plan under way is revised before it is posted", do: keep},
		{From: []state.Phase{state.PhaseQueued}, On: state.EventCommented, To: same, Doc: "read when it starts; what waits looks again", do: heardEarly},
		{From: slices.Concat(building, []state.Phase{state.PhasePROpen, state.PhaseAwaitingAnswer, state.PhaseInterrupted, state.PhaseFailed}), On: state.EventCommented, If: "on the issue, to nobody in particular", To: same, Doc: "discussion: later prompts carry it", when: func(c *change) bool { return !c.e.Comment.OnPR && len(c.e.Orders) == 0 }, do: discussed},
	}
}

// runRows are what supervisors report. Events of superseded runs fit no row.
func runRows() []Row {
	mine := thisRun
	is := func(f func(*change) bool) func(*change) bool { return all(mine, f) }
	return []Row{
		{From: open, On: state.EventProgress, To: same, Doc: "last sign of life, session and money are stored", when: mine, do: progress},
		{From: running, On: state.EventCalled, If: "the run may", To: same, Doc: "what the agent says through a tool is kept: a note, a proposed issue, a question, how the run ends", when: callable, do: called},
		{From: running, On: state.EventDue, If: "a run that asked people something still goes on", To: []state.Phase{state.PhaseAwaitingAnswer}, Doc: "it is stopped, its work saved, and the question posted", when: all(due(dueAsk), goesOnAsking), do: askAnyway},
		{From: running, On: state.EventDue, If: "a run that was refused the model for its turns still goes on", To: []state.Phase{state.PhaseFailed}, Doc: "it is stopped, its work saved; the hint names more turns", when: all(due(dueTurns), goesOnWithout), do: endTurns},
		{From: anyPhase, On: state.EventSpent, If: "the run is the task's", To: same, Doc: "added to what run and task have cost", when: func(c *change) bool { return runAsked(c) != nil }, do: spent},
		{From: anyPhase, On: state.EventRunEnded, If: "it was told to stop, or the task is over", To: same, Doc: "the run is filed", when: is(stoppingRun), do: file},
		{From: anyPhase, On: state.EventRunEnded, If: "it was dropped before its result was known", To: same, Doc: "what it has cost is counted", when: func(c *change) bool { return !thisRun(c) && droppedRun(c) != nil }, do: countDropped},
		{From: running, On: state.EventRunEnded, If: "the session to resume was not there", To: same, Doc: "run again without it, with the conversation so far in the prompt", when: is(func(c *change) bool {
			return c.e.Result.Status == state.StatusNoSession && c.t.Run.Session != "" && !tooMany(c)
		}), do: noSession},
		{From: running, On: state.EventRunEnded, If: "its conversation became too long, for the first time", To: same, Doc: "run again in a new session, with the conversation so far in the prompt", when: is(overflowed), do: beginAnew},
		{From: running, On: state.EventRunEnded, If: "its conversation became too long again", To: []state.Phase{state.PhaseFailed}, Doc: "the work is saved; reason and hint are posted", when: is(func(c *change) bool { return c.e.Result.Status == state.StatusContextOverflow }), do: runFailed},
		{From: running, On: state.EventRunEnded, If: "it, or its task, has used what it may", To: []state.Phase{state.PhaseFailed}, Doc: "the work is saved; the cap is posted, and how it is raised", when: is(atCap), do: runFailed},
		{From: running, On: state.EventRunEnded, If: "all tasks together have used what they may, or the model's provider has a limit or refuses the key", To: []state.Phase{state.PhaseInterrupted}, Doc: "goes on by itself when that is over", when: is(held), do: wait},
		{From: running, On: state.EventRunEnded, If: "a limit, a lost VM, an overloaded model", To: []state.Phase{state.PhaseInterrupted, state.PhaseFailed}, Doc: "tried again by itself after a while, a bounded number of times", when: is(class("retryable")), do: interrupted},
		{From: running, On: state.EventRunEnded, If: "anything else that is not success", To: []state.Phase{state.PhaseFailed}, Doc: "the work is saved; reason and hint are posted", when: is(not(class("success"))), do: runFailed},
		{From: running, On: state.EventRunEnded, If: "its closing block cannot be read, for the first time", To: same, Doc: "the agent is asked for the block once more, in the same session, and for nothing else", when: is(cannotRead), do: askAgain},
		{From: building, On: state.EventRunEnded, If: "checks", To: []state.Phase{Same, state.PhaseImplementing, state.PhaseAddressingReview}, Doc: "green: publish; red: the agent gets the tails, a bounded number of times", when: is(checkRun), do: checked},
		{From: running, On: state.EventRunEnded, If: "it asks a question", To: []state.Phase{state.PhaseAwaitingAnswer}, Doc: "the question is posted", when: is(asks), do: askPeople},
		{From: planning, On: state.EventRunEnded, If: "nothing is to be built", To: []state.Phase{state.PhaseDone}, Doc: "the answer is a comment, and the task is done", when: is(reports), do: report},
		{From: planning, On: state.EventRunEnded, If: "something trusted was said meanwhile", To: same, Doc: "revised before it is posted", when: is(overtaken), do: reviseAgain},
		{From: planning, On: state.EventRunEnded, To: awaiting, Doc: "the new revision is posted and waits for approval", when: mine, do: planned},
		{From: building, On: state.EventRunEnded, To: same, Doc: "the changeset is read from the VM", when: mine, do: built},
	}
}

// stepRows are what the jobs that lead to a run report.
func stepRows() []Row {
	return []Row{
		{From: working, On: state.EventStarted, If: "nothing is visible to the agent", To: same, Doc: "wait; the comment says which text to 👍", when: func(c *change) bool { return !c.e.Start.Visible }, do: nothingVisible},
		{From: working, On: state.EventStarted, If: "an outsider changed the issue", To: same, Doc: "wait until a writer says replan", when: func(c *change) bool { return c.t.Frozen.Changed != nil }, do: startedButEdited},
		{From: []state.Phase{state.PhaseQueued}, On: state.EventStarted, To: []state.Phase{state.PhasePreliminaryPlanning, state.PhasePlanning, state.PhaseImplementing}, Doc: "the first run is launched", do: started},
		{From: running, On: state.EventStarted, If: "no run is there yet", To: same, Doc: "the run is launched with what was read anew", when: func(c *change) bool { return c.t.Run == nil }, do: restarted},
		{From: working, On: state.EventHeldUp, To: same, Doc: "waits for something besides people, says what, and looks again by itself", do: heldUp},
		{From: working, On: state.EventAsked, To: []state.Phase{state.PhaseAwaitingAnswer}, Doc: "a question is posted", do: asked},
		{From: running, On: state.EventLaunched, To: same, Doc: "an agent works", when: thisRun, do: launched},
		{From: anyPhase, On: state.EventLaunched, If: "the task turned away meanwhile", To: same, Doc: "the run is stopped again; an ended task's VM is deleted", do: launchedLate},
		{From: approving, On: state.EventApproved, If: "somebody said something, and it is not known yet what that person may do", To: same, Doc: "checked again a moment later: a change request that came before wins", when: unheard, do: checkLater},
		{From: approving, On: state.EventApproved, If: "the newest revision, nothing trusted came before", To: []state.Phase{state.PhasePlanning, state.PhaseImplementing, state.PhaseAddressingReview}, Doc: "approved: the stored plan is carried out, the stored changes are published", when: approvable, do: approved},
		{From: open, On: state.EventApproved, To: same, Doc: "too late: answered with the reason", do: func(c *change) { c.e.Detail = whyNot(c); noApproval(c) }},
		{From: running, On: state.EventNoApproval, If: "withdrawn before the start", To: awaiting, Doc: "the approval does not hold any more; the plan waits again", when: func(c *change) bool { return withdrawn(c) && thisRun(c) && c.t.Run.State == state.RunLaunching }, do: revoked},
		{From: building, On: state.EventNoApproval, If: "withdrawn before the changes were published", To: asking, Doc: "the approval does not hold any more; the changes wait again", when: publishDoubted, do: publishRevoked},
		{From: open, On: state.EventNoApproval, To: same, Doc: "answered once per revision and reason", do: noApproval},
		{From: open, On: state.EventStale, To: same, Doc: "that revision can never be approved again", do: func(c *change) { c.stale(c.e.Detail) }},
		{From: []state.Phase{state.PhaseInterrupted}, On: state.EventDue, If: "resume, after too many runs without a person's word", To: []state.Phase{state.PhaseFailed}, Doc: "reason and hint are posted", when: all(due("resume"), tooMany), do: tooManyRuns},
		{From: []state.Phase{state.PhaseInterrupted}, On: state.EventDue, If: "resume", To: resumed, Doc: "goes on by itself", when: due("resume"), do: resume},
		{From: working, On: state.EventDue, If: "recheck", To: same, Doc: "looks again whether it can go on", when: all(due("recheck"), func(c *change) bool { return c.t.Waiting != nil }), do: again},
		{From: approving, On: state.EventDue, If: "remind", To: same, Doc: "a reminder is posted", when: all(due("remind"), sameNewest), do: remind},
		{From: approving, On: state.EventDue, If: "expire", To: []state.Phase{state.PhaseCancelled}, Doc: "nobody approved it in time", when: all(due("expire"), sameNewest), do: func(c *change) { c.cancel("nobody approved " + whatWaits(c) + " in time") }},
		{From: []state.Phase{state.PhasePROpen}, On: state.EventStepFailed, If: "the review could not be read, and waiting helps", To: []state.Phase{state.PhaseInterrupted, state.PhaseFailed}, Doc: "read again by itself after a while, a bounded number of times", when: func(c *change) bool { return c.e.Failure.Job == state.JobGather && !c.e.Failure.RetryAt.IsZero() }, do: stepInterrupted},
		{From: []state.Phase{state.PhasePROpen}, On: state.EventStepFailed, If: "the review could not be read", To: []state.Phase{state.PhaseFailed}, Doc: "reason and hint are posted; retry reads it again", when: func(c *change) bool { return c.e.Failure.Job == state.JobGather }, do: stepFailed},
		{From: ended, On: state.EventStepFailed, If: "the status comment, within a day of the end or not too often", To: same, Doc: "it is written after a while: it has to show the end", when: endUnshown, do: func(c *change) { c.t.Status.Failed++ }},
		{From: anyPhase, On: state.EventStepFailed, If: "a proposed issue could not be created", To: same, Doc: "the person who asked for it is told why", when: func(c *change) bool { return c.e.Failure.Job == state.JobIssue }, do: issueFailed},
		{From: open, On: state.EventStepFailed, If: "a job beside the life of the task", To: same, Doc: "noted for the operator", when: not(lifeJob), do: besideFailed},
		{From: resumed, On: state.EventStepFailed, If: "waiting helps", To: []state.Phase{state.PhaseInterrupted, state.PhaseFailed}, Doc: "tried again by itself after a while, a bounded number of times", when: func(c *change) bool { return !c.e.Failure.RetryAt.IsZero() }, do: stepInterrupted},
		{From: resumed, On: state.EventStepFailed, To: []state.Phase{state.PhaseFailed}, Doc: "reason and hint are posted", do: stepFailed},
		{From: anyPhase, On: state.EventSaved, To: same, Doc: "what the stopped run left is kept", do: saved},
		{From: anyPhase, On: state.EventReleased, To: same, Doc: "the VM is gone", when: func(c *change) bool { return c.t.VM != nil && (c.e.VM == "" || c.e.VM == c.t.VM.Name) }, do: released},
	}
}

// sleepRows put a VM's work away while nobody needs it, and bring it back.
func sleepRows() []Row {
	return []Row{
		{From: open, On: state.EventDue, If: "idle", To: same, Doc: "nobody needed the VM until the paid span's end, or for a while: its work is put away", when: all(due(dueIdle), idles), do: goToSleep},
		{From: open, On: state.EventDue, If: "a span of the VM that is paid for ends", To: []state.Phase{Same, state.PhaseFailed, state.PhaseInterrupted}, Doc: "a run is stopped and its work saved if there may not be another one: hours or money for VMs are used up", when: all(due(DueSpan), func(c *change) bool { return c.t.VM != nil && c.t.VM.Name == c.e.Hash }), do: spanEnds},
		{From: open, On: state.EventDue, If: "nobody wanted what was put away", To: same, Doc: "it is deleted, and a comment says so", when: all(due(dueUnused), func(c *change) bool { return c.t.Asleep != nil }), do: unused},
		{From: anyPhase, On: state.EventDue, If: "a while after the end", To: same, Doc: "what was put away is deleted", when: due(dueForget), do: forgetDue},
		{From: anyPhase, On: state.EventSlept, If: "it is the task's VM", To: same, Doc: "the work is put away and the VM goes, unless somebody wants it by now", when: sameVM, do: slept},
		{From: anyPhase, On: state.EventSlept, If: "the task has another VM by now, or none", To: same, Doc: "what was put away is deleted", do: sleptLate},
		{From: building, On: state.EventWoken, If: "for the present step", To: []state.Phase{Same, state.PhaseFailed}, Doc: "the work is on a VM again, and the step is taken", when: func(c *change) bool { return string(c.t.Step) == c.e.Detail }, do: woken},
		{From: anyPhase, On: state.EventWoken, To: same, Doc: "the VM waits for the next run; an ended task's is deleted", do: wokenLate},
	}
}

// publishRows lead from a changeset to the pull request.
func publishRows() []Row {
	return []Row{
		{From: building, On: state.EventCollected, If: "the push gate refuses", To: []state.Phase{state.PhaseAwaitingAnswer}, Doc: "rule, path and remedy are posted", when: func(c *change) bool { return len(c.e.Refusals) > 0 }, do: refused},
		{From: []state.Phase{state.PhaseImplementing}, On: state.EventCollected, If: "no net change", To: []state.Phase{state.PhaseAwaitingAnswer}, Doc: "said in a comment; no failure", when: nothingNew, do: noChanges},
		{From: []state.Phase{state.PhaseAddressingReview}, On: state.EventCollected, If: "no net change", To: same, Doc: "the threads are answered without a commit", when: nothingNew, do: func(c *change) { c.work(state.JobAnswer) }},
		{From: building, On: state.EventCollected, If: "somebody pushed meanwhile", To: []state.Phase{Same, state.PhaseInterrupted}, Doc: "the VM's commits are rebased onto it and judged again", when: behind, do: rebaseFirst},
		{From: building, On: state.EventCollected, If: "the repository has checks", To: same, Doc: "the checks run on the changeset's tree", when: wantsChecks, do: check},
		{From: building, On: state.EventCollected, To: same, Doc: "published as data, or shown first", do: publish},
		{From: building, On: state.EventShown, If: "something trusted was said meanwhile", To: same, Doc: "the agent takes it in before the changes are shown", when: all(thisShown, func(c *change) bool { return len(c.untaken()) > 0 }, not(tooMany)), do: func(c *change) { c.launchRun(runOfPhase(c.t.Phase)) }},
		{From: building, On: state.EventShown, To: asking, Doc: "the changes are posted and wait for approval", when: thisShown, do: shown},
		{From: building, On: state.EventCommitted, To: same, Doc: "the objects are on GitHub; the branch is moved next", when: thisWork, do: committed},
		{From: building, On: state.EventOvertaken, If: "not too often", To: same, Doc: "somebody pushed: the VM's commits are rebased onto it and judged again", when: canRebase, do: rebase},
		{From: building, On: state.EventOvertaken, To: []state.Phase{state.PhaseInterrupted}, Doc: "somebody keeps pushing: tried again after a while", do: rebaseLater},
		{From: building, On: state.EventConflict, If: "after too many runs without a person's word", To: []state.Phase{state.PhaseFailed}, Doc: "reason and hint are posted", when: tooMany, do: tooManyRuns},
		{From: building, On: state.EventConflict, To: []state.Phase{Same, state.PhaseAwaitingAnswer}, Doc: "a round for the agent; after several, people are asked", do: conflict},
		{From: []state.Phase{state.PhaseImplementing}, On: state.EventMoved, If: "no pull request yet", To: same, Doc: "the pull request is opened", when: all(thisWork, not(hasPR)), do: func(c *change) { moved(c); c.work(state.JobOpenPR) }},
		{From: building, On: state.EventMoved, To: same, Doc: "the threads are answered", when: thisWork, do: func(c *change) { moved(c); c.work(state.JobAnswer) }},
		{From: building, On: state.EventPROpened, To: []state.Phase{state.PhasePROpen}, Doc: "the pull request waits for people", do: prOpened},
		{From: []state.Phase{state.PhaseAwaitingAnswer, state.PhaseFailed, state.PhaseCancelled, state.PhaseDone}, On: state.EventPROpened, If: "the task turned away while it was being opened", To: same, Doc: "it is noted, so that people find it", when: func(c *change) bool { return c.t.PR == nil && c.t.Branch.Head != "" }, do: func(c *change) { c.t.PR = c.e.PR }},
		{From: building, On: state.EventAnswered, To: []state.Phase{state.PhasePROpen, state.PhaseAddressingReview}, Doc: "the round is over; what came meanwhile makes the next one", do: answered},
		{From: []state.Phase{state.PhasePROpen}, On: state.EventGathered, If: "there is something to do", To: []state.Phase{state.PhaseAddressingReview}, Doc: "a round begins", when: all(freshFeedback, not(tooMany)), do: round},
		{From: asking, On: state.EventGathered, If: "there is something to do", To: []state.Phase{state.PhaseAddressingReview}, Doc: "a change request: the agent works on it, and the changes are shown anew", when: freshFeedback, do: reviewedChanges},
		{From: open, On: state.EventGathered, To: same, Doc: "kept for the next round", do: keepFeedback},
	}
}

// talkRows keep the books of what was said.
func talkRows() []Row {
	return []Row{
		{From: approving, On: state.EventPosted, If: "a plan", To: []state.Phase{Same, state.PhasePreliminaryPlanning, state.PhasePlanning, state.PhaseImplementing, state.PhaseAddressingReview}, Doc: "it waits for approval; words that came before it was posted make the next revision", when: func(c *change) bool { return c.e.Post != nil && c.e.Post.Kind == state.PostPlan }, do: posted},
		{From: anyPhase, On: state.EventPosted, To: same, Doc: "the comment's id is stored", do: posted},
		{From: anyPhase, On: state.EventCreated, If: "it was proposed", To: same, Doc: "its number is stored, and who wanted it gets a link", when: func(c *change) bool { return c.e.Created != nil && c.t.Proposal(c.e.Created.N) != nil }, do: issueCreated},
		{From: anyPhase, On: state.EventStatusSent, To: same, Doc: "the version that the status comment shows is stored", do: statusSent},
	}
}

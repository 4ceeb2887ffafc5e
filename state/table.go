package state

import "slices"

// Row is one line of the transition table: in one of the phases From, the event On (for a comment:
// with the command Verb) leads to one of the phases To.
type Row struct {
	From []Phase // nil: no task yet
	On   EventKind
	Verb Verb // of EventCommented; empty for other events and for plain comments
	// If names the condition, in words.
	If string
	// To lists where the task may be afterwards; a single entry "same" leaves the phase alone.
	To  []Phase
	Doc string // what happens, one sentence

	when func(*change) bool
	do   func(*change)
}

// Same stands in Row.To for "the phase does not change".
const Same Phase = "same"

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
	anyPhase  = Phases()
	ended     = []Phase{PhaseDone, PhaseCancelled}
	open      = without(Phases(), PhaseDone, PhaseCancelled)
	planning  = []Phase{PhasePreliminaryPlanning, PhasePlanning}
	awaiting  = []Phase{PhaseAwaitingPreliminaryApproval, PhaseAwaitingPlanApproval}
	asking    = []Phase{PhaseAwaitingPublishApproval}
	approving = slices.Concat(awaiting, asking)
	building  = []Phase{PhaseImplementing, PhaseAddressingReview}
	running   = []Phase{PhasePreliminaryPlanning, PhasePlanning, PhaseImplementing, PhaseAddressingReview}
	working   = append([]Phase{PhaseQueued}, running...)
	resumable = []Phase{PhaseFailed, PhaseInterrupted, PhaseAwaitingAnswer}
	resumed   = slices.Concat(working, approving, []Phase{PhasePROpen}) // where jobs bring a task on, and a stopped one goes on
	same      = []Phase{Same}
)

// without returns all phases but some.
func without(all []Phase, but ...Phase) []Phase {
	return slices.DeleteFunc(slices.Clone(all), func(p Phase) bool { return slices.Contains(but, p) })
}

// table is the whole life of a task. It is read, never changed; rows are tried from the top.
var table = slices.Concat(peopleRows(), orderRows(), runRows(), stepRows(), sleepRows(), publishRows(), talkRows())

// peopleRows are what people do besides commands.
func peopleRows() []Row {
	return []Row{
		{On: EventTriggered, If: "by somebody who may not", To: same, Doc: "the trigger gets a 😕, nothing starts", when: not(allowed), do: (*change).refuseTrigger},
		{On: EventTriggered, To: []Phase{PhaseQueued}, Doc: "the task begins: 👀, a status comment, and a look at the repository", do: (*change).begin},
		{From: ended, On: EventTriggered, If: "by a writer, after the end", To: []Phase{PhaseQueued}, Doc: "the task begins anew", when: all(allowed, not((*change).outdated)), do: (*change).begin},
		{From: open, On: EventTriggered, If: "by somebody who may not", To: same, Doc: "counted in the status comment", when: not(allowed), do: (*change).ignore},
		{From: []Phase{PhaseFailed}, On: EventTriggered, To: resumed, Doc: "as retry", do: (*change).retry},
		{From: open, On: EventTriggered, To: same, Doc: "one task per issue: a second trigger is told so", do: (*change).secondTrigger},
		{From: open, On: EventUntriggered, If: "it was done before the task began", To: same, Doc: "nothing: the trigger is the later word", when: (*change).beforeBegin, do: func(*change) {}},
		{From: open, On: EventIssueClosed, If: "it was done before the task began, and the issue may be open again", To: same, Doc: "nothing: the trigger is the later word", when: (*change).beforeBegin, do: func(*change) {}},
		{From: open, On: EventUntriggered, If: "the assignment or label that started it", To: []Phase{PhaseCancelled}, Doc: "cancelled; a running agent is stopped and its work saved", when: (*change).sameTrigger, do: func(c *change) { c.cancel("the " + takenBack(c.t.Trigger.Via) + " was taken back" + by(c.e.By)) }},
		{From: open, On: EventIssueClosed, If: "a pull request is open", To: same, Doc: "look at the pull request: a merge closes the issue too", when: func(c *change) bool { return c.hasPR() && c.e.Via != ViaConfirmed }, do: func(c *change) { c.due("closed", "issue", c.e.Now) }},
		{From: open, On: EventIssueClosed, To: []Phase{PhaseCancelled}, Doc: "cancelled", do: func(c *change) { c.cancel("the issue was closed") }},
		{From: open, On: EventIssueGone, To: []Phase{PhaseCancelled}, Doc: "cancelled without a comment: there is no issue any more", do: (*change).gone},
		{From: open, On: EventGone, To: []Phase{PhaseCancelled}, Doc: "cancelled without a comment: the App has no access any more", do: (*change).gone},
		{From: ended, On: EventBack, If: "it ended because errand had no access", To: same, Doc: "people are told so", when: func(c *change) bool { return c.t.End != nil && c.t.End.Class == classAccess }, do: (*change).back},
		{From: anyPhase, On: EventRenamed, To: same, Doc: "the repository's new name is stored, and whose installation reaches it", do: (*change).moveTo},
		{From: anyPhase, On: EventLocked, If: "it was open", To: same, Doc: "shown in the status comment; comments wait", when: func(c *change) bool { return !c.t.Locked }, do: func(c *change) { c.t.Locked = true }},
		{From: anyPhase, On: EventUnlocked, If: "it was locked", To: same, Doc: "comments that waited are posted", when: func(c *change) bool { return c.t.Locked }, do: func(c *change) { c.t.Locked = false }},
		{From: open, On: EventIssueEdited, If: "text as frozen", To: same, Doc: "an edit that was taken back ends the pause", when: (*change).textAsFrozen, do: (*change).unpause},
		{From: slices.Concat([]Phase{PhaseQueued}, planning, awaiting), On: EventIssueEdited, If: "by an outsider", To: same, Doc: "pause: the difference is shown until a writer says replan", when: not(allowed), do: (*change).outsiderEdit},
		{From: awaiting, On: EventIssueEdited, To: planning, Doc: "the new text is frozen and a new revision is made", do: (*change).refreezeAndRevise},
		{From: slices.Concat([]Phase{PhaseQueued}, planning), On: EventIssueEdited, If: "by a writer, while the task was in the making", To: same, Doc: "the new text is frozen, and everything is read again", when: func(c *change) bool { return c.e.Via == ViaStart }, do: (*change).refreezeAndStart},
		{From: slices.Concat([]Phase{PhaseQueued}, planning), On: EventIssueEdited, To: same, Doc: "the new text is frozen; the plan under way is revised before it is posted", do: (*change).refreeze},
		{From: approving, On: EventPlanEdited, If: "a sweep found a ticked box", To: same, Doc: "no approval, because nobody knows who ticked it: the box is cleared, with a comment", when: via(ViaSweep), do: (*change).unseenTick},
		{From: open, On: EventPlanEdited, If: "a sweep found a ticked box, and no plan waits for approval", To: same, Doc: "nothing", when: via(ViaSweep), do: func(*change) {}},
		{From: approving, On: EventPlanEdited, If: "only the approval box, ticked, by a writer", To: same, Doc: "the tick is checked as an approval", when: all((*change).ticked, allowed), do: (*change).checkCandidate},
		{From: open, On: EventPlanEdited, If: "only a tick, by somebody who may not approve or where nothing waits", To: same, Doc: "the tick is taken back", when: (*change).ticked, do: (*change).untick},
		{From: open, On: EventPlanEdited, If: "only boxes", To: same, Doc: "nothing", when: func(c *change) bool { return c.e.OnlyBoxes }, do: func(*change) {}},
		{From: open, On: EventPlanEdited, To: same, Doc: "that revision can never be approved again", do: func(c *change) { c.stale(StaleEdited) }},
		{From: anyPhase, On: EventPlanDeleted, To: same, Doc: "nothing links to that comment any more; a revision can never be approved again", when: (*change).knowsComment, do: (*change).commentDeleted},
		{From: approving, On: EventThumb, If: "on a plan", To: same, Doc: "the 👍 is checked as an approval; that of somebody who may not is counted in the status comment", when: func(c *change) bool { return c.e.Candidate != nil }, do: (*change).checkCandidate},
		{From: open, On: EventThumb, If: "by somebody who may not approve", To: same, Doc: "counted in the status comment", when: not(allowed), do: (*change).ignore},
		{From: slices.Concat(planning, building), On: EventThumb, If: "on a plan that is being made anew", To: same, Doc: "answered: a change request came first", when: func(c *change) bool { return c.e.Candidate != nil }, do: (*change).lateThumb},
		{From: awaiting, On: EventThumb, If: "on an outsider's comment", To: planning, Doc: "it counts as a comment by the person who vouched for it: the discussion is read anew, and a new revision made", do: (*change).vouched},
		{From: working, On: EventThumb, If: "on an outsider's comment", To: same, Doc: "kept for the next run; a task that waits for text starts", when: func(c *change) bool { return c.e.Comment != nil }, do: (*change).keepOrPoke},
		{From: open, On: EventReviewed, If: "by somebody who may not", To: same, Doc: "counted in the status comment", when: not(allowed), do: (*change).ignore},
		{From: open, On: EventReviewed, To: same, Doc: "reviews are gathered for a while into one round; a bare approval sets ready to merge", when: (*change).hasPR, do: (*change).reviewed},
		{From: open, On: EventPRClosed, If: "merged", To: []Phase{PhaseDone}, Doc: "done: VM gone, a last comment", when: func(c *change) bool { return c.e.Merged && c.hasPR() }, do: (*change).merged},
		{From: open, On: EventPRClosed, To: []Phase{PhaseCancelled}, Doc: "cancelled", when: (*change).hasPR, do: func(c *change) { c.cancel("the pull request was closed without a merge") }},
		{From: open, On: EventPushed, To: same, Doc: "the branch's new head is stored; the next run starts from it", do: (*change).pushed},
		{From: open, On: EventChecksChanged, If: "a pull request is open", To: same, Doc: "all checks of its head are read, a moment later", when: (*change).hasPR, do: (*change).readChecks},
		{From: open, On: EventChecksRead, If: "they differ from what is shown", To: same, Doc: "shown in the status comment", when: func(c *change) bool { return c.hasPR() && c.t.PR.Checks != c.e.Detail }, do: func(c *change) { c.t.PR.Checks = c.e.Detail }},
		{From: working, On: EventPoked, If: "it waits for something", To: same, Doc: "look again now", when: func(c *change) bool { return c.t.Waiting != nil }, do: (*change).again},
	}
}

// orderRows are the commands and plain comments.
func orderRows() []Row {
	msg := func(c *change) bool { return c.e.Comment.Mention }
	return []Row{
		{On: EventCommented, Verb: VerbPlan, If: "by a writer, on an issue", To: []Phase{PhaseQueued}, Doc: "a mention starts the task", when: all(allowed, (*change).onIssue), do: (*change).begin},
		{On: EventCommented, Verb: VerbMessage, If: "by a writer, on an issue", To: []Phase{PhaseQueued}, Doc: "a mention starts the task", when: all(allowed, (*change).onIssue), do: (*change).begin},
		{On: EventCommented, Verb: VerbPlan, To: same, Doc: "the trigger gets a 😕, nothing starts", when: (*change).onIssue, do: (*change).refuseTrigger},
		{On: EventCommented, Verb: VerbMessage, To: same, Doc: "the trigger gets a 😕, nothing starts", when: (*change).onIssue, do: (*change).refuseTrigger},
		{From: anyPhase, On: EventCommented, If: "it was deleted, hidden or edited before it was read", To: same, Doc: "nothing is done; commands, and edits that could be some, are answered", when: func(c *change) bool { return c.e.Comment.Withdrawn != "" }, do: (*change).withdrawnComment},
		{From: anyPhase, On: EventCommented, If: "by somebody who may not", To: same, Doc: "a mention is counted in the status comment, other comments are withheld from the agent", when: not(allowed), do: (*change).outsiderComment},
		{From: anyPhase, On: EventCommented, Verb: VerbHelp, To: same, Doc: "the commands are listed", do: reply(ReplyHelp)},
		{From: anyPhase, On: EventCommented, Verb: VerbUnknown, To: same, Doc: "the nearest command is named", do: reply(ReplyUnknown)},
		{From: anyPhase, On: EventCommented, Verb: VerbStatus, To: same, Doc: "the state in one paragraph, with a link to the status comment", do: reply(ReplyStatus)},
		{From: ended, On: EventCommented, Verb: VerbPlan, If: "on the issue, after the end", To: []Phase{PhaseQueued}, Doc: "the task begins anew", when: all((*change).onIssue, not((*change).outdated)), do: (*change).begin},
		{From: ended, On: EventCommented, Verb: VerbPlan, To: same, Doc: "😕, and told, once, that the task is over and how to begin anew", do: (*change).endedMessage},
		{From: ended, On: EventCommented, Verb: VerbMessage, To: same, Doc: "😕, and told, once, that the task is over and how to begin anew", do: (*change).endedMessage},
		{From: ended, On: EventCommented, Verb: VerbBudget, To: same, Doc: "told that the task is over", do: reply(ReplyStatus)},
		{From: ended, On: EventCommented, Verb: VerbModel, To: same, Doc: "told that the task is over", do: reply(ReplyStatus)},
		{From: ended, On: EventCommented, Verb: VerbCancel, To: same, Doc: "nothing to cancel", do: reply(ReplyNothingToCancel)},
		{From: approving, On: EventCommented, Verb: VerbApprove, To: []Phase{Same, PhaseImplementing, PhaseAddressingReview}, Doc: "checked as an approval; changes that are approved on a condition go back to the agent", do: (*change).checkOrder},
		{From: anyPhase, On: EventCommented, Verb: VerbApprove, To: same, Doc: "no plan waits for an approval", do: reply(ReplyNoneOpen)},
		{From: open, On: EventCommented, Verb: VerbCancel, If: "it was said before the task began", To: same, Doc: "nothing to cancel then", when: (*change).beforeBegin, do: reply(ReplyNothingToCancel)},
		{From: open, On: EventCommented, Verb: VerbCancel, To: []Phase{PhaseCancelled}, Doc: "cancelled; a running agent is stopped and its work saved", do: func(c *change) { c.cancel("@" + c.e.By.Login + " cancelled it") }},
		{From: append([]Phase{PhaseInterrupted}, working...), On: EventCommented, Verb: VerbStop, To: []Phase{PhaseAwaitingAnswer}, Doc: "the run, if there is one, is stopped, its work saved, the VM kept; nothing goes on by itself", do: (*change).stopByHand},
		{From: anyPhase, On: EventCommented, Verb: VerbStop, To: same, Doc: "nothing runs", do: reply(ReplyNothingToCancel)},
		{From: asking, On: EventCommented, Verb: VerbRetry, If: "they cannot be approved any more", To: building, Doc: "the changes are shown anew", when: func(c *change) bool { return c.t.NewestPlan().Stale != "" }, do: (*change).showAgain},
		{From: resumable, On: EventCommented, Verb: VerbRetry, To: resumed, Doc: "goes on where it stopped, on a new VM if told so", do: (*change).retry},
		{From: working, On: EventCommented, Verb: VerbRetry, If: "it waits for something", To: same, Doc: "look again now", when: func(c *change) bool { return c.t.Waiting != nil }, do: (*change).again},
		{From: anyPhase, On: EventCommented, Verb: VerbRetry, To: same, Doc: "nothing to retry", do: reply(ReplyNothingToRetry)},
		{From: slices.Concat(planning, awaiting, []Phase{PhaseQueued, PhaseFailed, PhaseAwaitingAnswer}), On: EventCommented, Verb: VerbReplan, If: "before anything was built", To: []Phase{PhaseQueued, PhasePreliminaryPlanning, PhasePlanning}, Doc: "the issue is read and frozen anew, and a new revision is made", when: func(c *change) bool { return c.t.PR == nil }, do: (*change).replan},
		{From: anyPhase, On: EventCommented, Verb: VerbReplan, To: same, Doc: "too late to plan anew", do: reply(ReplyTooLate)},
		{From: open, On: EventCommented, Verb: VerbBudget, To: []Phase{Same, PhasePreliminaryPlanning, PhasePlanning, PhaseImplementing, PhaseAddressingReview}, Doc: "the cap is raised; a task that stopped at it goes on", do: (*change).budget},
		{From: open, On: EventCommented, Verb: VerbModel, To: same, Doc: "the next runs use that model", do: (*change).model},
		{From: []Phase{PhaseAwaitingAnswer}, On: EventCommented, Verb: VerbCreatePR, If: "errand has asked for the ticket key", To: working, Doc: "goes on with that ticket key", when: (*change).answersKey, do: (*change).createPR},
		{From: anyPhase, On: EventCommented, Verb: VerbIssue, To: same, Doc: "the proposed issue of that number is created, once; answered with a link", do: (*change).createIssue},
		{From: open, On: EventCommented, Verb: VerbCreatePR, To: same, Doc: "the ticket key is noted", do: (*change).noteTicket},
		{From: ended, On: EventCommented, Verb: VerbCreatePR, To: same, Doc: "told that the task is over", do: reply(ReplyStatus)},
		{From: open, On: EventCommented, Verb: VerbPlan, To: same, Doc: "one task per issue", do: reply(ReplyOneTask)},
		{From: awaiting, On: EventCommented, Verb: VerbMessage, To: planning, Doc: "a change request: a new revision", do: (*change).revise},
		{From: asking, On: EventCommented, Verb: VerbMessage, To: building, Doc: "a change request: the agent works on it, and the changes are shown anew", do: (*change).revise},
		{From: approving, On: EventCommented, If: "a command stands in a quote, in code or in other markup only", To: same, Doc: "told that quoted commands do not count; no revision is made", when: func(c *change) bool { return c.e.Comment.Quoted }, do: (*change).quoted},
		{From: awaiting, On: EventCommented, To: planning, Doc: "a change request: a new revision", do: (*change).revise},
		{From: asking, On: EventCommented, If: "on the issue", To: building, Doc: "a change request: the agent works on it, and the changes are shown anew", when: func(c *change) bool { return !c.e.Comment.OnPR }, do: (*change).revise},
		{From: []Phase{PhaseAwaitingAnswer}, On: EventCommented, Verb: VerbMessage, To: working, Doc: "the answer: goes on", do: (*change).answer},
		{From: []Phase{PhaseAwaitingAnswer}, On: EventCommented, If: "on the issue, not after a stop", To: working, Doc: "the answer: goes on", when: func(c *change) bool {
			return !c.e.Comment.OnPR && (c.t.Question == nil || c.t.Question.Kind != AskStopped)
		}, do: (*change).answer},
		{From: []Phase{PhasePROpen}, On: EventCommented, Verb: VerbMessage, To: same, Doc: "gathered for a while into one round", do: (*change).reviewComment},
		{From: slices.Concat(running, []Phase{PhaseInterrupted, PhaseFailed}), On: EventCommented, Verb: VerbMessage, If: "it mentions the bot", To: same, Doc: "kept, and answered after the run; said so once", when: msg, do: (*change).keepMessage},
		{From: []Phase{PhaseQueued}, On: EventCommented, Verb: VerbMessage, To: same, Doc: "👀; read when it starts; what waits looks again", do: (*change).heardEarly},
		{From: planning, On: EventCommented, To: same, Doc: "kept: the plan under way is revised before it is posted", do: (*change).keep},
		{From: []Phase{PhaseQueued}, On: EventCommented, To: same, Doc: "read when it starts; what waits looks again", do: (*change).heardEarly},
		{From: slices.Concat(building, []Phase{PhasePROpen, PhaseAwaitingAnswer, PhaseInterrupted, PhaseFailed}), On: EventCommented, If: "on the issue, to nobody in particular", To: same, Doc: "discussion: later prompts carry it", when: func(c *change) bool { return !c.e.Comment.OnPR && len(c.e.Orders) == 0 }, do: (*change).discussed},
	}
}

// runRows are what supervisors report. Events of superseded runs fit no row.
func runRows() []Row {
	mine := (*change).thisRun
	is := func(f func(*change) bool) func(*change) bool { return all(mine, f) }
	return []Row{
		{From: open, On: EventProgress, To: same, Doc: "last sign of life, session and money are stored", when: mine, do: (*change).progress},
		{From: running, On: EventCalled, If: "the run may", To: same, Doc: "what the agent says through a tool is kept: a note, a proposed issue, a question, how the run ends", when: (*change).callable, do: (*change).called},
		{From: running, On: EventDue, If: "a run that asked people something still goes on", To: []Phase{PhaseAwaitingAnswer}, Doc: "it is stopped, its work saved, and the question posted", when: all(due(dueAsk), (*change).goesOnAsking), do: (*change).askAnyway},
		{From: running, On: EventDue, If: "a run that was refused the model for its turns still goes on", To: []Phase{PhaseFailed}, Doc: "it is stopped, its work saved; the hint names more turns", when: all(due(dueTurns), (*change).goesOnWithout), do: (*change).endTurns},
		{From: anyPhase, On: EventSpent, If: "the run is the task's", To: same, Doc: "added to what run and task have cost", when: func(c *change) bool { return c.runAsked() != nil }, do: (*change).spent},
		{From: anyPhase, On: EventRunEnded, If: "it was told to stop, or the task is over", To: same, Doc: "the run is filed", when: is((*change).stoppingRun), do: (*change).file},
		{From: anyPhase, On: EventRunEnded, If: "it was dropped before its result was known", To: same, Doc: "what it has cost is counted", when: func(c *change) bool { return !c.thisRun() && c.droppedRun() != nil }, do: (*change).countDropped},
		{From: running, On: EventRunEnded, If: "the session to resume was not there", To: same, Doc: "run again without it, with the conversation so far in the prompt", when: is(func(c *change) bool {
			return c.e.Result.Status == StatusNoSession && c.t.Run.Session != "" && !c.tooMany()
		}), do: (*change).noSession},
		{From: running, On: EventRunEnded, If: "its conversation became too long, for the first time", To: same, Doc: "run again in a new session, with the conversation so far in the prompt", when: is((*change).overflowed), do: (*change).beginAnew},
		{From: running, On: EventRunEnded, If: "its conversation became too long again", To: []Phase{PhaseFailed}, Doc: "the work is saved; reason and hint are posted", when: is(func(c *change) bool { return c.e.Result.Status == StatusContextOverflow }), do: (*change).runFailed},
		{From: running, On: EventRunEnded, If: "it, or its task, has used what it may", To: []Phase{PhaseFailed}, Doc: "the work is saved; the cap is posted, and how it is raised", when: is((*change).capped), do: (*change).runFailed},
		{From: running, On: EventRunEnded, If: "all tasks together have used what they may, or the model's provider has a limit or refuses the key", To: []Phase{PhaseInterrupted}, Doc: "goes on by itself when that is over", when: is((*change).held), do: (*change).wait},
		{From: running, On: EventRunEnded, If: "a limit, a lost VM, an overloaded model", To: []Phase{PhaseInterrupted, PhaseFailed}, Doc: "tried again by itself after a while, a bounded number of times", when: is(class("retryable")), do: (*change).interrupted},
		{From: running, On: EventRunEnded, If: "anything else that is not success", To: []Phase{PhaseFailed}, Doc: "the work is saved; reason and hint are posted", when: is(not(class("success"))), do: (*change).runFailed},
		{From: running, On: EventRunEnded, If: "its closing block cannot be read, for the first time", To: same, Doc: "the agent is asked for the block once more, in the same session, and for nothing else", when: is((*change).cannotRead), do: (*change).askAgain},
		{From: building, On: EventRunEnded, If: "checks", To: []Phase{Same, PhaseImplementing, PhaseAddressingReview}, Doc: "green: publish; red: the agent gets the tails, a bounded number of times", when: is((*change).checkRun), do: (*change).checked},
		{From: running, On: EventRunEnded, If: "it asks a question", To: []Phase{PhaseAwaitingAnswer}, Doc: "the question is posted", when: is((*change).asks), do: (*change).ask},
		{From: planning, On: EventRunEnded, If: "nothing is to be built", To: []Phase{PhaseDone}, Doc: "the answer is a comment, and the task is done", when: is((*change).reports), do: (*change).report},
		{From: planning, On: EventRunEnded, If: "something trusted was said meanwhile", To: same, Doc: "revised before it is posted", when: is((*change).overtaken), do: (*change).reviseAgain},
		{From: planning, On: EventRunEnded, To: awaiting, Doc: "the new revision is posted and waits for approval", when: mine, do: (*change).planned},
		{From: building, On: EventRunEnded, To: same, Doc: "the changeset is read from the VM", when: mine, do: (*change).built},
	}
}

// stepRows are what the jobs that lead to a run report.
func stepRows() []Row {
	return []Row{
		{From: working, On: EventStarted, If: "nothing is visible to the agent", To: same, Doc: "wait; the comment says which text to 👍", when: func(c *change) bool { return !c.e.Start.Visible }, do: (*change).nothingVisible},
		{From: working, On: EventStarted, If: "an outsider changed the issue", To: same, Doc: "wait until a writer says replan", when: func(c *change) bool { return c.t.Frozen.Changed != nil }, do: (*change).startedButEdited},
		{From: []Phase{PhaseQueued}, On: EventStarted, To: []Phase{PhasePreliminaryPlanning, PhasePlanning, PhaseImplementing}, Doc: "the first run is launched", do: (*change).started},
		{From: running, On: EventStarted, If: "no run is there yet", To: same, Doc: "the run is launched with what was read anew", when: func(c *change) bool { return c.t.Run == nil }, do: (*change).restarted},
		{From: working, On: EventHeldUp, To: same, Doc: "waits for something besides people, says what, and looks again by itself", do: (*change).heldUp},
		{From: working, On: EventAsked, To: []Phase{PhaseAwaitingAnswer}, Doc: "a question is posted", do: (*change).asked},
		{From: running, On: EventLaunched, To: same, Doc: "an agent works", when: (*change).thisRun, do: (*change).launched},
		{From: anyPhase, On: EventLaunched, If: "the task turned away meanwhile", To: same, Doc: "the run is stopped again; an ended task's VM is deleted", do: (*change).launchedLate},
		{From: approving, On: EventApproved, If: "somebody said something, and it is not known yet what that person may do", To: same, Doc: "checked again a moment later: a change request that came before wins", when: (*change).unheard, do: (*change).checkLater},
		{From: approving, On: EventApproved, If: "the newest revision, nothing trusted came before", To: []Phase{PhasePlanning, PhaseImplementing, PhaseAddressingReview}, Doc: "approved: the stored plan is carried out, the stored changes are published", when: (*change).approvable, do: (*change).approved},
		{From: open, On: EventApproved, To: same, Doc: "too late: answered with the reason", do: func(c *change) { c.e.Detail = c.whyNot(); c.noApproval() }},
		{From: running, On: EventNoApproval, If: "withdrawn before the start", To: awaiting, Doc: "the approval does not hold any more; the plan waits again", when: func(c *change) bool { return c.withdrawn() && c.thisRun() && c.t.Run.State == RunLaunching }, do: (*change).revoked},
		{From: building, On: EventNoApproval, If: "withdrawn before the changes were published", To: asking, Doc: "the approval does not hold any more; the changes wait again", when: (*change).publishDoubted, do: (*change).publishRevoked},
		{From: open, On: EventNoApproval, To: same, Doc: "answered once per revision and reason", do: (*change).noApproval},
		{From: open, On: EventStale, To: same, Doc: "that revision can never be approved again", do: func(c *change) { c.stale(c.e.Detail) }},
		{From: []Phase{PhaseInterrupted}, On: EventDue, If: "resume, after too many runs without a person's word", To: []Phase{PhaseFailed}, Doc: "reason and hint are posted", when: all(due("resume"), (*change).tooMany), do: (*change).tooManyRuns},
		{From: []Phase{PhaseInterrupted}, On: EventDue, If: "resume", To: resumed, Doc: "goes on by itself", when: due("resume"), do: (*change).resume},
		{From: working, On: EventDue, If: "recheck", To: same, Doc: "looks again whether it can go on", when: all(due("recheck"), func(c *change) bool { return c.t.Waiting != nil }), do: (*change).again},
		{From: approving, On: EventDue, If: "remind", To: same, Doc: "a reminder is posted", when: all(due("remind"), (*change).sameNewest), do: (*change).remind},
		{From: approving, On: EventDue, If: "expire", To: []Phase{PhaseCancelled}, Doc: "nobody approved it in time", when: all(due("expire"), (*change).sameNewest), do: func(c *change) { c.cancel("nobody approved " + c.whatWaits() + " in time") }},
		{From: []Phase{PhasePROpen}, On: EventStepFailed, If: "the review could not be read, and waiting helps", To: []Phase{PhaseInterrupted, PhaseFailed}, Doc: "read again by itself after a while, a bounded number of times", when: func(c *change) bool { return c.e.Failure.Job == JobGather && !c.e.Failure.RetryAt.IsZero() }, do: (*change).stepInterrupted},
		{From: []Phase{PhasePROpen}, On: EventStepFailed, If: "the review could not be read", To: []Phase{PhaseFailed}, Doc: "reason and hint are posted; retry reads it again", when: func(c *change) bool { return c.e.Failure.Job == JobGather }, do: (*change).stepFailed},
		{From: ended, On: EventStepFailed, If: "the status comment, within a day of the end or not too often", To: same, Doc: "it is written after a while: it has to show the end", when: (*change).endUnshown, do: func(c *change) { c.t.Status.Failed++ }},
		{From: anyPhase, On: EventStepFailed, If: "a proposed issue could not be created", To: same, Doc: "the person who asked for it is told why", when: func(c *change) bool { return c.e.Failure.Job == JobIssue }, do: (*change).issueFailed},
		{From: open, On: EventStepFailed, If: "a job beside the life of the task", To: same, Doc: "noted for the operator", when: not((*change).lifeJob), do: (*change).besideFailed},
		{From: resumed, On: EventStepFailed, If: "waiting helps", To: []Phase{PhaseInterrupted, PhaseFailed}, Doc: "tried again by itself after a while, a bounded number of times", when: func(c *change) bool { return !c.e.Failure.RetryAt.IsZero() }, do: (*change).stepInterrupted},
		{From: resumed, On: EventStepFailed, To: []Phase{PhaseFailed}, Doc: "reason and hint are posted", do: (*change).stepFailed},
		{From: anyPhase, On: EventSaved, To: same, Doc: "what the stopped run left is kept", do: (*change).saved},
		{From: anyPhase, On: EventReleased, To: same, Doc: "the VM is gone", when: func(c *change) bool { return c.t.VM != nil && (c.e.VM == "" || c.e.VM == c.t.VM.Name) }, do: (*change).released},
	}
}

// sleepRows put a VM's work away while nobody needs it, and bring it back.
func sleepRows() []Row {
	return []Row{
		{From: open, On: EventDue, If: "idle", To: same, Doc: "nobody needed the VM until the paid span's end, or for a while: its work is put away", when: all(due(dueIdle), (*change).idles), do: (*change).goToSleep},
		{From: open, On: EventDue, If: "a span of the VM that is paid for ends", To: []Phase{Same, PhaseFailed, PhaseInterrupted}, Doc: "a run is stopped and its work saved if there may not be another one: hours or money for VMs are used up", when: all(due(DueSpan), func(c *change) bool { return c.t.VM != nil && c.t.VM.Name == c.e.Hash }), do: (*change).spanEnds},
		{From: open, On: EventDue, If: "nobody wanted what was put away", To: same, Doc: "it is deleted, and a comment says so", when: all(due(dueUnused), func(c *change) bool { return c.t.Asleep != nil }), do: (*change).unused},
		{From: anyPhase, On: EventDue, If: "a while after the end", To: same, Doc: "what was put away is deleted", when: due(dueForget), do: (*change).forgetDue},
		{From: anyPhase, On: EventSlept, If: "it is the task's VM", To: same, Doc: "the work is put away and the VM goes, unless somebody wants it by now", when: (*change).sameVM, do: (*change).slept},
		{From: anyPhase, On: EventSlept, If: "the task has another VM by now, or none", To: same, Doc: "what was put away is deleted", do: (*change).sleptLate},
		{From: building, On: EventWoken, If: "for the present step", To: []Phase{Same, PhaseFailed}, Doc: "the work is on a VM again, and the step is taken", when: func(c *change) bool { return string(c.t.Step) == c.e.Detail }, do: (*change).woken},
		{From: anyPhase, On: EventWoken, To: same, Doc: "the VM waits for the next run; an ended task's is deleted", do: (*change).wokenLate},
	}
}

// publishRows lead from a changeset to the pull request.
func publishRows() []Row {
	return []Row{
		{From: building, On: EventCollected, If: "the push gate refuses", To: []Phase{PhaseAwaitingAnswer}, Doc: "rule, path and remedy are posted", when: func(c *change) bool { return len(c.e.Refusals) > 0 }, do: (*change).refused},
		{From: []Phase{PhaseImplementing}, On: EventCollected, If: "no net change", To: []Phase{PhaseAwaitingAnswer}, Doc: "said in a comment; no failure", when: (*change).nothingNew, do: (*change).noChanges},
		{From: []Phase{PhaseAddressingReview}, On: EventCollected, If: "no net change", To: same, Doc: "the threads are answered without a commit", when: (*change).nothingNew, do: func(c *change) { c.work(JobAnswer) }},
		{From: building, On: EventCollected, If: "somebody pushed meanwhile", To: []Phase{Same, PhaseInterrupted}, Doc: "the VM's commits are rebased onto it and judged again", when: (*change).behind, do: (*change).rebaseFirst},
		{From: building, On: EventCollected, If: "the repository has checks", To: same, Doc: "the checks run on the changeset's tree", when: (*change).wantsChecks, do: (*change).check},
		{From: building, On: EventCollected, To: same, Doc: "published as data, or shown first", do: (*change).publish},
		{From: building, On: EventShown, If: "something trusted was said meanwhile", To: same, Doc: "the agent takes it in before the changes are shown", when: all((*change).thisShown, func(c *change) bool { return len(c.untaken()) > 0 }, not((*change).tooMany)), do: func(c *change) { c.launchRun(runOfPhase(c.t.Phase)) }},
		{From: building, On: EventShown, To: asking, Doc: "the changes are posted and wait for approval", when: (*change).thisShown, do: (*change).shown},
		{From: building, On: EventCommitted, To: same, Doc: "the objects are on GitHub; the branch is moved next", when: (*change).thisWork, do: (*change).committed},
		{From: building, On: EventOvertaken, If: "not too often", To: same, Doc: "somebody pushed: the VM's commits are rebased onto it and judged again", when: (*change).canRebase, do: (*change).rebase},
		{From: building, On: EventOvertaken, To: []Phase{PhaseInterrupted}, Doc: "somebody keeps pushing: tried again after a while", do: (*change).rebaseLater},
		{From: building, On: EventConflict, If: "after too many runs without a person's word", To: []Phase{PhaseFailed}, Doc: "reason and hint are posted", when: (*change).tooMany, do: (*change).tooManyRuns},
		{From: building, On: EventConflict, To: []Phase{Same, PhaseAwaitingAnswer}, Doc: "a round for the agent; after several, people are asked", do: (*change).conflict},
		{From: []Phase{PhaseImplementing}, On: EventMoved, If: "no pull request yet", To: same, Doc: "the pull request is opened", when: all((*change).thisWork, not((*change).hasPR)), do: func(c *change) { c.moved(); c.work(JobOpenPR) }},
		{From: building, On: EventMoved, To: same, Doc: "the threads are answered", when: (*change).thisWork, do: func(c *change) { c.moved(); c.work(JobAnswer) }},
		{From: building, On: EventPROpened, To: []Phase{PhasePROpen}, Doc: "the pull request waits for people", do: (*change).prOpened},
		{From: []Phase{PhaseAwaitingAnswer, PhaseFailed, PhaseCancelled, PhaseDone}, On: EventPROpened, If: "the task turned away while it was being opened", To: same, Doc: "it is noted, so that people find it", when: func(c *change) bool { return c.t.PR == nil && c.t.Branch.Head != "" }, do: func(c *change) { c.t.PR = c.e.PR }},
		{From: building, On: EventAnswered, To: []Phase{PhasePROpen, PhaseAddressingReview}, Doc: "the round is over; what came meanwhile makes the next one", do: (*change).answered},
		{From: []Phase{PhasePROpen}, On: EventGathered, If: "there is something to do", To: []Phase{PhaseAddressingReview}, Doc: "a round begins", when: all((*change).freshFeedback, not((*change).tooMany)), do: (*change).round},
		{From: asking, On: EventGathered, If: "there is something to do", To: []Phase{PhaseAddressingReview}, Doc: "a change request: the agent works on it, and the changes are shown anew", when: (*change).freshFeedback, do: (*change).reviewedChanges},
		{From: open, On: EventGathered, To: same, Doc: "kept for the next round", do: (*change).keepFeedback},
	}
}

// talkRows keep the books of what was said.
func talkRows() []Row {
	return []Row{
		{From: approving, On: EventPosted, If: "a plan", To: []Phase{Same, PhasePreliminaryPlanning, PhasePlanning, PhaseImplementing, PhaseAddressingReview}, Doc: "it waits for approval; words that came before it was posted make the next revision", when: func(c *change) bool { return c.e.Post != nil && c.e.Post.Kind == PostPlan }, do: (*change).posted},
		{From: anyPhase, On: EventPosted, To: same, Doc: "the comment's id is stored", do: (*change).posted},
		{From: anyPhase, On: EventCreated, If: "it was proposed", To: same, Doc: "its number is stored, and who wanted it gets a link", when: func(c *change) bool { return c.e.Created != nil && c.t.proposal(c.e.Created.N) != nil }, do: (*change).issueCreated},
		{From: anyPhase, On: EventStatusSent, To: same, Doc: "the version that the status comment shows is stored", do: (*change).statusSent},
	}
}

package machine

import "github.com/errand-bot/errand/state"

// runRows are the rows of the supervisors' reports. Events of superseded runs fit no row.
var runRows = []Row{
	{
		From: open, On: state.EventProgress,
		when: thisRun,
		To:   same, do: progress,
		Doc: "last activity, session and money are stored",
	},
	{
		From: running, On: state.EventCalled,
		If: "the run may", when: callable,
		To: same, do: called,
		Doc: "the agent's tool call is stored: a note, a proposed issue, a question, the end of the run",
	},
	{
		From: running, On: state.EventDue,
		If: "a run that asked a question still continues", when: all(due(state.DueAsk), goesOnAsking),
		To: []state.Phase{state.PhaseAwaitingAnswer}, do: askAnyway,
		Doc: "it is stopped, its work saved, and the question posted",
	},
	{
		From: running, On: state.EventDue,
		If: "a run that was refused the model because of its turns still continues", when: all(due(state.DueTurns), goesOnWithout),
		To: []state.Phase{state.PhaseFailed}, do: endTurns,
		Doc: "it is stopped, its work saved; the hint names more turns",
	},
	{
		From: anyPhase, On: state.EventSpent,
		If: "the run is the task's", when: func(c *change) bool { return runAsked(c) != nil },
		To: same, do: spent,
		Doc: "added to the cost of run and task",
	},
	{
		From: anyPhase, On: state.EventRunEnded,
		If: "it was ordered to stop, or the task has ended", when: ofThisRun(stoppingRun),
		To: same, do: file,
		Doc: "the run is stored",
	},
	{
		From: anyPhase, On: state.EventRunEnded,
		If:   "it was dropped before its result was known",
		when: func(c *change) bool { return !thisRun(c) && droppedRun(c) != nil },
		To:   same, do: countDropped,
		Doc: "its cost is counted",
	},
	{
		From: running, On: state.EventRunEnded,
		If: "the session to resume was not there",
		when: ofThisRun(func(c *change) bool {
			return c.e.Result.Status == state.StatusNoSession && c.t.Run.Session != "" && !tooMany(c)
		}),
		To: same, do: noSession,
		Doc: "repeated without it, with the conversation so far in the prompt",
	},
	{
		From: running, On: state.EventRunEnded,
		If: "its conversation became too long, for the first time", when: ofThisRun(overflowed),
		To: same, do: beginAnew,
		Doc: "repeated in a new session, with the conversation so far in the prompt",
	},
	{
		From: running, On: state.EventRunEnded,
		If:   "its conversation became too long again",
		when: ofThisRun(func(c *change) bool { return c.e.Result.Status == state.StatusContextOverflow }),
		To:   []state.Phase{state.PhaseFailed}, do: runFailed,
		Doc: "the work is saved; reason and hint are posted",
	},
	{
		From: running, On: state.EventRunEnded,
		If: "it, or its task, has reached a cap", when: ofThisRun(atCap),
		To: []state.Phase{state.PhaseFailed}, do: runFailed,
		Doc: "the work is saved; a comment names the cap and how to raise it",
	},
	{
		From: running, On: state.EventRunEnded,
		If: "all tasks together have reached a cap, or the model's provider has a limit or refuses the key", when: ofThisRun(held),
		To: []state.Phase{state.PhaseInterrupted}, do: wait,
		Doc: "continues automatically afterwards",
	},
	{
		From: running, On: state.EventRunEnded,
		If: "a limit, a lost VM, an overloaded model", when: ofThisRun(class("retryable")),
		To: []state.Phase{state.PhaseInterrupted, state.PhaseFailed}, do: interrupted,
		Doc: "retried automatically after a while, a limited number of times",
	},
	{
		From: running, On: state.EventRunEnded,
		If: "anything else that is not success", when: ofThisRun(not(class("success"))),
		To: []state.Phase{state.PhaseFailed}, do: runFailed,
		Doc: "the work is saved; reason and hint are posted",
	},
	{
		From: running, On: state.EventRunEnded,
		If: "its closing block cannot be read, for the first time", when: ofThisRun(cannotRead),
		To: same, do: askAgain,
		Doc: "the agent is asked again for the block alone, in the same session",
	},
	{
		From: building, On: state.EventRunEnded,
		If: "checks", when: ofThisRun(checkRun),
		To: []state.Phase{Same, state.PhaseImplementing, state.PhaseAddressingReview}, do: checked,
		Doc: "passed: published; failed: the agent gets the ends of the outputs, a limited number of times",
	},
	{
		From: running, On: state.EventRunEnded,
		If: "it asks a question", when: ofThisRun(asks),
		To: []state.Phase{state.PhaseAwaitingAnswer}, do: askPeople,
		Doc: "the question is posted",
	},
	{
		From: planning, On: state.EventRunEnded,
		If: "nothing is to be built", when: ofThisRun(reports),
		To: []state.Phase{state.PhaseDone}, do: report,
		Doc: "the answer is a comment, and the task is done",
	},
	{
		From: planning, On: state.EventRunEnded,
		If: "something trusted was said meanwhile", when: ofThisRun(overtaken),
		To: same, do: reviseAgain,
		Doc: "revised before it is posted",
	},
	{
		From: planning, On: state.EventRunEnded,
		when: thisRun,
		To:   awaiting, do: planned,
		Doc: "the new revision is posted and waits for approval",
	},
	{
		From: building, On: state.EventRunEnded,
		when: thisRun,
		To:   same, do: built,
		Doc: "the changeset is read from the VM",
	},
}

// ofThisRun returns the condition that the event is about the current run and f holds.
func ofThisRun(f func(*change) bool) func(*change) bool { return all(thisRun, f) }

package machine

import "github.com/errand-bot/errand/state"

// runRows are what supervisors report. Events of superseded runs fit no row.
var runRows = []Row{
	{
		From: open, On: state.EventProgress,
		when: thisRun,
		To:   same, do: progress,
		Doc: "last sign of life, session and money are stored",
	},
	{
		From: running, On: state.EventCalled,
		If: "the run may", when: callable,
		To: same, do: called,
		Doc: "what the agent says through a tool is kept: a note, a proposed issue, a question, how the run ends",
	},
	{
		From: running, On: state.EventDue,
		If: "a run that asked people something still goes on", when: all(due(dueAsk), goesOnAsking),
		To: []state.Phase{state.PhaseAwaitingAnswer}, do: askAnyway,
		Doc: "it is stopped, its work saved, and the question posted",
	},
	{
		From: running, On: state.EventDue,
		If: "a run that was refused the model for its turns still goes on", when: all(due(dueTurns), goesOnWithout),
		To: []state.Phase{state.PhaseFailed}, do: endTurns,
		Doc: "it is stopped, its work saved; the hint names more turns",
	},
	{
		From: anyPhase, On: state.EventSpent,
		If: "the run is the task's", when: func(c *change) bool { return runAsked(c) != nil },
		To: same, do: spent,
		Doc: "added to what run and task have cost",
	},
	{
		From: anyPhase, On: state.EventRunEnded,
		If: "it was told to stop, or the task is over", when: ofThisRun(stoppingRun),
		To: same, do: file,
		Doc: "the run is filed",
	},
	{
		From: anyPhase, On: state.EventRunEnded,
		If:   "it was dropped before its result was known",
		when: func(c *change) bool { return !thisRun(c) && droppedRun(c) != nil },
		To:   same, do: countDropped,
		Doc: "what it has cost is counted",
	},
	{
		From: running, On: state.EventRunEnded,
		If: "the session to resume was not there",
		when: ofThisRun(func(c *change) bool {
			return c.e.Result.Status == state.StatusNoSession && c.t.Run.Session != "" && !tooMany(c)
		}),
		To: same, do: noSession,
		Doc: "run again without it, with the conversation so far in the prompt",
	},
	{
		From: running, On: state.EventRunEnded,
		If: "its conversation became too long, for the first time", when: ofThisRun(overflowed),
		To: same, do: beginAnew,
		Doc: "run again in a new session, with the conversation so far in the prompt",
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
		If: "it, or its task, has used what it may", when: ofThisRun(atCap),
		To: []state.Phase{state.PhaseFailed}, do: runFailed,
		Doc: "the work is saved; the cap is posted, and how it is raised",
	},
	{
		From: running, On: state.EventRunEnded,
		If: "all tasks together have used what they may, or the model's provider has a limit or refuses the key", when: ofThisRun(held),
		To: []state.Phase{state.PhaseInterrupted}, do: wait,
		Doc: "goes on by itself when that is over",
	},
	{
		From: running, On: state.EventRunEnded,
		If: "a limit, a lost VM, an overloaded model", when: ofThisRun(class("retryable")),
		To: []state.Phase{state.PhaseInterrupted, state.PhaseFailed}, do: interrupted,
		Doc: "tried again by itself after a while, a bounded number of times",
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
		Doc: "the agent is asked for the block once more, in the same session, and for nothing else",
	},
	{
		From: building, On: state.EventRunEnded,
		If: "checks", when: ofThisRun(checkRun),
		To: []state.Phase{Same, state.PhaseImplementing, state.PhaseAddressingReview}, do: checked,
		Doc: "green: publish; red: the agent gets the tails, a bounded number of times",
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

// ofThisRun returns a condition that also wants the event to be about the task's current run.
func ofThisRun(f func(*change) bool) func(*change) bool { return all(thisRun, f) }

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

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

// suspendRows are the rows that suspend a task whose VM is idle, and that restore its work.
var suspendRows = []Row{
	{
		From: open, On: event.KindDue,
		If: "idle", when: all(isDue(state.DueIdle), isIdle),
		To: same, do: suspendVM,
		Doc: "the VM was not needed until the end of the paid hour, or for a while: its work is saved",
	},
	{
		From: open, On: event.KindVMWanted,
		If: "it is idle and stays so", when: canYield,
		To: same, do: yieldVM,
		Doc: "another task waits for a VM: the work is saved and the VM deleted",
	},
	{
		From: working, On: event.KindQueueMoved,
		If: "it waits in the queue for a VM", when: func(c *change) bool { return c.t.IsQueuedForVM() },
		To: same, do: func(c *change) { c.t.Waiting.Place = max(of[event.QueueMoved](c).Place, 1) },
		Doc: "its place is shown in the status comment",
	},
	{
		From: open, On: event.KindDue,
		If:   "a paid hour of the VM ends",
		when: all(isDue(state.DueSpan), func(c *change) bool { return c.t.VM != nil && c.t.VM.Name == of[event.Due](c).VM }),
		To:   []state.Phase{Same, state.PhaseFailed, state.PhaseInterrupted}, do: checkNextSpan,
		Doc: "a run is stopped and its work saved if there may not be another one: hours or money for VMs are used up",
	},
	{
		From: open, On: event.KindDue,
		If: "the saved work was not needed", when: all(isDue(state.DueUnused), func(c *change) bool { return c.t.Suspended != nil }),
		To: same, do: deleteUnusedSave,
		Doc: "it is deleted, and a comment says so",
	},
	{
		From: anyPhase, On: event.KindDue,
		If: "a while after the end", when: isDue(state.DueForget),
		To: same, do: deleteExpiredSave,
		Doc: "the saved work is deleted",
	},
	{
		From: anyPhase, On: event.KindSuspended,
		If: "it is the task's VM", when: isTaskVM,
		To: same, do: releaseSuspended,
		Doc: "the work is saved and the VM deleted, unless it is needed by now",
	},
	{
		From: anyPhase, On: event.KindSuspended,
		If: "the task has another VM by now, or none",
		To: same, do: deleteObsoleteSave,
		Doc: "the saved work is deleted",
	},
	{
		From: anyPhase, On: event.KindDestroyed,
		If: "there is a VM or saved work, which nothing needs at the moment", when: all(hasWorkspace, not(isWorkspaceInUse)),
		To: same, do: destroyWorkspace,
		Doc: "the VM and the saved work are deleted; a comment says so if work is lost",
	},
	{
		From: anyPhase, On: event.KindDestroyed,
		If: "by force, and there is a VM or saved work", when: all(hasWorkspace, func(c *change) bool { return of[event.Destroyed](c).Force }),
		To: []state.Phase{Same, state.PhaseAwaitingAnswer}, do: destroyByForce,
		Doc: "a running agent is stopped, the VM and the saved work are deleted, and the task waits for a person if it was at work",
	},
	{
		From: building, On: event.KindRestored,
		If: "for the current step", when: func(c *change) bool { return c.t.Step == of[event.Restored](c).For },
		To: []state.Phase{Same, state.PhaseFailed}, do: continueRestored,
		Doc: "the work is on a VM again, and the step continues",
	},
	{
		From: anyPhase, On: event.KindRestored,
		To: same, do: storeObsoleteVM,
		Doc: "the VM waits for the next run; an ended task's is deleted",
	},
}

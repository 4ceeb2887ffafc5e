package machine

import (
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

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

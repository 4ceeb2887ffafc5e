package machine

import "github.com/errand-bot/errand/state"

// sleepRows are the rows that suspend a task whose VM is idle, and that restore its work.
var sleepRows = []Row{
	{
		From: open, On: state.EventDue,
		If: "idle", when: all(due(state.DueIdle), idles),
		To: same, do: goToSleep,
		Doc: "the VM was not needed until the end of the paid hour, or for a while: its work is saved",
	},
	{
		From: open, On: state.EventDue,
		If:   "a paid hour of the VM ends",
		when: all(due(state.DueSpan), func(c *change) bool { return c.t.VM != nil && c.t.VM.Name == c.e.Due.VM }),
		To:   []state.Phase{Same, state.PhaseFailed, state.PhaseInterrupted}, do: spanEnds,
		Doc: "a run is stopped and its work saved if there may not be another one: hours or money for VMs are used up",
	},
	{
		From: open, On: state.EventDue,
		If: "the saved work was not needed", when: all(due(state.DueUnused), func(c *change) bool { return c.t.Asleep != nil }),
		To: same, do: unused,
		Doc: "it is deleted, and a comment says so",
	},
	{
		From: anyPhase, On: state.EventDue,
		If: "a while after the end", when: due(state.DueForget),
		To: same, do: forgetDue,
		Doc: "the saved work is deleted",
	},
	{
		From: anyPhase, On: state.EventSlept,
		If: "it is the task's VM", when: sameVM,
		To: same, do: slept,
		Doc: "the work is saved and the VM deleted, unless it is needed by now",
	},
	{
		From: anyPhase, On: state.EventSlept,
		If: "the task has another VM by now, or none",
		To: same, do: sleptLate,
		Doc: "the saved work is deleted",
	},
	{
		From: building, On: state.EventWoken,
		If: "for the current step", when: func(c *change) bool { return c.t.Step == c.e.WokenFor },
		To: []state.Phase{Same, state.PhaseFailed}, do: woken,
		Doc: "the work is on a VM again, and the step continues",
	},
	{
		From: anyPhase, On: state.EventWoken,
		To: same, do: wokenLate,
		Doc: "the VM waits for the next run; an ended task's is deleted",
	},
}

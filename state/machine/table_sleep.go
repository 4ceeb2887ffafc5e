package machine

import "github.com/errand-bot/errand/state"

// sleepRows put a VM's work away while nobody needs it, and bring it back.
var sleepRows = []Row{
	{
		From: open, On: state.EventDue,
		If: "idle", when: all(due(dueIdle), idles),
		To: same, do: goToSleep,
		Doc: "nobody needed the VM until the paid span's end, or for a while: its work is put away",
	},
	{
		From: open, On: state.EventDue,
		If:   "a span of the VM that is paid for ends",
		when: all(due(DueSpan), func(c *change) bool { return c.t.VM != nil && c.t.VM.Name == c.e.Hash }),
		To:   []state.Phase{Same, state.PhaseFailed, state.PhaseInterrupted}, do: spanEnds,
		Doc: "a run is stopped and its work saved if there may not be another one: hours or money for VMs are used up",
	},
	{
		From: open, On: state.EventDue,
		If: "nobody wanted what was put away", when: all(due(dueUnused), func(c *change) bool { return c.t.Asleep != nil }),
		To: same, do: unused,
		Doc: "it is deleted, and a comment says so",
	},
	{
		From: anyPhase, On: state.EventDue,
		If: "a while after the end", when: due(dueForget),
		To: same, do: forgetDue,
		Doc: "what was put away is deleted",
	},
	{
		From: anyPhase, On: state.EventSlept,
		If: "it is the task's VM", when: sameVM,
		To: same, do: slept,
		Doc: "the work is put away and the VM goes, unless somebody wants it by now",
	},
	{
		From: anyPhase, On: state.EventSlept,
		If: "the task has another VM by now, or none",
		To: same, do: sleptLate,
		Doc: "what was put away is deleted",
	},
	{
		From: building, On: state.EventWoken,
		If: "for the present step", when: func(c *change) bool { return string(c.t.Step) == c.e.Detail },
		To: []state.Phase{Same, state.PhaseFailed}, do: woken,
		Doc: "the work is on a VM again, and the step is taken",
	},
	{
		From: anyPhase, On: state.EventWoken,
		To: same, do: wokenLate,
		Doc: "the VM waits for the next run; an ended task's is deleted",
	},
}

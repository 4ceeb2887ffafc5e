package machine

import "github.com/errand-bot/errand/state"

// stepRows are the rows of the results of jobs.
var stepRows = []Row{
	{
		From: working, On: state.EventStarted,
		If: "nothing is visible to the agent", when: func(c *change) bool { return !c.e.Start.Visible },
		To: same, do: nothingVisible,
		Doc: "waits; the comment names the text that needs a 👍",
	},
	{
		From: working, On: state.EventStarted,
		If: "a user without write access changed the issue", when: func(c *change) bool { return c.t.Frozen.Changed != nil },
		To: same, do: startedButEdited,
		Doc: "waits until a writer comments `replan`",
	},
	{
		From: []state.Phase{state.PhaseQueued}, On: state.EventStarted,
		To: []state.Phase{state.PhasePreliminaryPlanning, state.PhasePlanning, state.PhaseImplementing}, do: started,
		Doc: "the first run is launched",
	},
	{
		From: running, On: state.EventStarted,
		If: "no run is there yet", when: func(c *change) bool { return c.t.Run == nil },
		To: same, do: restarted,
		Doc: "the run is launched with the new data",
	},
	{
		From: working, On: state.EventHeldUp,
		To: same, do: func(c *change) { heldUp(c, *c.e.Waiting) },
		Doc: "waits for something other than people, reports it, and checks again automatically",
	},
	{
		From: working, On: state.EventAsked,
		To: []state.Phase{state.PhaseAwaitingAnswer}, do: asked,
		Doc: "a question is posted",
	},
	{
		From: running, On: state.EventLaunched,
		when: thisRun,
		To:   same, do: launched,
		Doc: "an agent works",
	},
	{
		From: anyPhase, On: state.EventLaunched,
		If: "the task changed course meanwhile",
		To: same, do: launchedLate,
		Doc: "the run is stopped again; an ended task's VM is deleted",
	},
	{
		From: approving, On: state.EventApproved,
		If: "a comment by a person whose permission is not known yet", when: unheard,
		To: same, do: checkLater,
		Doc: "checked again a moment later: a change request that came before wins",
	},
	{
		From: approving, On: state.EventApproved,
		If: "the newest revision, nothing trusted came before", when: approvable,
		To: []state.Phase{state.PhasePlanning, state.PhaseImplementing, state.PhaseAddressingReview}, do: approved,
		Doc: "approved: the stored plan is executed, or the stored changes are published",
	},
	{
		From: open, On: state.EventApproved,
		To: same, do: func(c *change) { reject(c, *c.e.Candidate, whyNot(c)) },
		Doc: "too late: answered with the reason",
	},
	{
		From: running, On: state.EventNoApproval,
		If:   "withdrawn before the start",
		when: func(c *change) bool { return withdrawn(c) && thisRun(c) && c.t.Run.State == state.RunLaunching },
		To:   awaiting, do: revoked,
		Doc: "the approval is no longer valid; the plan waits again",
	},
	{
		From: building, On: state.EventNoApproval,
		If: "withdrawn before the changes were published", when: publishDoubted,
		To: asking, do: publishRevoked,
		Doc: "the approval is no longer valid; the changes wait again",
	},
	{
		From: open, On: state.EventNoApproval,
		To: same, do: func(c *change) { reject(c, *c.e.Candidate, c.e.Rejection) },
		Doc: "answered once per revision and reason",
	},
	{
		From: open, On: state.EventStale,
		To: same, do: func(c *change) { c.stale(c.e.Stale.Hash, c.e.Stale.Reason) },
		Doc: "that revision can never be approved again",
	},
	{
		From: []state.Phase{state.PhaseInterrupted}, On: state.EventDue,
		If: "resume, after too many runs without a person's response", when: all(due(state.DueResume), tooMany),
		To: []state.Phase{state.PhaseFailed}, do: tooManyRuns,
		Doc: "reason and hint are posted",
	},
	{
		From: []state.Phase{state.PhaseInterrupted}, On: state.EventDue,
		If: "resume", when: due(state.DueResume),
		To: resumed, do: resume,
		Doc: "continues automatically",
	},
	{
		From: working, On: state.EventDue,
		If: "recheck", when: all(due(state.DueRecheck), func(c *change) bool { return c.t.Waiting != nil }),
		To: same, do: again,
		Doc: "checks whether it can continue",
	},
	{
		From: approving, On: state.EventDue,
		If: "remind", when: all(due(state.DueRemind), sameNewest),
		To: same, do: remind,
		Doc: "a reminder is posted",
	},
	{
		From: approving, On: state.EventDue,
		If: "expire", when: all(due(state.DueExpire), sameNewest),
		To:  []state.Phase{state.PhaseCancelled},
		do:  func(c *change) { c.cancel("nobody approved " + whatWaits(c) + " in time") },
		Doc: "no approval in time",
	},
	{
		From: []state.Phase{state.PhasePROpen}, On: state.EventStepFailed,
		If:   "the review could not be read, and waiting helps",
		when: func(c *change) bool { return c.e.Failure.Job == state.JobGather && !c.e.Failure.RetryAt.IsZero() },
		To:   []state.Phase{state.PhaseInterrupted, state.PhaseFailed}, do: stepInterrupted,
		Doc: "read again automatically after a while, a limited number of times",
	},
	{
		From: []state.Phase{state.PhasePROpen}, On: state.EventStepFailed,
		If: "the review could not be read", when: func(c *change) bool { return c.e.Failure.Job == state.JobGather },
		To: []state.Phase{state.PhaseFailed}, do: stepFailed,
		Doc: "reason and hint are posted; retry reads it again",
	},
	{
		From: ended, On: state.EventStepFailed,
		If: "the status comment, within a day of the end or not too often", when: endUnshown,
		To: same, do: func(c *change) { c.t.Status.Failed++ },
		Doc: "it is posted again after a while, because it must show the end",
	},
	{
		From: anyPhase, On: state.EventStepFailed,
		If: "a proposed issue could not be created", when: func(c *change) bool { return c.e.Failure.Job == state.JobIssue },
		To: same, do: issueFailed,
		Doc: "the person who requested it gets the reason",
	},
	{
		From: open, On: state.EventStepFailed,
		If: "a job outside of the task's phases", when: not(lifeJob),
		To: same, do: besideFailed,
		Doc: "noted for the operator",
	},
	{
		From: resumed, On: state.EventStepFailed,
		If: "waiting helps", when: func(c *change) bool { return !c.e.Failure.RetryAt.IsZero() },
		To: []state.Phase{state.PhaseInterrupted, state.PhaseFailed}, do: stepInterrupted,
		Doc: "retried automatically after a while, a limited number of times",
	},
	{
		From: resumed, On: state.EventStepFailed,
		To: []state.Phase{state.PhaseFailed}, do: stepFailed,
		Doc: "reason and hint are posted",
	},
	{
		From: anyPhase, On: state.EventSaved,
		To: same, do: saved,
		Doc: "the work of the stopped run is kept",
	},
	{
		From: anyPhase, On: state.EventReleased,
		when: func(c *change) bool {
			return c.t.VM != nil && (c.e.Released.VM == "" || c.e.Released.VM == c.t.VM.Name)
		},
		To: same, do: func(c *change) { released(c, c.e.Released.Why) },
		Doc: "the VM is gone",
	},
}

package machine

import (
	"slices"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// stepRows are the rows of the results of jobs.
var stepRows = []Row{
	{
		From: working, On: event.KindStarted,
		If: "nothing is visible to the agent", when: func(c *change) bool { return !of[event.Started](c).Start.Visible },
		To: same, do: waitForVisibleText,
		Doc: "waits; the comment names the text that needs a 👍",
	},
	{
		From: working, On: event.KindStarted,
		If: "a user without write access changed the issue", when: func(c *change) bool { return c.t.Frozen.Changed != nil },
		To: same, do: storeStartWhilePaused,
		Doc: "waits until a writer comments `replan`",
	},
	{
		From: []state.Phase{state.PhaseQueued}, On: event.KindStarted,
		To: []state.Phase{state.PhasePreliminaryPlanning, state.PhasePlanning, state.PhaseImplementing}, do: beginFirstRun,
		Doc: "the first run is launched",
	},
	{
		From: running, On: event.KindStarted,
		If: "no run is there yet", when: func(c *change) bool { return c.t.Run == nil },
		To: same, do: restartRun,
		Doc: "the run is launched with the new data",
	},
	{
		From: working, On: event.KindStepBlocked,
		To: same, do: func(c *change) { waitFor(c, *c.e.Waiting()) },
		Doc: "waits for something other than people, reports it, and checks again automatically",
	},
	{
		From: working, On: event.KindQuestionRaised,
		To: []state.Phase{state.PhaseAwaitingAnswer}, do: postQuestion,
		Doc: "a question is posted",
	},
	{
		From: running, On: event.KindLaunched,
		when: isActiveRun,
		To:   same, do: activateRun,
		Doc: "an agent works",
	},
	{
		From: anyPhase, On: event.KindLaunched,
		If: "the task changed course meanwhile",
		To: same, do: stopLateRun,
		Doc: "the run is stopped again; an ended task's VM is deleted",
	},
	{
		From: approving, On: event.KindApproved,
		If: "a comment by a person whose permission is not known yet", when: hasUnvettedComments,
		To: same, do: delayApprovalCheck,
		Doc: "checked again a moment later: a change request that came before wins",
	},
	{
		From: open, On: event.KindApproved,
		If: "the same revision is approved already", when: isApprovedAlready,
		To: same, do: func(*change) {},
		Doc: "nothing",
	},
	{
		From: slices.Concat(approving, planning), On: event.KindApproved,
		If: "of the newest revision, while comments on it are gathered or considered", when: mustHold,
		To: same, do: holdApproval,
		Doc: "held: checked again if the comments leave the plan as it is, and answered as stale if they lead to a new revision",
	},
	{
		From: approving, On: event.KindApproved,
		If: "the newest revision, nothing trusted came before", when: isApprovable,
		To: []state.Phase{state.PhasePlanning, state.PhaseImplementing, state.PhaseAddressingReview}, do: startApproved,
		Doc: "approved: the stored plan is executed, or the stored changes are published",
	},
	{
		From: open, On: event.KindApproved,
		To: same, do: func(c *change) { rejectApproval(c, *c.e.Candidate(), rejectionReason(c)) },
		Doc: "too late: answered with the reason",
	},
	{
		From: running, On: event.KindApprovalRejected,
		If:   "withdrawn before the start",
		when: func(c *change) bool { return isWithdrawn(c) && isActiveRun(c) && c.t.Run.State == state.RunLaunching },
		To:   awaiting, do: revokeApproval,
		Doc: "the approval is no longer valid; the plan waits again",
	},
	{
		From: building, On: event.KindApprovalRejected,
		If: "withdrawn before the changes were published", when: isPublishApprovalWithdrawn,
		To: asking, do: revokePublishApproval,
		Doc: "the approval is no longer valid; the changes wait again",
	},
	{
		From: open, On: event.KindApprovalRejected,
		To: same, do: func(c *change) { rejectApproval(c, *c.e.Candidate(), of[event.ApprovalRejected](c).Rejection) },
		Doc: "answered once per revision and reason",
	},
	{
		From: open, On: event.KindPlanStale,
		To: same, do: func(c *change) { c.markStale(of[event.PlanStale](c).Hash, of[event.PlanStale](c).Reason) },
		Doc: "that revision can never be approved again",
	},
	{
		From: []state.Phase{state.PhaseInterrupted}, On: event.KindDue,
		If: "resume, after too many runs without a person's response", when: all(isDue(state.DueResume), reachedRunLimit),
		To: []state.Phase{state.PhaseFailed}, do: failAtRunLimit,
		Doc: "reason and hint are posted",
	},
	{
		From: []state.Phase{state.PhaseInterrupted}, On: event.KindDue,
		If: "resume", when: isDue(state.DueResume),
		To: resumed, do: resumeInterrupted,
		Doc: "continues automatically",
	},
	{
		From: []state.Phase{state.PhaseAwaitingAnswer}, On: event.KindDue,
		If: "comments, but more have come since", when: all(isDue(state.DueComments), stillGathers),
		To: same, do: func(c *change) { c.scheduleDue(state.DueComments, "", c.t.Gathering.Until) },
		Doc: "gathered a while longer",
	},
	{
		From: []state.Phase{state.PhaseAwaitingAnswer}, On: event.KindDue,
		If: "comments", when: all(isDue(state.DueComments), func(c *change) bool { return c.t.Gathering != nil }),
		To: append([]state.Phase{Same}, running...), do: considerAnswers,
		Doc: "the agent reads the comments as they are now; without any, the question stays open",
	},
	{
		From: approving, On: event.KindDue,
		If: "comments, but more have come since", when: all(isDue(state.DueComments), stillGathers),
		To: same, do: func(c *change) { c.scheduleDue(state.DueComments, "", c.t.Gathering.Until) },
		Doc: "gathered a while longer",
	},
	{
		From: approving, On: event.KindDue,
		If: "comments", when: all(isDue(state.DueComments), func(c *change) bool { return c.t.Gathering != nil }),
		To: slices.Concat(same, planning, building), do: considerComments,
		Doc: "the agent considers the comments as they are now, or addresses those on changes; without any, held approvals are checked",
	},
	{
		From: working, On: event.KindDue,
		If: "recheck", when: all(isDue(state.DueRecheck), func(c *change) bool { return c.t.Waiting != nil }),
		To: same, do: recheckWaiting,
		Doc: "checks whether it can continue",
	},
	{
		From: approving, On: event.KindDue,
		If: "remind or expire, but an approval or a comment is being checked", when: all(isReminderOrEnd, isNewestPlan, isBeingAnswered),
		To: same, do: func(c *change) {
			d := of[event.Due](c)
			c.scheduleDue(d.For, d.Plan, c.e.Now.Add(c.p.Recheck))
		},
		Doc: "checked again a little later",
	},
	{
		From: approving, On: event.KindDue,
		If: "remind", when: all(isDue(state.DueRemind), isNewestPlan, not(isReminded)),
		To: same, do: postReminder,
		Doc: "a reminder is posted",
	},
	{
		From: []state.Phase{state.PhaseAwaitingPublishApproval}, On: event.KindDue,
		If: "expire, of changes in a round that errand began by itself", when: all(isDue(state.DueExpire), isNewestPlan, isOwnRound),
		To: []state.Phase{state.PhasePROpen}, do: endExpiredRound,
		Doc: "they are not published, which a comment says; the pull request stays open",
	},
	{
		From: approving, On: event.KindDue,
		If: "expire", when: all(isDue(state.DueExpire), isNewestPlan),
		To:  []state.Phase{state.PhaseCancelled},
		do:  func(c *change) { c.cancel("nobody approved " + approvalSubject(c) + " in time") },
		Doc: "no approval in time",
	},
	{
		From: []state.Phase{state.PhasePROpen}, On: event.KindStepFailed,
		If: "the review could not be read, and waiting helps",
		when: func(c *change) bool {
			return of[event.StepFailed](c).Failure.Job == state.JobGather && !of[event.StepFailed](c).Failure.RetryAt.IsZero()
		},
		To: []state.Phase{state.PhaseInterrupted, state.PhaseFailed}, do: interruptStep,
		Doc: "read again automatically after a while, a limited number of times",
	},
	{
		From: []state.Phase{state.PhasePROpen}, On: event.KindStepFailed,
		If: "the review could not be read", when: func(c *change) bool { return of[event.StepFailed](c).Failure.Job == state.JobGather },
		To: []state.Phase{state.PhaseFailed}, do: failStep,
		Doc: "reason and hint are posted; retry reads it again",
	},
	{
		From: anyPhase, On: event.KindStepFailed,
		If: "the statement of provenance could not be posted", when: isStatementFailure,
		To: same, do: retryStatement,
		Doc: "the status comment says so, and it is posted again after a while, a limited number of times",
	},
	{
		From: ended, On: event.KindStepFailed,
		If: "the status comment, within a day of the end or not too often", when: isEndUnshown,
		To: same, do: func(c *change) { c.t.Status.Failed++ },
		Doc: "it is posted again after a while, because it must show the end",
	},
	{
		From: anyPhase, On: event.KindStepFailed,
		If: "a proposed issue could not be created", when: func(c *change) bool { return of[event.StepFailed](c).Failure.Job == state.JobIssue },
		To: same, do: replyIssueFailed,
		Doc: "the person who requested it gets the reason",
	},
	{
		From: open, On: event.KindStepFailed,
		If: "the branch could not be compared with its base, or updated", when: isUpdateFailure,
		To: same, do: answerFailedUpdate,
		Doc: "noted for the operator; a command is answered",
	},
	{
		From: open, On: event.KindStepFailed,
		If: "a job outside of the task's phases", when: not(failsTask),
		To: same, do: noteFailure,
		Doc: "noted for the operator",
	},
	{
		From: resumed, On: event.KindStepFailed,
		If: "waiting helps", when: func(c *change) bool { return !of[event.StepFailed](c).Failure.RetryAt.IsZero() },
		To: []state.Phase{state.PhaseInterrupted, state.PhaseFailed}, do: interruptStep,
		Doc: "retried automatically after a while, a limited number of times",
	},
	{
		From: resumed, On: event.KindStepFailed,
		To: []state.Phase{state.PhaseFailed}, do: failStep,
		Doc: "reason and hint are posted",
	},
	{
		From: anyPhase, On: event.KindWorkSaved,
		To: same, do: storeSavedWork,
		Doc: "the work of the stopped run is kept",
	},
	{
		From: anyPhase, On: event.KindReleased,
		when: func(c *change) bool {
			gone := of[event.Released](c)
			return c.t.VM != nil && (gone.VM == "" || gone.VM == c.t.VM.Name)
		},
		To: same, do: func(c *change) { storeRelease(c, of[event.Released](c).Reason) },
		Doc: "the VM is gone",
	},
}

// talkRows are the rows that store posted comments.
var talkRows = []Row{
	{
		From: approving, On: event.KindPosted,
		If: "a plan", when: func(c *change) bool { return c.e.Post() != nil && c.e.Post().Kind == state.PostPlan },
		To:  []state.Phase{Same, state.PhasePreliminaryPlanning, state.PhasePlanning, state.PhaseImplementing, state.PhaseAddressingReview},
		do:  storePosted,
		Doc: "it waits for approval; comments from before it was posted lead to the next revision",
	},
	{
		From: anyPhase, On: event.KindPosted,
		To: same, do: storePosted,
		Doc: "the comment's id is stored",
	},
	{
		From: anyPhase, On: event.KindIssueCreated,
		If: "it was proposed", when: func(c *change) bool {
			return c.t.Proposal(of[event.IssueCreated](c).N) != nil
		},
		To: same, do: storeCreatedIssue,
		Doc: "its number is stored, and the person who requested it gets a link",
	},
	{
		From: anyPhase, On: event.KindStatusSent,
		To: same, do: storeStatus,
		Doc: "the version that the status comment shows is stored",
	},
}

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

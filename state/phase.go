package state

// Phase is where a task is in its life. The field Task.Waiting, not a phase, names a VM, a
// blocker, money or another condition that it waits for.
type Phase string

// The phases: how each ends, and how it continues after a crash.
const (
	// PhaseQueued: triggered, nothing planned. Ends when the job start has read the repository's settings, the
	// blockers and existing work. After a crash the job is claimed again; it only reads.
	PhaseQueued Phase = "queued"
	// PhasePreliminaryPlanning: an agent writes the short plan. Ends with the run. The run
	// continues while errand is down; the supervisor follows it again after a restart.
	PhasePreliminaryPlanning Phase = "preliminary_planning"
	// PhaseAwaitingPreliminaryApproval: the newest preliminary revision is posted (or being posted).
	// A valid approval starts the next step; a trusted comment goes back for another revision; 14 days
	// without either cancel. Nothing runs here, so a crash costs nothing.
	PhaseAwaitingPreliminaryApproval Phase = "awaiting_preliminary_approval"
	// PhasePlanning: an agent works the approved preliminary plan out. As PhasePreliminaryPlanning.
	PhasePlanning Phase = "planning"
	// PhaseAwaitingPlanApproval: as PhaseAwaitingPreliminaryApproval, for the detailed plan.
	PhaseAwaitingPlanApproval Phase = "awaiting_plan_approval"
	// PhaseImplementing: an agent implements the approved plan, checks run, the changeset is judged and
	// published, the pull request is opened. Each of these is a job that checks for its effect before it repeats it.
	PhaseImplementing Phase = "implementing"
	// PhaseAwaitingPublishApproval: a changeset is ready, stored and judged, and people are shown its
	// diff (publish: after-approval). A valid approval goes back to PhaseImplementing or
	// PhaseAddressingReview, where it is published; a trusted comment has the agent change it; 14 days
	// without either cancel. Nothing runs here; the VM is kept, because its work is on GitHub nowhere.
	PhaseAwaitingPublishApproval Phase = "awaiting_publish_approval"
	// PhasePROpen: the pull request is open and no work on it is in progress. Ends with a review, a
	// comment, a merge or a close. Nothing runs here.
	PhasePROpen Phase = "pr_open"
	// PhasePRClosed: the pull request was closed without a merge. Its VM is released, its work kept. Reopening it, or a
	// person who asks errand to continue, goes back to PhasePROpen; Policy.KeepAsleep without either cancels. Nothing runs
	// here but the job reopen, which only repeats what is not done yet.
	PhasePRClosed Phase = "pr_closed"
	// PhaseAddressingReview: a round: an agent answers the gathered feedback, its commits are
	// published, every thread gets its answer. As PhaseImplementing; ends in PhasePROpen.
	PhaseAddressingReview Phase = "addressing_review"
	// PhaseAwaitingAnswer: a question to people, or a refusal that needs their answer, is posted. A
	// trusted comment goes back to Resume. Nothing runs here.
	PhaseAwaitingAnswer Phase = "awaiting_answer"
	// PhaseInterrupted: a limit, a lost VM or a restart stopped a run. A delayed job goes back to
	// Resume automatically, with back-off; people need not do anything.
	PhaseInterrupted Phase = "interrupted"
	// PhaseDone: merged, or answered by a report. Only clean-up jobs are left. Only a new trigger
	// on the issue leaves it: the task then starts again.
	PhaseDone Phase = "done"
	// PhaseCancelled: unassigned, closed, canceled by a command, or expired. As PhaseDone; a new trigger on the
	// issue starts the task again, and `retry` continues it for Policy.KeepAfterEnd.
	PhaseCancelled Phase = "cancelled"
	// PhaseFailed: stopped with a reason and a hint. `retry` goes back to Resume.
	PhaseFailed Phase = "failed"
)

// Phases lists every phase in the order of a life.
func Phases() []Phase {
	return []Phase{
		PhaseQueued, PhasePreliminaryPlanning, PhaseAwaitingPreliminaryApproval, PhasePlanning,
		PhaseAwaitingPlanApproval, PhaseImplementing, PhasePROpen, PhasePRClosed, PhaseAddressingReview,
		PhaseAwaitingPublishApproval, PhaseAwaitingAnswer, PhaseInterrupted, PhaseDone, PhaseCancelled, PhaseFailed,
	}
}

// Working reports whether an agent or a publishing job is at work, or will be without action by people.
func (p Phase) Working() bool {
	switch p {
	case PhaseQueued, PhasePreliminaryPlanning, PhasePlanning, PhaseImplementing, PhaseAddressingReview:
		return true
	}
	return false
}

// AwaitsApproval reports whether a plan or changes wait for approval.
func (p Phase) AwaitsApproval() bool { return p.AwaitsPlan() || p == PhaseAwaitingPublishApproval }

// AwaitsPlan reports whether a plan waits for approval.
func (p Phase) AwaitsPlan() bool {
	return p == PhaseAwaitingPreliminaryApproval || p == PhaseAwaitingPlanApproval
}

// Terminal reports whether the task has ended.
func (p Phase) Terminal() bool { return p == PhaseDone || p == PhaseCancelled }

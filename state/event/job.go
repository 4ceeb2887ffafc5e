package event

import (
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

// The payloads of reports of jobs.
type (
	// Started is the result of the job start.
	Started struct {
		Start
	}

	// StepBlocked says that the job cannot continue for now.
	StepBlocked struct {
		Waiting *state.Waiting `json:"waiting,omitempty"`
	}

	// QuestionRaised says that people have to answer a question before the job start can continue.
	QuestionRaised struct {
		Question state.Question `json:"question"`
		Start    *Start         `json:"start,omitempty"`
	}

	// Launched is the start of a run.
	Launched struct {
		Launch state.Launch `json:"launch"`
	}

	// Posted is a comment that errand has posted.
	Posted struct {
		Post     *state.Post  `json:"post,omitempty"`
		Comment  state.Posted `json:"posted"`
		BodyHash string       `json:"body_hash,omitempty"` // see comment.BodyHash
		Searched bool         `json:"searched,omitempty"`  // see Event.Searched
		Ticked   bool         `json:"ticked,omitempty"`    // a box is ticked in the comment that was found
	}

	// StatusSent says that the status comment is written.
	StatusSent struct {
		Status   state.StatusComment `json:"status"`
		Searched bool                `json:"searched,omitempty"` // see Event.Searched
	}

	// Approved says that an approval is valid on GitHub.
	Approved struct {
		Candidate state.Candidate `json:"candidate"`
	}

	// ApprovalRejected says that an approval is not valid.
	ApprovalRejected struct {
		Candidate state.Candidate `json:"candidate"`
		Rejection string          `json:"rejection,omitempty"` // one of the Rejected… and Stale… reasons
	}

	// PlanStale says that a revision can never be approved again.
	PlanStale struct {
		Hash   string `json:"hash"`
		Reason string `json:"reason"` // one of the Stale… reasons
	}

	// Collected is a collected changeset and what the push gate says about it. Without Work there were no changes.
	Collected struct {
		Work     *state.Work     `json:"work,omitempty"`
		Refusals []state.Refusal `json:"refusals,omitempty"`
	}

	// DiffReady is the diff of the changeset Event.Run, made for people.
	DiffReady struct {
		Plan state.Plan `json:"plan"` // without number and hash
	}

	// Committed says that the changeset's commits are on GitHub; Work has the head.
	Committed struct {
		Work *state.Work `json:"work,omitempty"`
	}

	// BranchMoved says that the branch is at the head of the task's work.
	BranchMoved struct{}

	// MergePending says that GitHub may merge the pull request by itself, as soon as the branch has commits that nobody has reviewed.
	MergePending struct {
		AutoMerge string `json:"auto_merge,omitempty"` // the login of the person who enabled it; empty if nobody has
		Queued    bool   `json:"queued,omitempty"`     // it is in the merge queue
	}

	// BranchAhead says that the branch has commits that somebody else has pushed meanwhile.
	BranchAhead struct {
		Head string `json:"head,omitempty"` // the commit at the head of the branch
	}

	// Conflict says that the rebase failed.
	Conflict struct {
		Head  string   `json:"head,omitempty"` // the commit onto which the work was rebased
		Paths []string `json:"paths,omitempty"`
	}

	// PROpened is the opened pull request.
	PROpened struct {
		PR       state.PR `json:"pr"`
		Searched bool     `json:"searched,omitempty"` // see Event.Searched
		// Head is the commit at the head of its branch. If the pull request was opened before the store was restored from a backup, the
		// errand that was lost may have pushed more.
		Head string `json:"head,omitempty"`
	}

	// PRFound is errand's pull request with the task's work, of which the store did not know. It is open or merged.
	PRFound struct {
		PR   state.PR `json:"pr"`
		Head string   `json:"head"` // the commit at the head of its branch
	}

	// PRReplaced says that a pull request that its task does not continue is not open. Number is 0 if there is none.
	PRReplaced struct {
		Number int    `json:"number,omitempty"`
		URL    string `json:"url,omitempty"`
		Branch string `json:"branch,omitempty"`
		Closed bool   `json:"closed,omitempty"` // errand closed it
	}

	// ThreadsAnswered says that the round's answers are posted in their threads, or that they are in a pending review.
	ThreadsAnswered struct {
		Review    string            `json:"review,omitempty"` // GraphQL ID of the pending review, which is still to be submitted
		Post      *state.Post       `json:"post,omitempty"`   // the other answers, which are still to be posted
		Uncertain *UncertainAnswers `json:"doubtful,omitempty"`
	}

	// AnswersFound says which feedback of the task errand has answered, without the store's knowledge.
	AnswersFound struct {
		IDs []string `json:"ids,omitempty"` // of the feedback
	}

	// Gathered has the feedback of a round.
	Gathered struct {
		Feedback []state.Feedback `json:"feedback,omitempty"`
	}

	// WorkSaved says that a stopped run has ended. Without Work.Ref it left no work.
	WorkSaved struct {
		Work state.SavedWork `json:"saved"`
		// Archive is the complete work on the VM of a canceled task; nil if it could not be packed.
		Archive *state.SuspendedWork `json:"archive,omitempty"`
		// Continues is set if nothing was saved because another run was to continue the work.
		Continues bool `json:"continues,omitempty"`
	}

	// IssueCreated says that a proposed issue is on GitHub now.
	IssueCreated struct {
		N     int    `json:"n"` // Proposal.N
		Issue int    `json:"issue"`
		URL   string `json:"url"`
		OnPR  bool   `json:"on_pr,omitempty"` // it was requested on the pull request
	}

	// ChecksRead has the state of the checks of the pull request's head.
	ChecksRead struct {
		Checks   string `json:"checks,omitempty"`   // as in state.PR, as the next two
		Reason   string `json:"why,omitempty"`      //
		Optional string `json:"optional,omitempty"` //
		DCO      bool   `json:"dco,omitempty"`      // a check for sign-offs failed
		Head     string `json:"head,omitempty"`     // the commit that was judged
		// Stale says that GitHub showed the pull request with another head, so nothing was judged.
		Stale bool `json:"stale,omitempty"`
		// Settled is set if checks that count failed and none of those runs any more, and if errand has waited for the pending ones long enough.
		Settled bool `json:"settled,omitempty"`
		Pending bool `json:"pending,omitempty"` // checks that count are not complete or not reported
		// Flaky are the names of checks that failed, and succeeded when errand had them run again.
		Flaky []string `json:"flaky,omitempty"`
		// Again is when they are to be read again, although nothing may be reported until then; zero if they need not be.
		Again time.Time `json:"again,omitzero"`
		// Reads is how often they were read in a row because of Again, without a change.
		Reads int `json:"reads,omitempty"`
	}

	// ChecksExamined says what failed in the checks of a head, and what was done about it.
	ChecksExamined struct {
		Head  string        `json:"head"`
		Reran []state.Rerun `json:"reran,omitempty"` // which have been run again now, or are to be
		// Again is when a check that was run again should have been reported, zero if all have been.
		Again    time.Time         `json:"again,omitzero"`
		Failures []state.Feedback  `json:"failures,omitempty"` // which an agent may be able to repair
		Notes    []state.CheckNote `json:"notes,omitempty"`    // all that are left to people if no agent repairs anything
	}

	// BaseRead compares the pull request's branch with its base, and says what was done.
	BaseRead struct {
		Known string `json:"known"`          // the head that the task knew before
		Head  string `json:"head"`           // of the branch, after an update by GitHub
		Base  string `json:"base,omitempty"` // the name of the base branch
		// Newest is the base's newest commit in a conflict, and Workflow a workflow that the base changed and that errand may not push.
		Newest   string     `json:"newest,omitempty"`
		Workflow string     `json:"workflow,omitempty"`
		Result   BaseResult `json:"result"`
		Refusal  string     `json:"refusal,omitempty"` // GitHub's reason, a sentence
		Rebased  bool       `json:"rebased,omitempty"` // the branch was rebased, not merged with the base
		Begun    bool       `json:"begun,omitempty"`   // GitHub has agreed to update the branch, and does it later
		// Published is the update by GitHub, for the statement about the pull request; nil if there was none. Its time is that of the event.
		Published *state.Publication `json:"published,omitempty"`
		// Request is the command that was known when the branch was compared.
		Request state.UpdateRequest `json:"request,omitzero"`
		Reads   int                 `json:"reads,omitempty"` // how often the result was BaseUnknown before
	}

	// PRFinished says what was done, or is missing, to have the pull request reviewed or merged.
	PRFinished struct {
		Head   string       `json:"head"`             // the commit that was read
		Draft  bool         `json:"draft"`            // whether it is a draft now
		ReadAt time.Time    `json:"read_at,omitzero"` // when the job began to read it
		Result FinishResult `json:"result"`
		Late   bool         `json:"late,omitempty"` // it was marked ready although no required check has started
		// Waits is why it is not merged yet, a clause for people, and Refusal GitHub's reason, a sentence.
		Waits    string       `json:"waits,omitempty"`
		Refusal  string       `json:"refusal,omitempty"`
		By       state.Person `json:"approved_by,omitzero"` // who approved the head, if it was found out
		Dequeued bool         `json:"dequeued,omitempty"`   // errand removed it from the merge queue
		Unqueued bool         `json:"unqueued,omitempty"`   // it is not in the merge queue
		Refused  bool         `json:"refused,omitempty"`    // GitHub refused the merge, which is tried once more
		Reads    int          `json:"reads,omitempty"`      // how often the result was FinishUnknown before
	}

	// Released says that a VM is gone.
	Released struct {
		VM     string            `json:"vm,omitempty"` // its name; empty for the task's present one
		Reason state.VMEndReason `json:"why"`
	}

	// Suspended is the outcome of suspending the work on a VM.
	Suspended struct {
		VM string `json:"vm"`
		// Work is the stored work, nil if none could be stored. Then Failure has the reason, in a clause for people, and EndReason
		// the value of VM.EndReason.
		Work      *state.SuspendedWork `json:"asleep,omitempty"`
		Failure   string               `json:"failure,omitempty"`
		EndReason state.VMEndReason    `json:"why,omitempty"`
		Saved     state.SavedWork      `json:"saved,omitzero"` // the changes alone, if no more could be stored
	}

	// Restored says that a VM has the suspended work again.
	Restored struct {
		Launch state.Launch  `json:"launch"`              // the VM
		For    state.JobKind `json:"woken_for,omitempty"` // the step that needed the VM
	}

	// VMWanted asks a task to give up its idle VM, because another task waits for one.
	VMWanted struct {
		VM string `json:"vm"` // its name
	}

	// QueueMoved is the present place of a task in the queue for a VM, from 1.
	QueueMoved struct {
		Place int `json:"place"`
	}

	// StepFailed says that a job has failed permanently.
	StepFailed struct {
		Failure state.Failure `json:"failure"`
		Post    *state.Post   `json:"post,omitempty"` // the comment that the job should have posted
		// Launch has the parameters of a run that the job may have started.
		Launch *state.Launch `json:"launch,omitempty"`
	}
)

// BaseResult is how a branch compares with its base.
type BaseResult string

// The results.
const (
	BaseCurrent  BaseResult = "current"  // it has the base's newest commits
	BaseBehind   BaseResult = "behind"   // it has not, which may stay so
	BaseUpdated  BaseResult = "updated"  // GitHub added them
	BaseConflict BaseResult = "conflict" // they cannot be added automatically
	BaseRefused  BaseResult = "refused"  // GitHub does not add them
	BaseLimit    BaseResult = "limit"    // they are missing, but errand added some too often
	BaseUnknown  BaseResult = "unknown"  // GitHub does not know it yet, or is about to update the branch
)

// FinishResult is what became of a pull request that is to be marked ready for review or merged.
type FinishResult string

// The results.
const (
	FinishReady   FinishResult = "ready"   // it was marked ready for review
	FinishMerged  FinishResult = "merged"  // GitHub merged it
	FinishQueued  FinishResult = "queued"  // it is in the merge queue
	FinishWaits   FinishResult = "waits"   // something is missing
	FinishRefused FinishResult = "refused" // GitHub refuses to merge it
	FinishUnknown FinishResult = "unknown" // GitHub does not know yet whether it can be merged
)

// Start is what the job start has read.
type Start struct {
	Settings settings.Settings `json:"settings"`
	Context  state.Context     `json:"context"`
	Branch   state.Branch      `json:"branch"`
	Ticket   string            `json:"ticket,omitempty"`
	Visible  bool              `json:"visible"` // the agent may see some text of the issue
	// ReadAt is the time when the job began to read the discussion.
	ReadAt time.Time `json:"read_at,omitzero"`
}

// UncertainAnswers lists answers in threads of which an earlier attempt may have posted a copy that is not visible yet.
type UncertainAnswers struct {
	Keys  []string  `json:"keys"` // of their hidden markers
	Since time.Time `json:"since"`
}

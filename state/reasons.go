package state

// The reasons why an approval does not count. Package machine posts a comment once per revision and reason, but none for
// RejectedNoPermission and RejectedBot: approvals by bots and by people without write access are only counted (Task.Ignored).
const (
	RejectedNoPermission    = "no_permission"  // the person has no write access
	RejectedBot             = "bot"            // bots do not approve
	RejectedSuperseded      = "superseded"     // a newer revision exists
	RejectedPlanEdited      = "edited"         // a person edited the plan comment
	RejectedIssueChanged    = "issue_changed"  // title or body changed since
	RejectedOldHash         = "old_hash"       // the hash names another revision
	RejectedTooEarly        = "too_fresh"      // a bare approve before the revision was posted long enough
	RejectedChangeRequested = "overtaken"      // a change request came first
	RejectedRevoked         = "revoked"        // permission or 👍 was withdrawn before the start
	RejectedUnticked        = "not_ticked"     // the box is no longer ticked, or somebody else has since touched it
	RejectedSeveralTicked   = "several_ticked" // the boxes of several approaches are ticked
	RejectedUnknownPerson   = "not_seen"       // no webhook named the person who ticked the box
	RejectedCommentDeleted  = "erased"         // the comment with the command was deleted or hidden
	RejectedCommentEdited   = "reworded"       // the comment with the command was edited
	RejectedIssueClosed     = "closed"         // the issue is closed
	RejectedNonePending     = "none_open"      // no plan waits for approval
	RejectedPlanDeleted     = "deleted"        // the plan comment was deleted
	RejectedQuoted          = "quoted"         // the command was in a quote or in code
	RejectedUnknownChoice   = "choice"         // the named approach does not exist
	RejectedRevised         = "revised"        // it was held while comments were considered, and they led to a new revision
)

// The reasons why a revision can never be approved again.
const (
	StaleEdited       = RejectedPlanEdited
	StaleDeleted      = RejectedPlanDeleted
	StaleIssueChanged = RejectedIssueChanged
)

// Short answers to commands (Post.Reason of PostReply).
const (
	ReplyHelp            = "help"
	ReplyUnknown         = "unknown"
	ReplyStatus          = "status"
	ReplyNothingToCancel = "nothing_to_cancel"
	ReplyNothingToRetry  = "nothing_to_retry"
	ReplyNonePending     = RejectedNonePending
	ReplyOneTask         = "one_task"
	ReplyTooLate         = "too_late"
	ReplyBudgetRaised    = "budget_raised"
	ReplyNoBudget        = "no_budget" // the task is on a subscription
	ReplyNoTokenCap      = "no_token_cap"
	ReplyModelSet        = "model_set"
	ReplyModelUnknown    = "model_unknown" // Post.Items has the available models
	ReplyTicketNoted     = "ticket_noted"
	ReplyTicketMissing   = "ticket_missing" // `create pr` without a key
	ReplyMessageKept     = "message_kept"
	ReplyMessageLong     = "message_long"  // to a working agent
	ReplyMessagesFull    = "messages_full" // the agent has as many messages as it may have
	ReplyIssueCreated    = "issue_created" // Post.Items has the proposal's number
	ReplyNoProposal      = "no_proposal"
	ReplyIssueFailed     = "issue_failed"         // a proposed issue, Post.Items, could not be created: Post.Text
	ReplyTooMany         = "too_many"             // commands in one comment: Post.Items, and Post.Text more, were not executed
	ReplyCommentDeleted  = RejectedCommentDeleted // a comment was deleted or hidden before it was read
	ReplyCommentEdited   = RejectedCommentEdited  // a comment was edited before it was read
	ReplyEnded           = "ended"                // the task has ended; a message starts nothing
	ReplyHowToApprove    = "how_to_approve"       // a comment such as "LGTM" approves nothing
	ReplyUpdateLater     = "update_later"         // the branch is updated after the present work
	ReplyUpdatesFull     = "updates_full"         // as many commands to update the branch wait as may wait
	ReplyNoOpenPR        = "no_open_pr"           // there is no open pull request to update
	ReplyRetryClosed     = "retry_closed"         // a task does not continue or begin again while its issue is closed
	ReplyNoTask          = "no_task"              // the issue has no task
	ReplyNoTaskClosed    = "no_task_closed"       // the issue has no task and is closed
)

// Why errand began a round by itself (Post.Reason of PostRoundExpired).
const (
	RoundChecks   = "checks"   // checks of the pull request failed
	RoundConflict = "conflict" // the branch conflicted with its base
)

// The results of an update of the branch (Post.Reason of PostBase). Post.Items has the name of the base, and the new head or a file.
const (
	BaseUpdated           = "updated"            // GitHub merged the base: the new head
	BaseRebased           = "rebased"            // GitHub rebased the branch: the new head
	BaseCurrent           = "current"            // it has the newest commits: its head
	BaseConflict          = "conflict"           // an agent resolves the conflict
	BaseConflictLeft      = "conflict_left"      // errand tried to resolve conflicts too often without a person's action
	BaseRunLimit          = "run_limit"          // agents ran too often without a person's action to resolve the conflict
	BaseLeft              = "left"               // errand updated it too often without a person's action
	BaseRefused           = "refused"            // GitHub refused it: Text has the reason
	BaseNotRebased        = "not_rebased"        // the same, of a rebase that a person asked for
	BaseWorkflows         = "workflows"          // the base changed a workflow: the file
	BaseConflictWorkflows = "conflict_workflows" // the same, with a conflict
	BaseUnknown           = "uncomputed"         // GitHub does not say whether there is a conflict
	BaseClosed            = "pr_closed"          // the pull request was closed before it was updated
	BaseMerged            = "pr_merged"          // it was merged before
	BaseEnded             = "task_ended"         // the task ended before
)

// What became of a pull request that errand is to mark ready for review or to merge (Post.Reason of PostMerge).
const (
	MergeReadyLate    = "ready_late"    // it was marked ready although no check has started: the head
	MergeNotReady     = "not_ready"     // GitHub refuses to mark it ready: Text has the reason
	MergeRefused      = "refused"       // GitHub refuses to merge it: Text has the reason
	MergeTakenBack    = "taken_back"    // errand removed it from the merge queue, because something is missing now: Text has what
	MergeApproveAgain = "approve_again" // the base's commits were added to it, so the approval is of an older commit: the head
	MergeDequeued     = "dequeued"      // errand removed it from the merge queue before it pushed
	MergeAutoDisabled = "auto_disabled" // errand disabled auto-merge before it pushed: the login of the person who had enabled it
)

// EndIssueClosed is the reason of the end of a task whose issue was closed.
const EndIssueClosed = "the issue was closed"

// EndSaving is the reason of a comment of kind PostEnded that waits for the work of a canceled task to be saved.
const EndSaving = "saving"

// The reasons for a comment of kind PostWaiting; Post.Text has the details.
const (
	WaitingBlocked  = "blocked"
	WaitingConfig   = "config"
	WaitingText     = "nothing_visible"
	WaitingEdited   = "edited"
	WaitingDisabled = "disabled"
	WaitingKey      = "key"
	// WaitingPermission has the missing permissions in Post.Text, and the page to grant them in Post.URL.
	WaitingPermission = "permission"
)

// The subjects of questions (Question.Kind and Post.Reason of PostQuestion).
const (
	AskAgent    = "agent"
	AskExisting = "existing_work"
	AskKey      = "key_needed"
	AskRefused  = "refused"
	AskNoChange = "no_changes"
	AskStopped  = "stopped"
)

// The subjects of comments of kind PostVM.
const (
	VMNotRestored = "not_woken" // saved work could not be restored: Text has the reason
	VMNotSaved    = "not_saved" // the VM's work could not be saved and is lost: Text has the reason
	VMExpired     = "forgotten" // saved work was not needed and was deleted
)

// VMEndReason is why a VM ended. The list is closed: comments, pages, log and metrics show these values.
type VMEndReason string

// The reasons for the end of a VM. An ended task's VM has the task's phase as its reason.
const (
	VMEndDone         VMEndReason = "done"          // its task was done
	VMEndCancelled    VMEndReason = "cancelled"     // its task was canceled
	VMEndFailed       VMEndReason = "failed"        // its task failed and keeps no VM
	VMEndFresh        VMEndReason = "fresh"         // `retry fresh` requested a new one: the value that tasks store
	VMEndRetryFresh   VMEndReason = "retry_fresh"   // VMEndFresh, as rows of VMs store it
	VMEndReplaced     VMEndReason = "replaced"      // the task got another one; only tasks store it
	VMEndAsleep       VMEndReason = "asleep"        // its task was suspended
	VMEndLimit        VMEndReason = "limit"         // the task's limit on VM hours or cost was reached
	VMEndOrphan       VMEndReason = "orphan"        // the reaper found it without an owner
	VMEndUnusable     VMEndReason = "unusable"      // it came up but was unusable
	VMEndCreateFailed VMEndReason = "create_failed" // it did not come up
	VMEndIdle         VMEndReason = "idle"          // it shut down after a time without contact
	VMEndCrashed      VMEndReason = "crashed"       // its first process ended unexpectedly
	VMEndHostStopped  VMEndReason = "host_stopped"  // the host stopped it
	VMEndVanished     VMEndReason = "vanished"      // it disappeared for an unknown reason, as after a power cut
	VMEndDiskFull     VMEndReason = "disk_full"     // its disk was full
	VMEndOperator     VMEndReason = "operator"      // the operator ended it
)

// HintVMHours is the hint for a task whose VM hours are used up.
const HintVMHours = "Its work is saved. Comment `budget +12h` to give the task 12 more VM hours and continue."

package state

// Why an approval does not count. Each value is answered once per revision by internal/comment.
const (
	NotNoPermission   = "no_permission"    // the person has no write permission
	NotBot            = "bot"              // bots do not approve
	NotSuperseded     = "superseded"       // a newer revision exists
	NotEdited         = "edited"           // a person edited the plan comment
	NotIssueChanged   = "issue_changed"    // title or body changed since
	NotOldHash        = "old_hash"         // the hash names another revision
	NotTooFresh       = "too_fresh"        // a bare approve before the revision stood long enough
	NotOvertaken      = "overtaken"        // a change request came first
	NotRevoked        = "revoked"          // permission or 👍 was withdrawn before the start
	NotTicked         = "not_ticked"       // the box is not ticked any more, or somebody else touched it since
	NotSeveral        = "several_ticked"   // the boxes of several approaches are ticked
	NotSeen           = "not_seen"         // no webhook told who ticked the box
	NotErased         = "erased"           // the comment with the command was deleted or hidden
	NotReworded       = "reworded"         // the comment with the command was edited
	NotTickNotAllowed = "tick_not_allowed" // the tick was not a writer's
	NotClosed         = "closed"           // the issue is closed
	NotNoneOpen       = "none_open"        // no plan waits
	NotDeleted        = "deleted"          // the plan comment is gone
	NotQuoted         = "quoted"           // the command stood in a quote or in code
	NotChoice         = "choice"           // the approach named does not exist
)

// Why a revision can never be approved again.
const (
	StaleEdited       = NotEdited
	StaleDeleted      = NotDeleted
	StaleIssueChanged = NotIssueChanged
)

// Short answers to commands (Post.Reason of PostReply).
const (
	ReplyHelp            = "help"
	ReplyUnknown         = "unknown"
	ReplyStatus          = "status"
	ReplyNothingToCancel = "nothing_to_cancel"
	ReplyNothingToRetry  = "nothing_to_retry"
	ReplyNoneOpen        = NotNoneOpen
	ReplyOneTask         = "one_task"
	ReplyTooLate         = "too_late"
	ReplyBudgetRaised    = "budget_raised"
	ReplyNoBudget        = "no_budget" // the task is on a subscription
	ReplyModelSet        = "model_set"
	ReplyModelUnknown    = "model_unknown" // Post.Items has what is offered
	ReplyTicketNoted     = "ticket_noted"
	ReplyTicketMissing   = "ticket_missing" // `create pr` without a key
	ReplyMessageKept     = "message_kept"
	ReplyIssueCreated    = "issue_created" // Post.Items has the proposal's number
	ReplyNoProposal      = "no_proposal"
	ReplyIssueFailed     = "issue_failed" // a proposed issue, Post.Items, could not be created: Post.Text
	ReplyTooMany         = "too_many"     // commands in one comment: Post.Items, and Post.Text more, were not carried out
	ReplyErased          = NotErased      // a comment was deleted or hidden before it was read
	ReplyReworded        = NotReworded    // a comment was edited before it was read
	ReplyEnded           = "ended"        // the task is over; a message begins nothing
)

// Why a comment of kind PostWaiting is posted; Post.Text has the details.
const (
	WaitingBlocked  = "blocked"
	WaitingConfig   = "config"
	WaitingText     = "nothing_visible"
	WaitingEdited   = "edited"
	WaitingDisabled = "disabled"
	WaitingKey      = "key"
	// WaitingPermission has the permissions in Post.Text, and in Post.URL where they are granted.
	WaitingPermission = "permission"
)

// What a question is about (Question.Kind and Post.Reason of PostQuestion).
const (
	AskAgent    = "agent"
	AskExisting = "existing_work"
	AskKey      = "key_needed"
	AskRefused  = "refused"
	AskNoChange = "no_changes"
	AskStopped  = "stopped"
)

// What a comment of kind PostVM tells of.
const (
	VMNotWoken  = "not_woken" // what was put away could not be used: Text says why
	VMNotSaved  = "not_saved" // the VM's work could not be put away, and it is gone: Text says why
	VMForgotten = "forgotten" // nobody wanted what was put away, and it is deleted
)

// VMDiskFull is why a VM is given up whose disk had no room left (VM.Why, RunResult.VMEnd).
const VMDiskFull = "disk_full"

// ClassVMHours is the class of an end because the task's VM hours are used up.
const ClassVMHours = "vm_hours"

// HintVMHours says what helps a task whose VM hours are used up.
const HintVMHours = "Its work is saved. The operator can raise `limits.vm_hours`; then comment `retry` to go on from here."

// ClassBudget is the class of an end because the money cap is reached: raising it goes on.
const ClassBudget = "budget"

// ClassVM is the class of an end because a VM is gone or cannot be used, classInternal of one that
// nothing is known of but that it went wrong.
const (
	ClassVM       = "vm"
	ClassInternal = "internal"
)

// ClassGone marks an end after which nothing can be posted: there is no issue any more. After classAccess
// nothing can be posted until the App has access again.
const (
	ClassGone   = "gone"
	ClassAccess = "access"
)

// ClassBack marks an end that people are told of late, because errand had no access.
const ClassBack = "back"

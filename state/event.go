package state

import "time"

// EventKind is the kind of a fact.
type EventKind string

// Actions of people, reported by webhooks, polls and sweeps.
const (
	EventTriggered     EventKind = "triggered"      // assigned, labeled or mentioned: By, Via, Issue
	EventUntriggered   EventKind = "untriggered"    // unassigned or unlabeled: By
	EventCommented     EventKind = "commented"      // on the issue or the pull request: By, Comment, Orders
	EventIssueEdited   EventKind = "issue_edited"   // By, Issue
	EventIssueClosed   EventKind = "issue_closed"   // By
	EventIssueGone     EventKind = "issue_gone"     // deleted or transferred away: Lost
	EventPlanEdited    EventKind = "plan_edited"    // somebody edited a plan comment: By, Comment, Ticked
	EventPlanDeleted   EventKind = "plan_deleted"   // somebody deleted a comment, of ours or of others: By, Comment
	EventThumb         EventKind = "thumb"          // the poll saw a 👍: By, Candidate or Comment
	EventReviewed      EventKind = "reviewed"       // a review was submitted: By, Review
	EventPRClosed      EventKind = "pr_closed"      // By, Merged
	EventPushed        EventKind = "pushed"         // somebody pushed to the task's branch: By, Head
	EventChecksChanged EventKind = "checks_changed" // of the pull request's head; a hint to read them
	EventPoked         EventKind = "poked"          // a condition that the task waits for may have changed
	EventGone          EventKind = "gone"           // the App was uninstalled, suspended or lost the repository: Lost
	EventBack          EventKind = "back"           // the App has access again: Installation, perhaps Repo
	EventRenamed       EventKind = "renamed"        // Repo has its new name, Installation the installation that reaches it
	EventLocked        EventKind = "locked"         // the issue's conversation was locked
	EventUnlocked      EventKind = "unlocked"       // the conversation was unlocked
)

// Reports of runs, through their supervisor.
const (
	EventProgress EventKind = "progress"  // Progress
	EventRunEnded EventKind = "run_ended" // Result
	EventCalled   EventKind = "called"    // Call: its agent called one of errand's tools
	EventSpent    EventKind = "spent"     // Money: the gateway charged the run for an answer of the model; or Waiting: it denied a call
)

// Reports of jobs.
const (
	EventStarted    EventKind = "started"     // Start
	EventHeldUp     EventKind = "held_up"     // Waiting: the job cannot continue for now
	EventAsked      EventKind = "asked"       // Question: people have to answer it first
	EventLaunched   EventKind = "launched"    // Launch
	EventPosted     EventKind = "posted"      // Posted, Post
	EventStatusSent EventKind = "status_sent" // Status
	EventApproved   EventKind = "approved"    // Candidate, checked
	EventNoApproval EventKind = "no_approval" // Candidate, Rejection
	EventStale      EventKind = "stale"       // Stale: a plan can never be approved again
	EventCollected  EventKind = "collected"   // Work, or Refusals, or neither: no changes
	EventShown      EventKind = "shown"       // Plan: the diff of the changeset Run, for people
	EventCommitted  EventKind = "committed"   // Work with Head
	EventMoved      EventKind = "moved"       // the branch is at Work.Head
	EventOvertaken  EventKind = "overtaken"   // somebody pushed meanwhile: Head
	EventConflict   EventKind = "conflict"    // the rebase onto Head failed: Paths
	EventPROpened   EventKind = "pr_opened"   // PR
	EventAnswered   EventKind = "answered"    // the round's answers are posted
	EventGathered   EventKind = "gathered"    // Feedback of a round
	EventSaved      EventKind = "saved"       // Saved: the work of a stopped run
	EventCreated    EventKind = "created"     // Created: a proposed issue is on GitHub now
	EventChecksRead EventKind = "checks_read" // Checks
	EventReleased   EventKind = "released"    // Released: the VM is gone
	EventSlept      EventKind = "slept"       // Slept, perhaps Saved
	EventWoken      EventKind = "woken"       // Launch.VM has the sleeping work again, for the step WokenFor
	EventDue        EventKind = "due"         // Due: a delayed job's time has come
	EventStepFailed EventKind = "step_failed" // Failure: a job gave up
)

// Event is a fact that may move a task. Kind determines which of the other fields are set.
//
// Events of people's actions are stored while a job reads the person's permission; reports of runs and jobs never are.
type Event struct {
	Kind EventKind `json:"kind"`
	Task TaskKey   `json:"task"`
	// ID names the outside fact ("comment:123"), so that it counts once however often it is
	// reported. It is empty where repetition does no harm.
	ID string `json:"id,omitempty"`
	// At is when it happened, as the outside reports; Apply sets Now.
	At       time.Time `json:"at,omitzero"`
	Now      time.Time `json:"now,omitzero"`
	Delivery string    `json:"delivery,omitempty"`
	// Run is the run that the event is about. Events of runs that are not active any more have no effect.
	Run string `json:"run,omitempty"`

	By         Person     `json:"by,omitzero"`
	Permission Permission `json:"permission,omitempty"` // of By; set by the job vet
	Vetted     *Vetted    `json:"vetted,omitempty"`     // the source of Permission; passed on to jobs

	Repo         *Repo  `json:"repo,omitempty"`
	Installation int64  `json:"installation,omitempty"`
	Issue        *Issue `json:"issue,omitempty"`
	Via          string `json:"via,omitempty"`
	Base         string `json:"base,omitempty"`
	Lost         string `json:"lost,omitempty"` // EventGone, EventIssueGone: how it became unreachable, a clause for people

	Comment   *Comment   `json:"comment,omitempty"`
	Orders    []Order    `json:"orders,omitempty"`
	Left      []string   `json:"left,omitempty"`       // further commands of the comment, as written, which are not carried out
	More      int        `json:"more,omitempty"`       // the number of commands beyond Left
	Ticked    bool       `json:"ticked,omitempty"`     // the only change is the approval box, now ticked; of EventPosted: a box is ticked in the comment that was found
	OnlyBoxes bool       `json:"only_boxes,omitempty"` // nothing but boxes changed
	Review    *Review    `json:"review,omitempty"`
	Candidate *Candidate `json:"candidate,omitempty"`
	Merged    bool       `json:"merged,omitempty"`
	Head      string     `json:"head,omitempty"` // the commit that somebody else put at the head of the task's branch

	EventContext
	RunReport
	JobReport
}

// EventContext is read by Apply from the task's queue, in the transaction that applies the event.
type EventContext struct {
	// Unvetted is set if somebody's comment or edit has arrived but that person's permission is not known yet.
	Unvetted bool `json:"unvetted,omitempty"`
	// Approving is set if an approval is being checked.
	Approving bool `json:"approving,omitempty"`
	// Wanted is set if work of the task is queued, or a person's comment or edit is being vetted, so that its VM
	// may be needed in a moment.
	Wanted bool `json:"wanted,omitempty"`
}

// RunReport is the payload of events that the supervisor of a run, or the gateway, reports.
type RunReport struct {
	Progress *Progress  `json:"progress,omitempty"`
	Result   *RunResult `json:"result,omitempty"`
	Money    *Money     `json:"money,omitempty"`
	Call     *Call      `json:"call,omitempty"`
}

// JobReport is the payload of events that jobs report.
type JobReport struct {
	Start    *Start    `json:"start,omitempty"`
	Waiting  *Waiting  `json:"waiting,omitempty"`
	Question *Question `json:"question,omitempty"`
	Launch   *Launch   `json:"launch,omitempty"`

	Posted   *Posted `json:"posted,omitempty"`
	Post     *Post   `json:"post,omitempty"`
	BodyHash string  `json:"body_hash,omitempty"` // of the comment in Posted, see comment.BodyHash
	// Searched is set if the outcome of an earlier attempt was unknown, so the job searched for the effect: a second
	// copy may show up later, and people may have reacted before errand knew of it.
	Searched bool           `json:"searched,omitempty"`
	Doubtful *Doubtful      `json:"doubtful,omitempty"` // of EventAnswered
	Status   *StatusComment `json:"status,omitempty"`
	Created  *Created       `json:"created,omitempty"`

	Stale *StalePlan `json:"stale,omitempty"`
	// Rejection is why Candidate is no valid approval, one of the Not… and Stale… reasons.
	Rejection string `json:"rejection,omitempty"`

	Work     *Work      `json:"work,omitempty"`
	Plan     *Plan      `json:"plan,omitempty"` // without number and hash
	Refusals []Refusal  `json:"refusals,omitempty"`
	Paths    []string   `json:"paths,omitempty"`
	PR       *PR        `json:"pr,omitempty"`
	Checks   string     `json:"checks,omitempty"` // the state of the pull request's checks: none, pending, success, failure; empty if unknown
	Feedback []Feedback `json:"feedback,omitempty"`

	Saved    *SavedWork  `json:"saved,omitempty"`
	Released *ReleasedVM `json:"released,omitempty"`
	Slept    *SleptVM    `json:"slept,omitempty"`
	WokenFor JobKind     `json:"woken_for,omitempty"` // the step that needed the VM

	Due     *Due     `json:"due,omitempty"`
	Failure *Failure `json:"failure,omitempty"`
}

// StalePlan is a revision that can never be approved again.
type StalePlan struct {
	Hash   string `json:"hash"`
	Reason string `json:"reason"` // one of the Stale… reasons
}

// ReleasedVM is a VM that is gone.
type ReleasedVM struct {
	VM  string `json:"vm,omitempty"` // its name; empty for the task's present one
	Why string `json:"why"`          // the value of VM.Why
}

// SleptVM is the outcome of putting a VM's work to sleep.
type SleptVM struct {
	VM string `json:"vm"`
	// Asleep is the stored work, nil if none could be stored. Then Failure says why, in a clause for people, and Why is
	// the value of VM.Why.
	Asleep  *Asleep `json:"asleep,omitempty"`
	Failure string  `json:"failure,omitempty"`
	Why     string  `json:"why,omitempty"`
}

// Issue is an issue as a webhook or a sweep shows it.
type Issue struct {
	Node      string   `json:"node"`
	Title     string   `json:"title"`
	Body      string   `json:"body"`
	Author    Person   `json:"author"`
	Labels    []string `json:"labels,omitempty"`
	Type      string   `json:"type,omitempty"`
	Milestone string   `json:"milestone,omitempty"`
	Closed    bool     `json:"closed,omitempty"`
	// Unvouched is set if title or body may have changed after the action of Event.By, so that this person has not
	// necessarily seen the present text.
	Unvouched bool `json:"unvouched,omitempty"`
}

// Comment is a comment as a webhook or a sweep shows it.
type Comment struct {
	ID   int64     `json:"id"`
	Node string    `json:"node,omitempty"`
	Body string    `json:"body"`
	At   time.Time `json:"at"`
	OnPR bool      `json:"on_pr,omitempty"`
	// Thread is the top-level review comment that this one answers, or is; 0 for a conversation comment.
	Thread int64 `json:"thread,omitempty"`
	// Mention is set when it addresses the bot at the start of a line.
	Mention bool `json:"mention,omitempty"`
	// Withdrawn is set by the job vet if the comment has no effect because it was deleted, hidden or edited before it was
	// read: NotErased or NotReworded.
	Withdrawn string `json:"withdrawn,omitempty"`
	// Quoted is set when the bot is addressed inside quotes or code only: no command was given.
	Quoted bool `json:"quoted,omitempty"`
}

// Review is a submitted review.
type Review struct {
	ID    int64     `json:"id"`
	State string    `json:"state"` // approved, changes_requested, commented
	Body  string    `json:"body"`
	At    time.Time `json:"at"`
	Head  string    `json:"head"`
}

// Verb is the name of a command to errand.
type Verb string

// The verbs of the command table; internal/comment parses them.
const (
	VerbApprove  Verb = "approve"
	VerbCancel   Verb = "cancel"
	VerbStop     Verb = "stop"
	VerbRetry    Verb = "retry"
	VerbStatus   Verb = "status"
	VerbReplan   Verb = "replan"
	VerbBudget   Verb = "budget"
	VerbModel    Verb = "model"
	VerbCreatePR Verb = "create pr"
	VerbIssue    Verb = "create issue"
	VerbHelp     Verb = "help"
	VerbPlan     Verb = "plan"    // trigger words of a mention: plan, start, go
	VerbMessage  Verb = "message" // anything else: a message to the agent
	VerbUnknown  Verb = "unknown" // looks like a command; Arg has the nearest one
)

// Order is one command that a person gave.
type Order struct {
	Verb   Verb   `json:"verb"`
	Hash   string `json:"hash,omitempty"`   // approve
	Choice int    `json:"choice,omitempty"` // approve 2, create issue 2
	With   string `json:"with,omitempty"`   // approve with: …
	Fresh  bool   `json:"fresh,omitempty"`  // retry fresh
	Turns  int    `json:"turns,omitempty"`  // retry turns=60
	// MicroUSD is the addition by `budget +5`, in millionths of a US dollar, Tokens that by `budget +500k tokens`.
	MicroUSD int64  `json:"micro_usd,omitempty"`
	Tokens   int64  `json:"tokens,omitempty"`
	Arg      string `json:"arg,omitempty"` // model NAME, create pr KEY-123, the unknown word's neighbour
	Text     string `json:"text,omitempty"`
}

// Progress is a sign of life of a run, at most one every few seconds.
type Progress struct {
	LastSeq int64     `json:"last_seq"`
	Session string    `json:"session,omitempty"`
	Model   string    `json:"model,omitempty"`
	Doing   string    `json:"doing,omitempty"`
	Turns   int       `json:"turns,omitempty"`
	Money   Money     `json:"money"`
	Sign    time.Time `json:"sign"`
}

// Start is the result of the job start.
type Start struct {
	Settings Settings `json:"settings"`
	Context  Context  `json:"context"`
	Branch   Branch   `json:"branch"`
	Ticket   string   `json:"ticket,omitempty"`
	Visible  bool     `json:"visible"` // the agent may see some text of the issue
	// ReadAt is the time when the job began to read the discussion.
	ReadAt time.Time `json:"read_at,omitzero"`
}

// Launch is the result of the job launch.
type Launch struct {
	Run     string `json:"run"`
	VM      VM     `json:"vm"`
	Adapter string `json:"adapter"`
	Model   string `json:"model,omitempty"`
	// MaxTurns is how many answers of the model the gateway gives the run; 0 leaves it to the agent.
	MaxTurns int `json:"max_turns,omitempty"`
	// TurnLimit is the number of turns in the agent's prompt.
	TurnLimit int `json:"turn_limit,omitempty"`
	// Repairs reports that the agent was asked only for its closing block.
	Repairs bool      `json:"repairs,omitempty"`
	VMHead  string    `json:"vm_head,omitempty"`
	BaseSHA string    `json:"base_sha,omitempty"` // the base's newest commit, where a branch begins anew
	Root    string    `json:"root,omitempty"`     // the commit to which the checkout was set; empty if it keeps unpublished work
	Started time.Time `json:"started"`
	Resumed bool      `json:"resumed,omitempty"` // the agent continues its session
	// Notes list the contents of the prompt besides the plan, for the status comment.
	Notes []string `json:"notes,omitempty"`
	// NotWoken is the reason why the sleeping work could not be restored on the VM, empty if it was, or if there was
	// none.
	NotWoken string `json:"not_woken,omitempty"`
	// Taken are the ids of the feedback that the prompt carries.
	Taken []string `json:"taken,omitempty"`
}

// Refusal is a violation of a rule of the push gate.
type Refusal struct {
	Rule   string `json:"rule"`
	Path   string `json:"path,omitempty"`
	Detail string `json:"detail"`
	Remedy string `json:"remedy"`
}

// Failure describes a job that failed permanently. Reason and Hint are for people, Detail is for the operator.
type Failure struct {
	Job    JobKind `json:"job"`
	Class  string  `json:"class"` // github, vm, agent, permission, config, internal
	Reason string  `json:"reason"`
	Hint   string  `json:"hint"`
	Detail string  `json:"detail,omitempty"`
	// RetryAt is set if a retry may succeed: the task is then interrupted, not failed.
	RetryAt time.Time `json:"retry_at,omitzero"`
	// Key is the key of the job. Doubt is its creation time if its effect may exist nevertheless.
	Key   string    `json:"key,omitempty"`
	Doubt time.Time `json:"doubt,omitzero"`
}

// ViaConfirmed is the Via of an EventIssueClosed that was confirmed by reading the issue.
const ViaConfirmed = "confirmed"

// ViaStart is the Via of events that the job start reports: the issue was edited, so the job has to be repeated, or it
// was closed.
const ViaStart = "start"

// ViaSweep is the Via of events that a sweep reports because their webhook was lost.
const ViaSweep = "sweep"

// NeedsPermission reports whether the effect of an event of this kind depends on the permission of the person, so that
// the job vet has to read it first. Removing the assignment or the label needs none: GitHub itself requires the triage
// role for it, and it only stops work.
func (k EventKind) NeedsPermission() bool {
	switch k {
	case EventTriggered, EventCommented, EventIssueEdited, EventPlanEdited, EventThumb, EventReviewed:
		return true
	}
	return false
}

// Doubtful lists answers in threads of which an earlier attempt may have posted a copy that is not visible yet.
type Doubtful struct {
	Keys  []string  `json:"keys"` // of their hidden markers
	Since time.Time `json:"since"`
}

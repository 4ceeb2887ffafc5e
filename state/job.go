package state

import "time"

// JobKind is a kind of background work. internal/workflow has one step per kind.
type JobKind string

// The kinds of jobs. All are short: a step's outside calls end before its lease does.
const (
	JobVet      JobKind = "vet"      // ask GitHub what Event.By may do
	JobReact    JobKind = "react"    // 👀 and other reactions of ours
	JobStart    JobKind = "start"    // read settings, blockers, existing work, discussion
	JobLaunch   JobKind = "launch"   // VM, workspace, prompt, start the run
	JobStop     JobKind = "stop"     // end the active run, save its work
	JobCollect  JobKind = "collect"  // read the changeset from the VM, judge it
	JobShow     JobKind = "show"     // make the diff of the changeset, for people to approve
	JobCommit   JobKind = "commit"   // publish 1: objects
	JobMove     JobKind = "move"     // publish 2: the branch
	JobRebase   JobKind = "rebase"   // somebody pushed: rebase the VM's commits onto it
	JobOpenPR   JobKind = "open_pr"  // open the pull request, ask for a review
	JobAnswer   JobKind = "answer"   // the answers of a round, one per thread
	JobIssue    JobKind = "issue"    // create an issue that the agent proposed
	JobGather   JobKind = "gather"   // read the review threads of a round
	JobApprove  JobKind = "approve"  // check an approval against GitHub
	JobPost     JobKind = "post"     // a new comment
	JobStatus   JobKind = "status"   // the status comment
	JobMinimise JobKind = "minimise" // fold a superseded plan
	JobUntick   JobKind = "untick"   // take back a tick that does not count
	JobChecks   JobKind = "checks"   // read what other programs think of the pull request's head
	JobRelease  JobKind = "release"  // delete the VM
	JobSleep    JobKind = "sleep"    // put the VM's work away
	JobForget   JobKind = "forget"   // delete what was put away
	JobDue      JobKind = "due"      // a reminder to ourselves: Args["what"]
	JobBranch   JobKind = "branch"   // delete or keep the branch after the end

	// StepRun stands for an active run in Task.Step; it is no job.
	StepRun JobKind = "run"
)

// Lane is where jobs of one task queue up: jobs of the same task and lane run one after the other,
// different lanes run side by side.
type Lane string

// The lanes.
const (
	LaneWork    Lane = "work"    // the life of the task
	LaneControl Lane = "control" // cancel, stop, approvals, vetting: never behind work
	LaneTalk    Lane = "talk"    // comments and reactions
	LaneStatus  Lane = "status"  // the status comment, never two in flight
)

// Lanes lists them all.
func Lanes() []Lane { return []Lane{LaneWork, LaneControl, LaneTalk, LaneStatus} }

// JobState is where a job is.
type JobState string

// The states of a job.
const (
	// JobQueued: waits for its time and for its lane. Left by a claim. Survives a crash as it is.
	JobQueued JobState = "queued"
	// JobClaimed: a worker holds the lease with the job's epoch. Left by Apply with the epoch (gone),
	// by Retry (queued), or by the lease's end (queued again, epoch one higher: the old worker's
	// Apply then answers ErrLeaseLost).
	JobClaimed JobState = "claimed"
)

// Job is one short unit of background work.
type Job struct {
	ID   string  `json:"id"` // set by the store: creation order
	Kind JobKind `json:"kind"`
	Task TaskKey `json:"task"`
	Lane Lane    `json:"lane"`
	// Key is the idempotency key within the task. While a job with the same key is queued, another
	// is not added; while it is claimed, one is added behind it. It is also the hidden marker of
	// what the job posts, so it must be the same for the same effect and differ for different ones.
	Key       string    `json:"key"`
	NotBefore time.Time `json:"not_before,omitzero"`
	Created   time.Time `json:"created"`
	Priority  int       `json:"priority,omitempty"` // higher first among jobs of different tasks

	State   JobState  `json:"state"`
	Epoch   int64     `json:"epoch"` // grows with each claim
	Until   time.Time `json:"until,omitzero"`
	Attempt int       `json:"attempt"` // claims so far
	// Failures counts the claims that ended in an error. Neither a shutdown nor the death of a process is one.
	Failures int `json:"failures,omitempty"`
	// Defects counts those of the failures that were errand's own, which no waiting cures.
	Defects int `json:"defects,omitempty"`
	// Attempted is set, durably, before the first outside effect: if it is set at the start of a
	// claim, the effect may have happened and has to be looked for.
	Attempted bool `json:"attempted,omitempty"`
	// Doubt is when an equal job was made that gave up not knowing whether its effect is there: it is
	// looked for from then on.
	Doubt     time.Time `json:"doubt,omitzero"`
	LastError string    `json:"last_error,omitempty"`
	// Launch is, with Attempted, what a run was to be started with: if that did start, it goes on
	// from there and from nowhere else.
	Launch *Launch `json:"launch,omitempty"`

	// Vetted is what GitHub answered about whoever caused this job, for as long as that answer is fresh.
	Vetted *Vetted `json:"vetted,omitempty"`

	Event     *Event            `json:"event,omitempty"`     // vet
	Post      *Post             `json:"post,omitempty"`      // post
	Candidate *Candidate        `json:"candidate,omitempty"` // approve
	Run       string            `json:"run,omitempty"`
	Args      map[string]string `json:"args,omitempty"`
}

// Try says which try this is: the first, or another after errors.
func (j *Job) Try() int { return j.Failures + 1 }

// Vetted is GitHub's answer about one person, read once for an event and passed on to the jobs that the event
// queues. It is no cache: no other event finds it, and a step asks again when it is not fresh any more.
type Vetted struct {
	By         Person     `json:"by"`
	Permission Permission `json:"permission"`
	At         time.Time  `json:"at"` // when GitHub was asked
	// Hash is the revision whose approval was checked against GitHub with it, empty for other events.
	Hash string `json:"hash,omitempty"`
	// Base is the newest commit of the task's base at that time, if it was read.
	Base string `json:"base,omitempty"`
}

// PostKind is a kind of comment that the bot writes. internal/comment renders each.
type PostKind string

// The kinds of comments.
const (
	PostPlan       PostKind = "plan"        // a revision: Hash
	PostQuestion   PostKind = "question"    // Text
	PostNotCounted PostKind = "not_counted" // an approval that does not count: Reason, By
	PostReply      PostKind = "reply"       // a short answer to a command: Reason, Text
	PostRefused    PostKind = "refused"     // the push gate said no: Refusals
	PostReport     PostKind = "report"      // the task's answer: Text
	PostPROpened   PostKind = "pr_opened"   // on the issue
	PostRound      PostKind = "round"       // what a round did, on the pull request
	PostThread     PostKind = "thread"      // an answer in a review thread
	PostNoChanges  PostKind = "no_changes"
	PostWaiting    PostKind = "waiting"  // blocked, config, nothing visible, edited by an outsider
	PostReminder   PostKind = "reminder" // a plan stands unapproved
	PostFailed     PostKind = "failed"
	PostEnded      PostKind = "ended" // done or cancelled: the last comment
	PostVM         PostKind = "vm"    // what became of work that was put away: Reason, Text
)

// Post is a comment to be written. It is rendered when it is sent, from the task as it then is.
type Post struct {
	Kind     PostKind  `json:"kind"`
	OnPR     bool      `json:"on_pr,omitempty"`
	Thread   int64     `json:"thread,omitempty"` // review comment to reply to
	Hash     string    `json:"hash,omitempty"`
	Reason   string    `json:"reason,omitempty"` // a closed list per kind, see internal/comment
	By       Person    `json:"by,omitzero"`      // whom it answers
	Text     string    `json:"text,omitempty"`
	Hint     string    `json:"hint,omitempty"`
	Refusals []Refusal `json:"refusals,omitempty"`
	Items    []string  `json:"items,omitempty"`
	URL      string    `json:"url,omitempty"` // where to do what Hint says
}

// Failed says what a worker knows of a step that went wrong.
type Failed struct {
	Error string
	// Retry is when to try again; zero means never (the worker applies EventStepFailed instead).
	Retry time.Time
	// Defect says that the error is errand's own.
	Defect bool
}

// VetPrefix begins the keys of jobs of kind JobVet; the event's ID follows.
const VetPrefix = "vet-"

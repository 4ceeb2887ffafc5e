package state

import (
	"encoding/json"
	"time"
)

// JobKind is a kind of background work. internal/workflow has one step per kind.
type JobKind string

// The kinds of jobs. All are short: a step's external calls end before its lease does.
const (
	JobVet      JobKind = "vet"      // read the permission of an event's sender from GitHub
	JobReact    JobKind = "react"    // 👀 and other reactions
	JobStart    JobKind = "start"    // read settings, blockers, existing work, discussion
	JobLaunch   JobKind = "launch"   // prepare VM, workspace and prompt; start the run
	JobStop     JobKind = "stop"     // end the active run, save its work
	JobCollect  JobKind = "collect"  // read the changeset from the VM and check it
	JobShow     JobKind = "show"     // make the diff of the changeset, for people to approve
	JobCommit   JobKind = "commit"   // publish 1: objects
	JobMove     JobKind = "move"     // publish 2: the branch
	JobRebase   JobKind = "rebase"   // rebase the VM's commits onto a push
	JobOpenPR   JobKind = "open_pr"  // open the pull request, request a review
	JobReopen   JobKind = "reopen"   // reopen the closed pull request
	JobClosePR  JobKind = "close_pr" // close a replaced pull request
	JobAnswer   JobKind = "answer"   // the answers of a round, one per thread
	JobIssue    JobKind = "issue"    // create an issue that the agent proposed
	JobGather   JobKind = "gather"   // read the review threads of a round
	JobApprove  JobKind = "approve"  // check an approval against GitHub
	JobPost     JobKind = "post"     // a new comment
	JobStatus   JobKind = "status"   // the status comment
	JobMinimize JobKind = "minimise" // fold a comment that no longer holds
	JobUntick   JobKind = "untick"   // clear a tick that does not count
	JobChecks   JobKind = "checks"   // read the checks of the pull request's head
	JobExamine  JobKind = "examine"  // find out what failed in them, and run them again
	JobUpdate   JobKind = "update"   // compare the branch with its base; have GitHub update it
	JobFinish   JobKind = "finish"   // mark the pull request ready for review, or merge it
	JobRelease  JobKind = "release"  // delete the VM
	JobSuspend  JobKind = "sleep"    // save the VM's work
	JobForget   JobKind = "forget"   // delete saved work
	JobDue      JobKind = "due"      // a delayed event: Args.Due

	// StepRun represents an active run in Task.Step; it is not a job.
	StepRun JobKind = "run"
)

// Lane is a queue within a task: jobs of the same task and lane run one after another, different lanes run
// concurrently.
type Lane string

// The lanes.
const (
	LaneWork    Lane = "work"    // the life of the task
	LaneControl Lane = "control" // cancel, stop, approvals, vetting: never behind work
	LaneTalk    Lane = "talk"    // comments and reactions
	LaneStatus  Lane = "status"  // the status comment, never two in flight
)

// Lanes returns all lanes.
func Lanes() []Lane { return []Lane{LaneWork, LaneControl, LaneTalk, LaneStatus} }

// JobState is the state of a job.
type JobState string

// The states of a job.
const (
	// JobQueued: waits for its time and for its lane. Left by a claim. Unaffected by a crash.
	JobQueued JobState = "queued"
	// JobClaimed: a worker has the lease with the job's epoch. Left by Apply with the epoch (the job is removed), by
	// Retry (queued), or when the lease expires (queued again, with the next epoch: the old worker's Apply then returns
	// ErrLeaseLost).
	JobClaimed JobState = "claimed"
)

// Job is one short unit of background work.
type Job struct {
	ID   string  `json:"id"` // set by the store, in the order of creation
	Kind JobKind `json:"kind"`
	Task TaskKey `json:"task"`
	Lane Lane    `json:"lane"`
	// Key is the idempotency key within the task. While a job with the same key is queued, another is not added; while
	// it is claimed, one is added behind it. It is also the hidden marker in comments of the job, so it must be the
	// same for the same effect and differ for different ones.
	Key       string    `json:"key"`
	NotBefore time.Time `json:"not_before,omitzero"`
	Created   time.Time `json:"created"`
	Priority  int       `json:"priority,omitempty"` // higher first among jobs of different tasks

	State   JobState  `json:"state"`
	Epoch   int64     `json:"epoch"` // increases with each claim
	Until   time.Time `json:"until,omitzero"`
	Attempt int       `json:"attempt"` // claims so far
	// Failures counts the claims that ended with an error. Neither a shutdown nor the death of the process is one.
	Failures int `json:"failures,omitempty"`
	// Defects counts the failures caused by errors of errand itself, which waiting does not fix.
	Defects int `json:"defects,omitempty"`
	// Attempted is set, durably, before the first external effect. If it is set when the job is claimed, the effect may
	// have happened, and the step checks for it.
	Attempted bool `json:"attempted,omitempty"`
	// UnknownSince is the creation time of an equal job that failed with an unknown outcome; the step checks for effects since
	// then.
	UnknownSince time.Time `json:"doubt,omitzero"`
	// Restored is set for a while after the store was restored from a backup, to the time of the restoration. Older effects may be those
	// of an errand of whose work the store knows nothing.
	Restored  time.Time `json:"restored,omitzero"`
	LastError string    `json:"last_error,omitempty"`
	// Launch has, with Attempted, the parameters of a run. If the run did start, the job continues with these.
	Launch *Launch `json:"launch,omitempty"`

	// Vetted is GitHub's answer about the person who caused this job, valid while it is fresh.
	Vetted *Vetted `json:"vetted,omitempty"`

	Event     json.RawMessage `json:"event,omitempty"`     // vet: an event.Event
	Post      *Post           `json:"post,omitempty"`      // post
	Candidate *Candidate      `json:"candidate,omitempty"` // approve
	Run       string          `json:"run,omitempty"`
	Args      JobArgs         `json:"args,omitzero"`
}

// Try returns the number of the current try, from 1; failed claims count.
func (j *Job) Try() int { return j.Failures + 1 }

// Vetted is GitHub's answer about one person, read once for an event and passed on to the jobs that the event queues.
// It is not a cache: other events do not use it, and a step asks again when it is no longer fresh.
type Vetted struct {
	By         Person     `json:"by"`
	Permission Permission `json:"permission"`
	At         time.Time  `json:"at"` // when GitHub was asked
	// Hash is the revision whose approval was checked against GitHub at the same time, empty for other events.
	Hash string `json:"hash,omitempty"`
	// Base is the newest commit of the task's base at that time, if it was read.
	Base string `json:"base,omitempty"`
}

// PostKind is a kind of comment by errand. internal/comment renders each.
type PostKind string

// The kinds of comments.
const (
	PostPlan       PostKind = "plan"        // a revision: Hash
	PostQuestion   PostKind = "question"    // Text
	PostNotCounted PostKind = "not_counted" // an approval that does not count: Reason, By
	PostReply      PostKind = "reply"       // a short answer to a command: Reason, Text
	PostRefused    PostKind = "refused"     // the push gate refused a changeset: Refusals
	PostReport     PostKind = "report"      // the result of a task without changes: Text
	PostAnswered   PostKind = "answered"    // the agent's answer to comments: Text; without it, that nothing has to change
	PostPROpened   PostKind = "pr_opened"   // on the issue
	PostReplaced   PostKind = "replaced"    // errand closed a pull request because its task began again
	PostPRClosed   PostKind = "pr_closed"   // closed without a merge: the work is kept for a while
	PostRound      PostKind = "round"       // the result of a round, on the pull request
	PostThread     PostKind = "thread"      // an answer in a review thread
	PostNoChanges  PostKind = "no_changes"
	PostWaiting    PostKind = "waiting"  // blocked, config, nothing visible, edited by a user without write access
	PostReminder   PostKind = "reminder" // a plan is not approved yet
	PostFailed     PostKind = "failed"
	PostChecks     PostKind = "checks" // failing checks that people have to look at: Checks, on the pull request
	PostEnded      PostKind = "ended"  // done or canceled: the last comment
	PostVM         PostKind = "vm"     // the fate of saved work: Reason, Text
	PostBase       PostKind = "base"   // the newest commits of the base and the pull request: Reason, Text, Items
	PostMerge      PostKind = "merge"  // what errand did, or could not do, to have the pull request merged: Reason, Text, Items
	// PostProvenance is the signed statement about the published changes, on the pull request. It is edited when there are further ones.
	PostProvenance PostKind = "provenance"
	// PostRoundExpired says, on the pull request, that nobody approved the changes Hash of a round that errand began by itself: Reason.
	PostRoundExpired PostKind = "round_expired"
)

// Post is a comment to be posted. It is rendered when it is sent, from the task's state at that time.
type Post struct {
	Kind     PostKind    `json:"kind"`
	OnPR     bool        `json:"on_pr,omitempty"`
	Thread   int64       `json:"thread,omitempty"` // review comment to reply to
	Hash     string      `json:"hash,omitempty"`
	Reason   string      `json:"reason,omitempty"` // one of a closed list per kind, see internal/comment
	By       Person      `json:"by,omitzero"`      // the person whom it answers
	Text     string      `json:"text,omitempty"`
	Hint     string      `json:"hint,omitempty"`
	Refusals []Refusal   `json:"refusals,omitempty"`
	Items    []string    `json:"items,omitempty"`
	Links    []string    `json:"links,omitempty"` // of a PostRound: the address of what each item answers, "" for none
	URL      string      `json:"url,omitempty"`   // the page on which to follow Hint
	Checks   []CheckNote `json:"checks,omitempty"`
}

// VetPrefix begins the keys of jobs of kind JobVet; the event's ID follows.
const VetPrefix = "vet-"

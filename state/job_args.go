package state

import (
	"time"

	"github.com/errand-bot/errand/state/settings"
)

// Reaction is a reaction of errand's, in GitHub's terms.
type Reaction string

// The reactions.
const (
	ReactionEyes     Reaction = "eyes"     // 👀: errand has read it and acts on it
	ReactionConfused Reaction = "confused" // 😕: errand does not act on it
	ReactionThumbsUp Reaction = "+1"       // 👍: errand has considered it; nothing was to be done
)

// JobArgs are the arguments of a job. The comments name the kinds of jobs that use a field; the others leave it empty. In
// JSON every value is a string.
type JobArgs struct {
	// stop, release, sleep: the name of the VM. By the time the job runs the task may have another one, or none.
	VM string `json:"vm,omitempty"`
	// stop: the reason, a clause for people; release: a VMEndReason.
	Reason string `json:"why,omitempty"`
	// stop: another run continues at once on the VM, so the work is not saved.
	Continues bool `json:"continues,string,omitempty"`

	Mode settings.SleepMode `json:"mode,omitempty"` // forget: the form of the saved work
	Ref  string             `json:"ref,omitempty"`  // forget: the saved work

	Onto string `json:"onto,omitempty"` // rebase: a commit on the branch

	Reads int `json:"reads,string,omitempty"` // checks, update, finish: the Reads of the read before, plus one

	Refused bool `json:"refused,string,omitempty"` // finish: GitHub refused the merge a moment ago

	Reaction     Reaction `json:"content,omitempty"`             // react
	Replaces     Reaction `json:"replaces,omitempty"`            // react: errand's reaction that this one replaces
	Comment      int64    `json:"comment,string,omitempty"`      // react, untick: the comment's id; without it the issue is meant
	Review       bool     `json:"review,string,omitempty"`       // react: Comment is in a review thread
	Installation int64    `json:"installation,string,omitempty"` // react: with Owner and Name, because there may be no task
	Owner        string   `json:"owner,omitempty"`
	Name         string   `json:"name,omitempty"`

	Node     string `json:"node,omitempty"`         // minimise: the comment's node id
	Proposal int    `json:"n,string,omitempty"`     // issue: the number of the proposal, from 1
	OnPR     bool   `json:"on_pr,string,omitempty"` // issue: somebody asked for it on the pull request

	Due       DueKind       `json:"what,omitempty"`   // due
	Key       string        `json:"key,omitempty"`    // due: of which event.NewDue makes the event's fields
	Marker    string        `json:"marker,omitempty"` // due, DueDuplicate: the hidden marker of the comment
	Since     time.Time     `json:"since,omitzero"`   // due, DueDuplicate: when the first copy was sent, in whole seconds
	Duplicate DuplicateKind `json:"reply,omitempty"`  // due, DueDuplicate

	Branch string `json:"branch,omitempty"` // close_pr: the branch whose pull request is to be closed, if Number is not known

	// Number of close_pr is the pull request; that of post, and of due with DueDuplicate, is the issue or pull request that the
	// comment is on, if it is not the task's issue.
	Number int `json:"number,string,omitempty"`
}

// DuplicateKind is the kind of a comment that may exist twice.
type DuplicateKind string

// The kinds.
const (
	DuplicateComment DuplicateKind = ""
	DuplicateAnswer  DuplicateKind = "yes" // in a review thread
)

// DueKind is the purpose of a job of kind JobDue; package event describes the event that it becomes.
type DueKind string

// The delayed jobs. Their strings are stored.
const (
	DueRemind    DueKind = "remind"    // people may be reminded of Plan
	DueExpire    DueKind = "expire"    // Plan has waited for too long
	DueResume    DueKind = "resume"    // an interrupted task may continue
	DueRecheck   DueKind = "recheck"   // the thing that the task waits for may have come
	DueClosed    DueKind = "closed"    // the issue was closed while a pull request is open
	DuePRClosed  DueKind = "pr_closed" // the pull request may have stayed closed
	DueParked    DueKind = "parked"    // the pull request has been closed for long
	DueDuplicate DueKind = "twin"      // a second copy of a comment may have appeared
	DueQuestion  DueKind = "asked"     // Run asked a question and should have ended
	DueTurns     DueKind = "turns"     // Run was refused more turns and should have ended
	DueIdle      DueKind = "idle"      // VM may have been idle for long enough
	DueSpan      DueKind = "vm_span"   // another paid span of VM is about to begin
	DueUnused    DueKind = "unused"    // the saved work was not needed for long
	DueComments  DueKind = "comments"  // the gathered comments may be considered
	DueSteer     DueKind = "steer"     // the messages to Run may be delivered
	DueChecks    DueKind = "checks"    // nothing may have been reported about Head for a while
	DueDraft     DueKind = "draft"     // no required check of Head, a draft's, may have started for a while
	DueForget    DueKind = "forget"    // Ref, the saved work of an ended task, is to be deleted
)

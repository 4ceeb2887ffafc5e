package event

import (
	"time"

	"github.com/errand-bot/errand/state"
)

// Event is a fact that may move a task.
type Event struct {
	Task state.TaskKey `json:"task"`
	// ID names the outside fact ("comment:123"), so that it counts once however often it is
	// reported. It is empty where repetition does no harm.
	ID string `json:"id,omitempty"`
	// At is when it happened, as the outside reports; Apply sets Now.
	At       time.Time `json:"at,omitzero"`
	Now      time.Time `json:"now,omitzero"`
	Delivery string    `json:"delivery,omitempty"`
	// Run is the run that the event is about. Events of runs that are not active any more have no effect.
	Run string `json:"run,omitempty"`

	By         state.Person     `json:"by,omitzero"`
	Permission state.Permission `json:"permission,omitempty"` // of By; set by the job vet
	Vetted     *state.Vetted    `json:"vetted,omitempty"`     // the source of Permission; passed on to jobs

	// Repo and Installation are the repository and the installation that a webhook or a sweep names.
	Repo         *state.Repo `json:"repo,omitempty"`
	Installation int64       `json:"installation,omitempty"`
	// Via is how a trigger was given, or one of the Via… constants.
	Via state.TriggerVia `json:"via,omitempty"`

	Context
	Payload Payload `json:"-"`
}

// How errand learned of an event, if not by a webhook.
const (
	ViaConfirmed state.TriggerVia = "confirmed"        // of IssueClosed: by reading the issue
	ViaStart     state.TriggerVia = "start"            // by the job start: the issue was edited, so the job has to be repeated, or it was closed
	ViaSweep                      = state.TriggerSweep // by a sweep, because the webhook was lost
)

// Context is read by Apply from the task's queue, in the transaction that applies the event.
type Context struct {
	// Unvetted is set if somebody's comment or edit has arrived but that person's permission is not known yet.
	Unvetted bool `json:"unvetted,omitempty"`
	// Approving is set if an approval is being checked.
	Approving bool `json:"approving,omitempty"`
	// VMNeeded is set if work of the task is queued, or a person's comment or edit is being vetted, so that its VM
	// may be needed in a moment.
	VMNeeded bool `json:"wanted,omitempty"`
	// Busy is set if a job of the task is under way, or an action of a person is being vetted.
	Busy bool `json:"busy,omitempty"`
	// Stopping is set if a run is being stopped, or is about to be, and its work saved.
	Stopping bool `json:"stopping,omitempty"`
}

// Payload is the part of an event that its kind has. The zero value of every payload is usable.
type Payload interface {
	// Kind returns the kind of the events that carry this payload.
	Kind() Kind
}

// Kind returns the kind of the event's payload, or KindNothing if it has none.
func (e Event) Kind() Kind {
	if e.Payload == nil {
		return KindNothing
	}
	return e.Payload.Kind()
}

// Of returns the payload of an event of the kind of P. It is the zero value if the event is of another kind.
func Of[P Payload](e Event) P {
	p, _ := e.Payload.(P)
	return p
}

// Comment returns the person's comment that the event is about, or nil.
func (e Event) Comment() *state.Comment {
	switch p := e.Payload.(type) {
	case Commented:
		return p.Comment
	case CommentEdited:
		return p.Comment
	case CommentDeleted:
		return p.Comment
	case Thumb:
		return p.Comment
	}
	return nil
}

// Issue returns the issue as the event shows it, or nil.
func (e Event) Issue() *state.Issue {
	switch p := e.Payload.(type) {
	case Triggered:
		return p.Issue
	case Commented:
		return p.Issue
	case IssueEdited:
		return p.Issue
	}
	return nil
}

// Work returns the changeset that a job has collected or committed, or nil.
func (e Event) Work() *state.Work {
	switch p := e.Payload.(type) {
	case Collected:
		return p.Work
	case Committed:
		return p.Work
	}
	return nil
}

// Base returns the branch that a trigger names as the base of the work, or "".
func (e Event) Base() string {
	switch p := e.Payload.(type) {
	case Triggered:
		return p.Base
	case Commented:
		return p.Base
	}
	return ""
}

// Candidate returns the possible approval that the event is about, or nil.
func (e Event) Candidate() *state.Candidate {
	switch p := e.Payload.(type) {
	case CommentEdited:
		return p.Candidate
	case Thumb:
		return p.Candidate
	case Approved:
		return &p.Candidate
	case ApprovalRejected:
		return &p.Candidate
	}
	return nil
}

// Waiting returns why something cannot continue, or nil.
func (e Event) Waiting() *state.Waiting {
	switch p := e.Payload.(type) {
	case StepBlocked:
		return p.Waiting
	case ModelCalled:
		return p.Waiting
	case Due:
		return p.Waiting
	}
	return nil
}

// Post returns the comment by errand that a job posted, shall post next, or failed to post; or nil.
func (e Event) Post() *state.Post {
	switch p := e.Payload.(type) {
	case Posted:
		return p.Post
	case ThreadsAnswered:
		return p.Post
	case StepFailed:
		return p.Post
	}
	return nil
}

// Searched reports whether the outcome of an earlier attempt was unknown, so that the job searched for the effect: a
// second copy may show up later, and people may have reacted before errand knew of it.
func (e Event) Searched() bool {
	switch p := e.Payload.(type) {
	case Posted:
		return p.Searched
	case StatusSent:
		return p.Searched
	case PROpened:
		return p.Searched
	}
	return false
}

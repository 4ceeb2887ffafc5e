package state

import "time"

// FailureClass groups the failures of jobs and tasks by their cause, for operators.
type FailureClass string

// The classes. Their strings are stored and shown by the admin pages.
const (
	ClassAgent    FailureClass = "agent"    // the agent failed, or its work cannot be used
	ClassConfig   FailureClass = "config"   // the operator's or the repository's settings cannot be used
	ClassGitHub   FailureClass = "github"   // GitHub refused, or did not answer
	ClassTimeout  FailureClass = "timeout"  // a step took too long
	ClassVM       FailureClass = "vm"       // a VM is gone or unusable
	ClassVMHours  FailureClass = "vm_hours" // the task's VM hours are used up
	ClassBudget   FailureClass = "budget"   // the money cap is reached; raising it continues the task
	ClassLimit    FailureClass = "limit"    // a limit on the number of runs is reached
	ClassGone     FailureClass = "gone"     // the issue no longer exists, so no comment can be posted
	ClassAccess   FailureClass = "access"   // errand has no access, so no comment can be posted until it has again
	ClassBack     FailureClass = "back"     // an end that is reported late, because errand had no access
	ClassInternal FailureClass = "internal" // an unexplained failure of errand itself
)

// Failed describes the failure of a step.
type Failed struct {
	Error string
	// Retry is the time of the next try; zero means none (the worker applies event.StepFailed instead).
	Retry time.Time
	// Defect reports whether the error is errand's own.
	Defect bool
}

// Failure describes a job that failed permanently. Reason and Hint are for people, Detail is for the operator.
type Failure struct {
	Job    JobKind      `json:"job"`
	Class  FailureClass `json:"class"`
	Reason string       `json:"reason"`
	Hint   string       `json:"hint"`
	Detail string       `json:"detail,omitempty"`
	// RetryAt is set if a retry may succeed: the task is then interrupted, not failed.
	RetryAt time.Time `json:"retry_at,omitzero"`
	// Key is the key of the job. UnknownSince is its creation time if its effect may exist nevertheless.
	Key          string    `json:"key,omitempty"`
	UnknownSince time.Time `json:"doubt,omitzero"`
}

// End is the end or the failure of a task. Reason and Hint are sentences for people.
type End struct {
	Reason string       `json:"reason"`
	Hint   string       `json:"hint,omitempty"`
	Class  FailureClass `json:"class,omitempty"`
	At     time.Time    `json:"at"`
	// Acted is the time of the person's action that ended the task, by GitHub's clock; zero if it ended otherwise.
	Acted time.Time `json:"acted,omitzero"`
	// Phase and Step are where `retry` continues a canceled task until KeptUntil. They are empty for tasks that were not
	// canceled, or were by an older version.
	Phase     Phase     `json:"phase,omitempty"`
	Step      JobKind   `json:"step,omitempty"`
	KeptUntil time.Time `json:"kept_until,omitzero"`
	// Saving is set until the work on the VM of a canceled task is saved, or is found to be lost.
	Saving bool `json:"saving,omitempty"`
}

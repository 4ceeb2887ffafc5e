package client

import (
	"errors"
	"time"
)

// Class says what a failed call means for whoever wants to try again.
type Class string

// The classes of failures.
const (
	// ClassTemporary: nothing has happened, and the same call may work later. GitHub was not reached,
	// could not answer a read, or a limit was met.
	ClassTemporary Class = "temporary"
	// ClassPermanent: GitHub said no. The same call will fail again until a person changes something.
	ClassPermanent Class = "permanent"
	// ClassUnknown: a write was sent and no answer came. Look for its effect before trying again.
	ClassUnknown Class = "unknown"
)

// What callers decide by. They are matched with errors.Is.
var (
	// ErrNotFound: the thing does not exist, or the App may not see it; GitHub does not tell which.
	ErrNotFound = errors.New("not found on GitHub")
	// ErrNotInstalled: the App was uninstalled or suspended: there is no token to be had.
	ErrNotInstalled = errors.New("the App is not installed here")
	// ErrLocked: the conversation is locked, so that no App may take part in it.
	ErrLocked = errors.New("conversation is locked")
	// ErrRenamed: the repository has another name now; learn it from its id and call again.
	ErrRenamed = errors.New("repository was renamed")
)

// Error is every failure of this package. Reason and Hint are sentences for people and hold no
// secret; Err is the operator's detail.
type Error struct {
	Op     string // what was tried, a verb phrase: "comment on octo/app#3"
	Reason string // one sentence
	Hint   string // what a person can do about it; may be empty
	Class  Class
	Status int       // of the HTTP answer, 0 when there was none
	Retry  time.Time // when trying again makes sense, zero if GitHub did not say
	Err    error
}

// Error returns the operator's view: what was tried and what went wrong.
func (e *Error) Error() string { return e.Op + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Classify tells what err, of any method of this package, means for a next try, and when GitHub said
// that it may be made (zero: it did not say). An error of somebody else is ClassUnknown: look first.
func Classify(err error) (Class, time.Time) {
	var e *Error
	if errors.As(err, &e) {
		return e.Class, e.Retry
	}
	var limit *LimitError
	if errors.As(err, &limit) {
		return ClassTemporary, limit.Until
	}
	return ClassUnknown, time.Time{}
}

// Explain returns what to tell people about err: a reason, and a hint that may be empty.
func Explain(err error) (reason, hint string) {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason, e.Hint
	}
	return "GitHub could not be asked.", ""
}

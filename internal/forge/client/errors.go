package client

import (
	"errors"
	"slices"
	"time"
)

// Class says whether a failed call can be repeated.
type Class string

// The classes of failures.
const (
	// ClassTemporary: the call had no effect, and the same call may succeed later. GitHub could not be reached,
	// could not answer a read, or a rate limit was exceeded.
	ClassTemporary Class = "temporary"
	// ClassPermanent: GitHub refused the call. It will fail again until a person changes something.
	ClassPermanent Class = "permanent"
	// ClassUnknown: a write was sent, but not answered. Check whether it had its effect before repeating it.
	ClassUnknown Class = "unknown"
)

// Errors to match with errors.Is.
var (
	// ErrNotFound: the object does not exist, or the App may not see it; GitHub does not tell which.
	ErrNotFound = errors.New("not found on GitHub")
	// ErrNotInstalled: the App was uninstalled or suspended, so GitHub issues no token.
	ErrNotInstalled = errors.New("the App is not installed here")
	// ErrLocked: the conversation is locked, so no App can take part in it.
	ErrLocked = errors.New("conversation is locked")
	// ErrRenamed: the repository has another name now; look it up by its ID and call again.
	ErrRenamed = errors.New("repository was renamed")
)

// Error is a failed operation. Reason and Hint are sentences for people and contain no secrets; Err is the detail for
// operators.
type Error struct {
	Op     string // the operation, a verb phrase: "comment on octo/app#3"
	Reason string // one sentence
	Hint   string // how a person can fix it; can be empty
	Class  Class
	Status int       // of the HTTP response, 0 if there was none
	Retry  time.Time // when a retry makes sense, zero if GitHub did not say
	Err    error
}

// Error returns the operation and its cause, for operators.
func (e *Error) Error() string { return e.Op + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Classify returns the class of err, and the time before which GitHub refuses a retry (zero if it named none). Errors
// of other packages are ClassUnknown.
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

// IsPermanent reports whether err consists of nothing but calls that GitHub has refused, so that it does not help to repeat them.
func IsPermanent(err error) bool {
	if e, ok := err.(*Error); ok { //nolint:errorlint // every error of a tree is looked at
		return e.Class == ClassPermanent
	}
	switch e := err.(type) { //nolint:errorlint // likewise
	case interface{ Unwrap() error }:
		return IsPermanent(e.Unwrap())
	case interface{ Unwrap() []error }:
		all := e.Unwrap()
		return len(all) > 0 && !slices.ContainsFunc(all, func(err error) bool { return !IsPermanent(err) })
	}
	return false
}

// Explain returns the reason of err for people, and a hint that can be empty.
func Explain(err error) (reason, hint string) {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason, e.Hint
	}
	return "The request to GitHub failed.", ""
}

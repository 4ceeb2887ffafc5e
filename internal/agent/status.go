package agent

import "github.com/errand-bot/errand/internal/runlog"

// Status says how a run ended.
type Status string

// The ends of a run, from good to bad.
const (
	StatusOK                 Status = "ok"
	StatusMaxTurns           Status = "max_turns"            // its turns were used up
	StatusBudget             Status = "budget"               // its money was used up
	StatusRateLimited        Status = "rate_limited"         // the account's limit; ResetAt may be set
	StatusOverloaded         Status = "overloaded"           // the provider is overloaded or failing
	StatusNetwork            Status = "network"              // the model could not be reached
	StatusAuth               Status = "auth"                 // the key was refused, or there is none
	StatusBilling            Status = "billing"              // the account has no credit
	StatusContextOverflow    Status = "context_overflow"     // the conversation is too long
	StatusAnswerCut          Status = "answer_cut"           // its answer was longer than is kept
	StatusLooped             Status = "looped"               // it did the same again and again
	StatusRefused            Status = "refused"              // the model declined
	StatusNoSession          Status = "no_session"           // the session to resume is not there
	StatusNoStructuredOutput Status = "no_structured_output" // a schema was asked for and not met
	StatusNoOp               Status = "no_op"                // it ended without asking the model
	StatusInterrupted        Status = "interrupted"          // we stopped it
	StatusHookStopped        Status = "hook_stopped"         // a hook ended it
	StatusDuration           Status = "duration"             // its time was up
	StatusStalled            Status = "stalled"              // no sign of life for too long
	StatusLost               Status = "lost"                 // the VM went away under it
	StatusSetupFailed        Status = "setup_failed"         // a set-up command failed before it began
	StatusStartFailed        Status = "start_failed"         // the program could not be started
	StatusInvalid            Status = "invalid"              // the command line, settings or request was refused
	StatusCrashed            Status = "crashed"              // it ended in a way that nothing explains
)

// Statuses returns every status, in the order above.
func Statuses() []Status {
	return []Status{
		StatusOK, StatusMaxTurns, StatusBudget, StatusRateLimited, StatusOverloaded, StatusNetwork, StatusAuth, StatusBilling,
		StatusContextOverflow, StatusAnswerCut, StatusLooped, StatusRefused, StatusNoSession, StatusNoStructuredOutput, StatusNoOp, StatusInterrupted,
		StatusHookStopped, StatusDuration, StatusStalled, StatusLost, StatusSetupFailed, StatusStartFailed, StatusInvalid, StatusCrashed,
	}
}

// Class sorts ends by what can be done about them.
type Class string

// The classes of ends.
const (
	ClassSuccess   Class = "success"
	ClassRetryable Class = "retryable" // trying again without a person may help
	ClassFatal     Class = "fatal"     // a person has to change something first
)

// Class returns the class of the status. A status that is not known is fatal.
func (s Status) Class() Class {
	if s == StatusOK {
		return ClassSuccess
	}
	if s.Advice().Retry {
		return ClassRetryable
	}
	return ClassFatal
}

// Continue says what a repeated run begins from.
type Continue string

// The ways to go on.
const (
	ContinueSession Continue = "session" // resume the same session
	ContinueSummary Continue = "summary" // a new session, with the conversation so far in the prompt
)

// Advice is what to do after a run that did not end well.
type Advice struct {
	Retry bool
	// From is how a repeated run goes on; empty if Retry is false.
	From Continue
	// Once: after a second end of this kind, begin from a summary; after a third, give up.
	Once bool
	// Backoff: wait before the retry, until Result.ResetAt if that is set, else longer every time.
	Backoff bool
	// PauseProvider: every other run would end like this one, until a person acts.
	PauseProvider bool
}

// Advice returns what to do. An interrupted run goes on if and when whoever stopped it wants.
func (s Status) Advice() Advice {
	switch s {
	case StatusRateLimited, StatusOverloaded, StatusNetwork:
		return Advice{Retry: true, From: ContinueSession, Backoff: true}
	case StatusInterrupted, StatusLost:
		return Advice{Retry: true, From: ContinueSession}
	case StatusCrashed, StatusStalled:
		return Advice{Retry: true, From: ContinueSession, Once: true}
	case StatusNoSession, StatusContextOverflow:
		return Advice{Retry: true, From: ContinueSummary, Once: true}
	case StatusAuth, StatusBilling:
		return Advice{PauseProvider: true}
	}
	return Advice{}
}

// ofCause returns the status that the runner's cause already decides, or "".
func ofCause(e Ended) Status {
	if e.StopRequested {
		return StatusInterrupted
	}
	switch e.Exit.Cause {
	case runlog.CauseStopped:
		return StatusInterrupted
	case runlog.CauseDuration:
		return StatusDuration
	case runlog.CauseStalled:
		return StatusStalled
	case runlog.CauseLost:
		return StatusLost
	case runlog.CauseSetupFailed:
		return StatusSetupFailed
	case runlog.CauseStartFailed:
		return StatusStartFailed
	}
	return ""
}

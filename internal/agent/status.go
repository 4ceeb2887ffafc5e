package agent

// Status is the way in which a run ended.
type Status string

// The statuses, from good to bad. The tests' list of them is agenttest.Statuses.
const (
	StatusOK                 Status = "ok"
	StatusMaxTurns           Status = "max_turns"            // it used all its turns
	StatusBudget             Status = "budget"               // it used all its budget
	StatusRateLimited        Status = "rate_limited"         // the account's limit; ResetAt may be set
	StatusOverloaded         Status = "overloaded"           // the provider is overloaded or failing
	StatusNetwork            Status = "network"              // the model could not be reached
	StatusAuth               Status = "auth"                 // the key was refused, or there is none
	StatusBilling            Status = "billing"              // the account has no credit
	StatusContextOverflow    Status = "context_overflow"     // the conversation is too long
	StatusAnswerCut          Status = "answer_cut"           // its answer was longer than the limit
	StatusLooped             Status = "looped"               // it repeated itself
	StatusRefused            Status = "refused"              // the model declined
	StatusNoSession          Status = "no_session"           // the session to resume does not exist
	StatusNoStructuredOutput Status = "no_structured_output" // the answer does not match the requested schema
	StatusNoOp               Status = "no_op"                // it ended without calling the model
	StatusInterrupted        Status = "interrupted"          // errand stopped it
	StatusHookStopped        Status = "hook_stopped"         // a hook ended it
	StatusDuration           Status = "duration"             // it exceeded its time limit
	StatusStalled            Status = "stalled"              // it had no activity for too long
	StatusLost               Status = "lost"                 // the VM disappeared during the run
	StatusSetupFailed        Status = "setup_failed"         // a set-up command failed before it began
	StatusStartFailed        Status = "start_failed"         // the program could not be started
	StatusInvalid            Status = "invalid"              // the command line, settings or request was refused
	StatusCrashed            Status = "crashed"              // it ended for an unknown reason
)

// Class groups statuses by the possible reaction.
type Class string

// The classes.
const (
	ClassSuccess   Class = "success"
	ClassRetryable Class = "retryable" // a retry without a person may help
	ClassFatal     Class = "fatal"     // a person has to change something first
)

// Class returns the class of the status. An unknown status is fatal.
func (s Status) Class() Class {
	switch s {
	case StatusOK:
		return ClassSuccess
	case StatusRateLimited, StatusOverloaded, StatusNetwork, StatusInterrupted, StatusLost, StatusCrashed, StatusStalled, StatusNoSession,
		StatusContextOverflow:
		return ClassRetryable
	}
	return ClassFatal
}

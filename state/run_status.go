package state

import (
	"fmt"
	"time"
)

// RunStatus is the way in which a run ended, as its adapter judges it. The strings are stored.
type RunStatus string

// The statuses. Apart from the last one they are those of package agent.
const (
	StatusOK                 RunStatus = "ok"                   // the run did its work
	StatusMaxTurns           RunStatus = "max_turns"            // its turns were used up
	StatusBudget             RunStatus = "budget"               // its budget was used up
	StatusRateLimited        RunStatus = "rate_limited"         // the account's limit was reached
	StatusOverloaded         RunStatus = "overloaded"           // the model's provider is overloaded or failing
	StatusNetwork            RunStatus = "network"              // the model could not be reached
	StatusAuth               RunStatus = "auth"                 // the key was refused, or there is none
	StatusBilling            RunStatus = "billing"              // the account has no credit
	StatusContextOverflow    RunStatus = "context_overflow"     // the conversation became too long
	StatusAnswerCut          RunStatus = "answer_cut"           // an answer was longer than the limit
	StatusLooped             RunStatus = "looped"               // the model repeated itself
	StatusRefused            RunStatus = "refused"              // the model declined
	StatusNoSession          RunStatus = "no_session"           // the session to resume does not exist
	StatusNoStructuredOutput RunStatus = "no_structured_output" // the answer does not match the requested schema
	StatusNoOp               RunStatus = "no_op"                // it ended without calling the model
	StatusInterrupted        RunStatus = "interrupted"          // errand stopped it
	StatusHookStopped        RunStatus = "hook_stopped"         // a hook ended it
	StatusDuration           RunStatus = "duration"             // it exceeded its time limit
	StatusStalled            RunStatus = "stalled"              // it had no activity for too long
	StatusLost               RunStatus = "lost"                 // its record disappeared from the VM
	StatusSetupFailed        RunStatus = "setup_failed"         // a set-up command failed before it began
	StatusStartFailed        RunStatus = "start_failed"         // the program could not be started
	StatusInvalid            RunStatus = "invalid"              // the command line, settings or request was refused
	StatusCrashed            RunStatus = "crashed"              // it ended for an unknown reason
	StatusVMLost             RunStatus = "vm_lost"              // its VM is gone; set by errand, not by an adapter
)

// RunClass groups statuses by the possible reaction. The strings are stored.
type RunClass string

// The classes.
const (
	RunSucceeded RunClass = "success"
	RunRetryable RunClass = "retryable" // a retry without a person may help
	RunFatal     RunClass = "fatal"     // a person has to change something first
)

// StatusRules says how errand treats a run that ended with a status.
type StatusRules struct {
	// Denial: the status may be caused by a refused model call, since programs report a refusal in different ways. The
	// gateway's reason then replaces the run's message.
	Denial bool
	// TemporaryDenial: the status may be caused by a refusal that ends with time. The run is then continued afterwards.
	TemporaryDenial bool
	// HTTP: the status is a failure of the model's API, whose HTTP status is shown to people.
	HTTP bool
}

// RunStatuses returns every status of a run.
func RunStatuses() map[RunStatus]StatusRules {
	return map[RunStatus]StatusRules{
		StatusOK:                 {},
		StatusMaxTurns:           {},
		StatusBudget:             {Denial: true, TemporaryDenial: true},
		StatusRateLimited:        {Denial: true, TemporaryDenial: true, HTTP: true},
		StatusOverloaded:         {Denial: true, TemporaryDenial: true, HTTP: true},
		StatusNetwork:            {Denial: true, TemporaryDenial: true},
		StatusAuth:               {Denial: true, TemporaryDenial: true, HTTP: true},
		StatusBilling:            {Denial: true, TemporaryDenial: true, HTTP: true},
		StatusContextOverflow:    {Denial: true},
		StatusAnswerCut:          {},
		StatusLooped:             {},
		StatusRefused:            {Denial: true, TemporaryDenial: true},
		StatusNoSession:          {},
		StatusNoStructuredOutput: {Denial: true},
		StatusNoOp:               {Denial: true, TemporaryDenial: true},
		StatusInterrupted:        {},
		StatusHookStopped:        {},
		StatusDuration:           {},
		StatusStalled:            {Denial: true, TemporaryDenial: true},
		StatusLost:               {},
		StatusSetupFailed:        {},
		StatusStartFailed:        {},
		StatusInvalid:            {Denial: true, TemporaryDenial: true, HTTP: true},
		StatusCrashed:            {Denial: true, TemporaryDenial: true},
		StatusVMLost:             {},
	}
}

// Clause states for people how a run with this status ended.
func (s RunStatus) Clause() string {
	clause := map[RunStatus]string{
		StatusOK:                 "the agent finished its work",
		StatusMaxTurns:           "the agent ran out of turns",
		StatusBudget:             "the run's budget is used up",
		StatusRateLimited:        "the model's rate limit was reached",
		StatusOverloaded:         "the model's provider is overloaded or failing",
		StatusNetwork:            "the model could not be reached",
		StatusAuth:               "the model's provider refused the key",
		StatusBilling:            "the account at the model's provider has no credit",
		StatusContextOverflow:    "the conversation became too long for the model",
		StatusAnswerCut:          "an answer of the model reached its output limit",
		StatusLooped:             "the model repeated itself",
		StatusRefused:            "the model declined to answer",
		StatusNoSession:          "the agent's session does not exist any more",
		StatusNoStructuredOutput: "the agent's answer does not match the requested schema",
		StatusNoOp:               "the agent's program ended without calling the model",
		StatusInterrupted:        "errand stopped the agent",
		StatusHookStopped:        "a hook ended the agent's run",
		StatusDuration:           "the agent exceeded its time limit",
		StatusStalled:            "the agent had no activity for too long",
		StatusLost:               "the run's record disappeared from the VM",
		StatusSetupFailed:        "a set-up command failed",
		StatusStartFailed:        "the agent's program could not be started",
		StatusInvalid:            "the agent's program or the model refused the request as invalid",
		StatusCrashed:            "the agent's program crashed",
		StatusVMLost:             "the VM was lost during the run",
	}[s]
	if clause == "" {
		return "the agent's run ended with status " + string(s)
	}
	return clause
}

// preferGatewayReason replaces the message of a failed run with the gateway's reason for refusing its last model call,
// if that explains the status. It changes neither status nor class.
func (r *Run) preferGatewayReason(res RunResult) RunResult {
	if r.CallDenial != "" && res.Class != RunSucceeded && RunStatuses()[res.Status].Denial {
		res.Message = r.CallDenial
	}
	return res
}

// IsAboutAnswer reports whether this is about one answer of the model rather than the run.
func (w *Waiting) IsAboutAnswer() bool { return w.Kind == WaitAnswerCut || w.Kind == WaitAnswerBlocked }

// answerStatus returns the status of a run whose last answer ended like this.
func (w *Waiting) answerStatus() RunStatus {
	if w.Kind == WaitAnswerCut {
		return StatusAnswerCut
	}
	return StatusRefused
}

// hasUnfinishedAnswer reports whether the run ended with an incomplete answer and reported no conclusion with a tool.
func (r *Run) hasUnfinishedAnswer() bool {
	return r.Unfinished != nil && r.Conclusion == nil && r.State != RunStopping
}

// CorrectResult returns the result of a run with errand's knowledge taken into account, whatever its program reported: an
// error of the API, a crash, silence, or nothing. If the gateway refused the run model calls, that is the reason for
// its end, unless there is a better known one: the VM was lost, or errand stopped the run. Other results are returned
// unchanged.
func (r *Run) CorrectResult(res RunResult) RunResult {
	res = r.preferGatewayReason(res)
	if res.Class == RunSucceeded && r.hasUnfinishedAnswer() {
		res.Status, res.Class, res.Message = r.Unfinished.answerStatus(), RunFatal, r.Unfinished.Detail
		return res
	}
	switch {
	case r.IsOutOfTurns():
		switch res.Status {
		case StatusMaxTurns, StatusVMLost, StatusLost, StatusInterrupted:
			return res
		}
		if r.Repair != nil { // the answer that it repairs exists all the same
			return res
		}
		res.Status, res.Class = StatusMaxTurns, RunFatal
	case r.RunDenial == nil, r.State == RunStopping, res.Class == RunSucceeded, res.Status == StatusVMLost:
		return res
	case r.RunDenial.Until.IsZero(): // a cap of the run or of its task
		res.Status, res.Class = StatusBudget, RunFatal
	default: // it continues automatically afterwards
		status := r.RunDenial.deniedStatus(res.Status)
		if status == "" {
			return res
		}
		res.Status, res.Class = status, RunRetryable
	}
	res.Message, res.RetryAt = r.RunDenial.Detail, time.Time{}
	return res
}

// FinalResult returns the result of a run for a report of its program: the stored result if the run is filed, else the
// corrected result merged with the run's conclusion.
func (r *Run) FinalResult(res RunResult) RunResult {
	if r.State == RunEnded && r.Status != "" {
		res.Status, res.Class, res.Message = r.Status, r.Class, r.Message
		return res
	}
	res, _ = r.WithConclusion(r.CorrectResult(res))
	return res
}

// IsOutOfTurns reports whether the gateway refused the run model calls because its turns were used up.
func (r *Run) IsOutOfTurns() bool { return r.RunDenial != nil && r.RunDenial.Kind == WaitTurns }

// OutOfTurnsDenial returns the reason for refusing model calls of a run that has used all of its turns.
func (r *Run) OutOfTurnsDenial() *Waiting {
	return &Waiting{Kind: WaitTurns, Detail: fmt.Sprintf("The run's turns are used up: the model has answered %d times.", r.MaxTurns)}
}

// deniedStatus returns the status of a run that was refused model calls for this, given the status that its program reported.
// It returns "" if the program's status is more precise.
func (w *Waiting) deniedStatus(reported RunStatus) RunStatus {
	if !RunStatuses()[reported].TemporaryDenial {
		return ""
	}
	switch w.Kind {
	case WaitMoney:
		return StatusBudget
	case WaitLimit:
		return StatusRateLimited
	case WaitKey:
		if reported == StatusBilling {
			return reported // the key has no credit left
		}
		return StatusAuth
	}
	return ""
}

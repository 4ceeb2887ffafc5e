package state

import (
	"fmt"
	"time"
)

// RunStatus describes how errand treats a run that ended with a status.
type RunStatus struct {
	// Denial: the status may be caused by a refused model call, since programs report a refusal in different ways. The
	// gateway's reason then replaces the run's message.
	Denial bool
	// Held: the status may be caused by a refusal that ends with time. The run is then continued afterwards.
	Held bool
	// HTTP: the status is a failure of the model's API, whose HTTP status is shown to people.
	HTTP bool
}

// RunStatuses returns every status of a run: those that adapters report, and those that errand itself sets.
func RunStatuses() map[string]RunStatus {
	return map[string]RunStatus{
		"ok":                   {},
		StatusMaxTurns:         {},
		"budget":               {Denial: true, Held: true},
		"rate_limited":         {Denial: true, Held: true, HTTP: true},
		"overloaded":           {Denial: true, Held: true, HTTP: true},
		"network":              {Denial: true, Held: true},
		"auth":                 {Denial: true, Held: true, HTTP: true},
		"billing":              {Denial: true, Held: true, HTTP: true},
		StatusContextOverflow:  {Denial: true},
		"answer_cut":           {},
		"looped":               {},
		"refused":              {Denial: true, Held: true},
		StatusNoSession:        {},
		"no_structured_output": {Denial: true},
		"no_op":                {Denial: true, Held: true},
		"interrupted":          {},
		"hook_stopped":         {},
		"duration":             {},
		"stalled":              {Denial: true, Held: true},
		"lost":                 {},
		"setup_failed":         {},
		StatusStartFailed:      {},
		"invalid":              {Denial: true, Held: true, HTTP: true},
		"crashed":              {Denial: true, Held: true},
		StatusVMLost:           {}, // errand's own
	}
}

// preferGatewayReason replaces the message of a failed run with the gateway's reason for refusing its last model call,
// if that explains the status. It changes neither status nor class.
func (r *Run) preferGatewayReason(res RunResult) RunResult {
	if r.Denied != "" && res.Class != "success" && RunStatuses()[res.Status].Denial {
		res.Message = r.Denied
	}
	return res
}

// Answer reports whether this is about one answer of the model rather than the run.
func (w *Waiting) Answer() bool { return w.Kind == WaitAnswerCut || w.Kind == WaitAnswerBlocked }

// answerStatus returns the status of a run whose last answer ended like this.
func (w *Waiting) answerStatus() string {
	if w.Kind == WaitAnswerCut {
		return "answer_cut"
	}
	return "refused"
}

// unfinished reports whether the run ended with an incomplete answer and reported no conclusion with a tool.
func (r *Run) unfinished() bool {
	return r.Unfinished != nil && r.Concluded == nil && r.State != RunStopping
}

// Correct returns the result of a run with errand's knowledge taken into account, whatever its program reported: an
// error of the API, a crash, silence, or nothing. If the gateway refused the run model calls, that is the reason for
// its end, unless there is a better known one: the VM was lost, or errand stopped the run. Other results are returned
// unchanged.
func (r *Run) Correct(res RunResult) RunResult {
	res = r.preferGatewayReason(res)
	if res.Class == "success" && r.unfinished() {
		res.Status, res.Class, res.Message = r.Unfinished.answerStatus(), "fatal", r.Unfinished.Detail
		return res
	}
	switch {
	case r.RefusedTurns():
		switch res.Status {
		case StatusMaxTurns, StatusVMLost, "lost", "interrupted":
			return res
		}
		if r.Repair != nil { // the answer that it repairs exists all the same
			return res
		}
		res.Status, res.Class = StatusMaxTurns, "fatal"
	case r.Held == nil, r.State == RunStopping, res.Class == "success", res.Status == StatusVMLost:
		return res
	case r.Held.Until.IsZero(): // a cap of the run or of its task
		res.Status, res.Class = "budget", "fatal"
	default: // it continues automatically afterwards
		status := r.Held.status(res.Status)
		if status == "" {
			return res
		}
		res.Status, res.Class = status, "retryable"
	}
	res.Message, res.RetryAt = r.Held.Detail, time.Time{}
	return res
}

// Judge returns the result of a run for a report of its program: the stored result if the run is filed, else the
// corrected result merged with the run's conclusion.
func (r *Run) Judge(res RunResult) RunResult {
	if r.State == RunEnded && r.Status != "" {
		res.Status, res.Class, res.Message = r.Status, r.Class, r.Message
		return res
	}
	res, _ = r.WithConclusion(r.Correct(res))
	return res
}

// RefusedTurns reports whether the gateway refused the run model calls because its turns were used up.
func (r *Run) RefusedTurns() bool { return r.Held != nil && r.Held.Kind == WaitTurns }

// TurnsUsedUp returns the reason for refusing model calls of a run that has used all of its turns.
func (r *Run) TurnsUsedUp() *Waiting {
	return &Waiting{Kind: WaitTurns, Detail: fmt.Sprintf("The run's turns are used up: the model has answered %d times.", r.MaxTurns)}
}

// status returns the status of a run that was refused model calls for this, given the status that its program reported.
// It returns "" if the program's status is more precise.
func (w *Waiting) status(said string) string {
	if !RunStatuses()[said].Held {
		return ""
	}
	switch w.Kind {
	case WaitMoney:
		return "budget"
	case WaitLimit:
		return "rate_limited"
	case WaitKey:
		if said == "billing" {
			return said // the key has no credit left
		}
		return "auth"
	}
	return ""
}

// StatusMaxTurns is the status of a run whose turns were used up.
const StatusMaxTurns = "max_turns"

// StatusStartFailed is the status of a run whose agent's program could not be started.
const StatusStartFailed = "start_failed"

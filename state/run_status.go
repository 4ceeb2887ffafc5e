package state

import (
	"fmt"
	"time"
)

// RunStatus is what errand knows of a way in which a run may end.
type RunStatus struct {
	// Denial: a run may end like this because the gateway refused it the model, since programs report a refusal as
	// anything. The gateway's reason is then why the run failed.
	Denial bool
	// Held: likewise, where the refusal is over after a time: the run then ended for that, and goes on afterwards.
	Held bool
	// HTTP: it is a failure of the model's API, whose HTTP status tells people more.
	HTTP bool
}

// RunStatuses returns every status of a run: those that adapters report, and those that errand itself gives.
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

// preferGatewayReason replaces the message of a failed run with the gateway's reason for refusing its last model call, where
// that explains the end of the run. The judgement itself stays.
func (r *Run) preferGatewayReason(res RunResult) RunResult {
	if r.Denied != "" && res.Class != "success" && RunStatuses()[res.Status].Denial {
		res.Message = r.Denied
	}
	return res
}

// Answer reports whether this is about one answer of the model, not about the run.
func (w *Waiting) Answer() bool { return w.Kind == WaitAnswerCut || w.Kind == WaitAnswerBlocked }

// answerStatus is what a run ends as whose last answer ended like this.
func (w *Waiting) answerStatus() string {
	if w.Kind == WaitAnswerCut {
		return "answer_cut"
	}
	return "refused"
}

// unfinished reports whether the run ended with an answer that has no end, and did not say what it concluded in another way.
func (r *Run) unfinished() bool {
	return r.Unfinished != nil && r.Concluded == nil && r.State != RunStopping
}

// Correct makes the end of a run what errand itself knows it to be, whatever its program made of that: an error of the
// API, a crash, silence, or nothing at all. A run that the gateway refused the model ended for that. What is known better
// stays: the VM was lost, or we stopped it. Other results are returned as they are.
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
		if r.Repair != nil { // what it repairs is there all the same
			return res
		}
		res.Status, res.Class = StatusMaxTurns, "fatal"
	case r.Held == nil, r.State == RunStopping, res.Class == "success", res.Status == StatusVMLost:
		return res
	case r.Held.Until.IsZero(): // a cap of its own, or of its task
		res.Status, res.Class = "budget", "fatal"
	default: // it goes on by itself when that is over
		status := r.Held.status(res.Status)
		if status == "" {
			return res
		}
		res.Status, res.Class = status, "retryable"
	}
	res.Message, res.RetryAt = r.Held.Detail, time.Time{}
	return res
}

// Judge returns how a run ended for a report of its program: as errand filed it, where it has decided that before, else
// with what errand knows and what the run said through its tools.
func (r *Run) Judge(res RunResult) RunResult {
	if r.State == RunEnded && r.Status != "" {
		res.Status, res.Class, res.Message = r.Status, r.Class, r.Message
		return res
	}
	res, _ = r.WithConclusion(r.Correct(res))
	return res
}

// RefusedTurns reports whether the gateway refused the run the model because its turns were used up.
func (r *Run) RefusedTurns() bool { return r.Held != nil && r.Held.Kind == WaitTurns }

// TurnsUsedUp is what a run is refused the model for when it has had all of its turns.
func (r *Run) TurnsUsedUp() *Waiting {
	return &Waiting{Kind: WaitTurns, Detail: fmt.Sprintf("The run's turns are used up: the model has answered %d times.", r.MaxTurns)}
}

// status is what a run ends as that was refused the model for this, if its program may have taken that for the given
// status; empty if the program knows better.
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
			return said // there is no credit on the key
		}
		return "auth"
	}
	return ""
}

// StatusMaxTurns is the status of a run whose turns were used up.
const StatusMaxTurns = "max_turns"

// StatusStartFailed is the status of a run whose agent's program could not be started.
const StatusStartFailed = "start_failed"

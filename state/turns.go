package state

import (
	"fmt"
	"time"
)

// StatusMaxTurns is the status of a run whose turns were used up.
const StatusMaxTurns = "max_turns"

// StatusStartFailed is the status of a run whose agent's program could not be started.
const StatusStartFailed = "start_failed"

// MostTurns is the highest number that people may ask for by `retry turns=N`.
const MostTurns = 500

// turnsGrace is how long a run may go on after the gateway refused it the model because its turns were used up;
// then it is stopped. Honest programs end by themselves at once.
const turnsGrace = 3 * time.Minute

// dueTurns is the reminder to look whether such a run has stopped; Event.Hash is its id.
const dueTurns = "turns"

// correct judges the end of a run again by what errand knows.
func (c *change) correct() {
	if c.e.Kind == EventRunEnded && c.e.Result != nil && c.thisRun() {
		res := c.t.Run.Correct(*c.e.Result)
		c.e.Result = &res
	}
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
	case r.refusedTurns():
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

// Judge returns how a run ended for a report of its program: as errand filed it, where it has decided that before, else
// with what errand knows and what the run said through its tools.
func (r *Run) Judge(res RunResult) RunResult {
	if r.State == RunEnded && r.Status != "" {
		res.Status, res.Class, res.Message = r.Status, r.Class, r.Message
		return res
	}
	res, _ = r.concluded(r.Correct(res))
	return res
}

// refusedTurns reports whether the gateway refused the run the model because its turns were used up.
func (r *Run) refusedTurns() bool { return r.Held != nil && r.Held.Kind == WaitTurns }

// TurnsUsedUp is what a run is refused the model for when it has had all of its turns.
func (r *Run) TurnsUsedUp() *Waiting {
	return &Waiting{Kind: WaitTurns, Detail: fmt.Sprintf("The run's turns are used up: the model has answered %d times.", r.MaxTurns)}
}

// hintTurns says how to go on with more turns than the run had.
func hintTurns(r *Run) string {
	had := r.TurnLimit
	if had == 0 {
		had = 30 // of a run that an earlier errand launched
	}
	switch {
	case had > MostTurns:
		return "Comment `retry` to go on with as many turns again, or split the issue."
	case had == MostTurns:
		return fmt.Sprintf("Comment `retry turns=%d` to go on with as many turns again, or split the issue.", had)
	}
	return fmt.Sprintf("Comment `retry turns=%d` to go on with more turns.", min(2*had, MostTurns))
}

// goesOnWithout reports whether the run that the reminder is about has no turns left and still goes on.
func (c *change) goesOnWithout() bool {
	r := c.t.Run
	return r != nil && r.ID == c.e.Hash && r.State == RunActive && r.refusedTurns()
}

// endTurns stops a run that has no turns left and does not end.
func (c *change) endTurns() {
	why := c.t.Run.Held.Detail
	c.dropRun(why)
	r := &c.t.Runs[len(c.t.Runs)-1]
	r.Status, r.Class = StatusMaxTurns, "fatal"
	c.fail(End{Reason: why, Hint: hintTurns(r), Class: "agent"})
}

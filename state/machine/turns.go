package machine

import (
	"fmt"
	"time"

	"github.com/errand-bot/errand/state"
)

// MostTurns is the maximum of `retry turns=N`.
const MostTurns = 500

// turnsGrace is how long a run may continue after the gateway refused a model call because its turns were used up; then
// it is stopped. Well-behaved programs end immediately.
const turnsGrace = 3 * time.Minute

// correct judges the end of a run again by what errand knows.
func correct(c *change) {
	if c.e.Kind == state.EventRunEnded && c.e.Result != nil && thisRun(c) {
		res := c.t.Run.Correct(*c.e.Result)
		c.e.Result = &res
	}
}

// hintTurns returns the hint to continue with more turns than the run had.
func hintTurns(r *state.Run) string {
	had := r.TurnLimit
	if had == 0 {
		had = 30 // the run was launched by an older version of errand
	}
	switch {
	case had > MostTurns:
		return "Comment `retry` to go on with as many turns again, or split the issue."
	case had == MostTurns:
		return fmt.Sprintf("Comment `retry turns=%d` to go on with as many turns again, or split the issue.", had)
	}
	return fmt.Sprintf("Comment `retry turns=%d` to go on with more turns.", min(2*had, MostTurns))
}

// goesOnWithout reports whether the run of the delayed check has no turns left and is still active.
func goesOnWithout(c *change) bool {
	r := c.t.Run
	return r != nil && r.ID == c.e.Due.Run && r.State == state.RunActive && r.RefusedTurns()
}

// endTurns stops a run that has no turns left and has not ended.
func endTurns(c *change) {
	why := c.t.Run.Held.Detail
	c.dropRun(why)
	r := &c.t.Runs[len(c.t.Runs)-1]
	r.Status, r.Class = state.StatusMaxTurns, "fatal"
	c.fail(state.End{Reason: why, Hint: hintTurns(r), Class: "agent"})
}

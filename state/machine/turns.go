package machine

import (
	"fmt"
	"time"

	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// MaxRetryTurns is the maximum of `retry turns=N`.
const MaxRetryTurns = 500

// turnsGrace is how long a run may continue after the gateway refused a model call because its turns were used up; then
// it is stopped. Well-behaved programs end immediately.
const turnsGrace = 3 * time.Minute

// correctResult judges the end of a run again by what errand knows.
func correctResult(c *change) {
	if c.result != nil && isActiveRun(c) {
		*c.result = c.t.Run.CorrectResult(*c.result)
	}
}

// turnsHint returns the hint to continue with more turns than the run had.
func turnsHint(r *state.Run) string {
	limit := r.TurnLimit
	if limit == 0 {
		limit = 30 // the run was launched by an older version of errand
	}
	switch {
	case limit > MaxRetryTurns:
		return "Comment `retry` to continue with the same number of turns, or split the issue."
	case limit == MaxRetryTurns:
		return fmt.Sprintf("Comment `retry turns=%d` to continue with the same number of turns, or split the issue.", limit)
	}
	return fmt.Sprintf("Comment `retry turns=%d` to continue with more turns.", min(2*limit, MaxRetryTurns))
}

// continuesWithoutTurns reports whether the run of the delayed check has no turns left and is still active.
func continuesWithoutTurns(c *change) bool {
	r := c.t.Run
	return r != nil && r.ID == of[event.Due](c).Run && r.State == state.RunActive && r.IsOutOfTurns()
}

// stopWithoutTurns stops a run that has no turns left and has not ended.
func stopWithoutTurns(c *change) {
	reason := c.t.Run.RunDenial.Detail
	c.dropRun(reason)
	r := &c.t.Runs[len(c.t.Runs)-1]
	r.Status, r.Class = state.StatusMaxTurns, state.RunFatal
	c.fail(state.End{Reason: reason, Hint: turnsHint(r), Class: state.ClassAgent})
}

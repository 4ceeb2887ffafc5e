package machine

import "github.com/errand-bot/errand/state"

// programOutputHint tells where to find the output of an agent's program, which no comment repeats.
const programOutputHint = "The output of the agent's program is in errand's log and in the run's transcript; the operator can read both. "

// failureHint returns the hint after a filed run with this status.
func failureHint(c *change, status state.RunStatus) string {
	hint := "Comment `retry` to continue from here, or `retry fresh` for a new VM."
	switch status {
	case state.StatusCrashed, state.StatusInvalid, state.StatusNoOp:
		hint = programOutputHint + hint
	case state.StatusRefused:
		hint = "Rephrase the request, or choose another model with `model NAME`; then comment `retry` to continue from here."
	case state.StatusContextOverflow:
		hint = "The task is too large for one conversation with this model. Choose another one with `model NAME` and comment `retry`, or split the issue."
	case state.StatusMaxTurns:
		hint = turnsHint(&c.t.Runs[len(c.t.Runs)-1])
	case state.StatusBudget:
		hint = state.HintBudget
	case state.StatusAuth, state.StatusBilling:
		hint = "The operator has to check errand's account and the permissions of its key at the model's provider; then comment `retry` to continue from here."
	case state.StatusStartFailed:
		hint = "The operator has to install the agent's program on the machine where agents run (errand's log has its name); then comment `retry` to continue from here."
	case state.StatusDuration:
		hint = "Comment `retry` to continue; the limit on agent activity starts again."
	}
	return hint
}

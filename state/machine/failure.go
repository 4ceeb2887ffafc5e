package machine

import "github.com/errand-bot/errand/state"

// hintProgram tells where to find the output of an agent's program, which no comment repeats.
const hintProgram = "The operator finds what the agent's program said in errand's log, and in the run's transcript. "

// failureHint returns the hint after a filed run with this status.
func failureHint(c *change, status string) string {
	hint := "Comment `retry` to go on from here, or `retry fresh` for a new VM."
	switch status {
	case "crashed", "invalid", "no_op":
		hint = hintProgram + hint
	case "refused":
		hint = "Say it in other words, or choose another model with `model NAME`; then comment `retry` to go on from here."
	case state.StatusContextOverflow:
		hint = "The work is too much for one conversation with this model. Choose another one with `model NAME` and comment `retry`, or split the issue."
	case state.StatusMaxTurns:
		hint = hintTurns(&c.t.Runs[len(c.t.Runs)-1])
	case "budget":
		hint = state.HintBudget
	case "auth", "billing":
		hint = "The operator has to see to errand's account, or to what its key may use, at the model's provider; then comment `retry` to go on from here."
	case state.StatusStartFailed:
		hint = "The operator has to install the agent's program where it runs (the log says which); then comment `retry` to go on from here."
	case "duration":
		hint = "Comment `retry` to go on: the limit on agent activity starts anew."
	}
	return hint
}

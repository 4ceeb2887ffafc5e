package launch

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/runner"
	"github.com/errand-bot/errand/prompts"
	"github.com/errand-bot/errand/state"
)

// The limits of a run that only repeats its closing block.
const (
	repairTurns    = 5
	repairDuration = 10 * time.Minute
)

// repairs reports whether the run only asks for a closing block: it has an answer without one, and is on the VM
// of that answer, whose checkout is left as it is. On another VM the work is done again.
func repairs(t *state.Task, vm state.VM) bool {
	last := lastAgentRun(t)
	return t.Run.Repair != nil && last != nil && last.VM == vm.Name
}

// repairSchema returns the JSON schema for the answer of such a run, nil if its program supports none.
func repairSchema(can agent.Capabilities, kind state.RunKind) json.RawMessage {
	switch {
	case !can.Schema:
		return nil
	case kind == state.RunImplement || kind == state.RunReview:
		return agent.OutcomeSchema(agent.OutcomeDone, agent.OutcomeQuestion, agent.OutcomeBlocked, agent.OutcomeAnswered,
			agent.OutcomeUnchanged)
	}
	return agent.OutcomeSchema(slices.DeleteFunc(agent.OutcomeKinds(), func(k agent.OutcomeKind) bool { return k == agent.OutcomeDone })...)
}

// promptRepair returns the prompt's data for such a run; anew is set if no session is resumed.
func promptRepair(t *state.Task, can agent.Capabilities, anew bool) *prompts.Repair {
	r := &prompts.Repair{Problem: t.Run.Repair.Problem, Form: can.Schema}
	if anew {
		r.Block, r.Answer = t.Run.Repair.Block, t.Run.Repair.Text
	}
	return r
}

// short bounds a run that only asks for a closing block.
func short(spec *runner.Spec) {
	spec.Setup, spec.Duration = nil, min(spec.Duration, repairDuration)
}

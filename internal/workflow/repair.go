package workflow

import (
	"errors"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/runner"
	"github.com/errand-bot/errand/prompts"
	"github.com/errand-bot/errand/state"
)

// What a run may use that only says its closing block once more.
const (
	repairTurns    = 5
	repairDuration = 10 * time.Minute
)

// maxBlock bounds, in characters, what is kept of a closing block that cannot be read.
const maxBlock = 8_000

// repairs reports whether the run only asks for a closing block: it has an answer without one, and is on the VM
// of that answer, whose checkout is left as it is. On another VM the work is done anew.
func repairs(t *state.Task, vm state.VM) bool {
	last := lastAgentRun(t)
	return t.Run.Repair != nil && last != nil && last.VM == vm.Name
}

// promptRepair is what such a run is told; anew says that no session is resumed.
func promptRepair(t *state.Task, anew bool) *prompts.Repair {
	r := &prompts.Repair{Problem: t.Run.Repair.Problem}
	if anew {
		r.Block, r.Answer = t.Run.Repair.Block, t.Run.Repair.Text
	}
	return r
}

// short bounds a run that only asks for a closing block.
func short(spec *runner.Spec) {
	spec.Setup, spec.Duration = nil, min(spec.Duration, repairDuration)
}

// parse reads an answer's closing block. A run that was asked for nothing else may have said it without its fences,
// but it has to be there.
func (in *Interpreter) parse(text string) (o agent.Outcome, rest string, err error) {
	o, rest, err = agent.ParseOutcome(text)
	if in.run.Repair == nil || err != nil || o.Kind != "" {
		return o, rest, err
	}
	from, to := strings.Index(text, "{"), strings.LastIndex(text, "}")
	if from < 0 || to < from {
		return o, rest, errors.New("there is no errand block")
	}
	if o, _, err = agent.ParseOutcome(asBlock(text[from : to+1])); err == nil && o.Kind == "" {
		err = errors.New("the errand block has no outcome")
	}
	return o, rest, err
}

// unread tells what it can of a closing block that cannot be read: of the newest one, else of that before.
func (in *Interpreter) unread(text string, problem error, out *state.RunResult) agent.Outcome {
	o, block := agent.Unread(text)
	if r := in.run.Repair; r != nil && o.Kind == "" {
		o, block = agent.Unread(asBlock(r.Block))
	}
	out.Message = in.clean("the agent's closing block could not be read: "+problem.Error(), maxNote)
	out.Broken, out.Guess, out.Block = in.clean(problem.Error(), maxNote), o.Kind == "", in.clean(block, maxBlock)
	return o
}

// asBlock is a block as an answer has it.
func asBlock(block string) string { return "````errand\n" + block + "\n````" }

// repaired puts the answer in the place of what was said with its block, which was to be nothing.
func (in *Interpreter) repaired(out *state.RunResult) {
	if r := in.run.Repair; r != nil && strings.TrimSpace(r.Text) != "" {
		out.Text = r.Text
	}
}

// unrepaired is the result of a run that was asked for its closing block and failed at that: the work was done
// before. What waiting or money may help against is no such failure.
func (in *Interpreter) unrepaired(status agent.Status, out *state.RunResult) {
	if in.run.Repair == nil {
		return
	}
	switch status {
	case agent.StatusOK, agent.StatusRateLimited, agent.StatusOverloaded, agent.StatusNetwork, agent.StatusAuth, agent.StatusBilling,
		agent.StatusBudget, agent.StatusInterrupted, agent.StatusLost:
		return
	}
	why := "asked for its closing block again, the agent ended as " + string(status)
	o, _ := agent.Unread(asBlock(in.run.Repair.Block))
	in.concluded(o, out)
	out.Status, out.Class, out.Message, out.RetryAt = string(agent.StatusOK), string(agent.ClassSuccess), why, time.Time{}
	out.Broken, out.Guess = in.run.Repair.Problem, o.Kind == ""
	in.repaired(out)
}

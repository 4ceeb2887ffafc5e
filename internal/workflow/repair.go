package workflow

import (
	"encoding/json"
	"errors"
	"slices"
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

// held is the form that such a run's answer is held to, nil where its program cannot be held to one.
func held(can agent.Capabilities, kind state.RunKind) json.RawMessage {
	switch {
	case !can.Schema:
		return nil
	case kind == state.RunImplement || kind == state.RunReview:
		return agent.OutcomeSchema(agent.OutcomeDone, agent.OutcomeQuestion, agent.OutcomeBlocked)
	}
	return agent.OutcomeSchema(slices.DeleteFunc(agent.OutcomeKinds(), func(k agent.OutcomeKind) bool { return k == agent.OutcomeDone })...)
}

// promptRepair is what such a run is told; anew says that no session is resumed.
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

// answer is what a run's closing block is read from: of one that was held to a form, what has that form. A program
// that failed at the form may have said the block in words.
func (in *Interpreter) answer(res agent.Result) (text string, ok bool) {
	switch {
	case !in.form || res.Status != agent.StatusOK && res.Status != agent.StatusNoStructuredOutput:
		return res.Text, res.Status == agent.StatusOK
	case len(res.Structured) > 0:
		return string(res.Structured), true
	}
	for _, text = range []string{res.Text, in.said} {
		if _, _, err := in.parse(text); err == nil {
			return text, true
		}
	}
	return "", false
}

// parse reads an answer's closing block. A run that was asked for nothing else may have said it without its fences,
// but it has to be there.
func (in *Interpreter) parse(text string) (o agent.Outcome, rest string, err error) {
	o, rest, err = agent.ParseOutcome(text)
	if in.run.Repair == nil || err != nil || o.Kind != "" {
		return o, rest, err
	}
	err = errors.New("there is no errand block")
	to := strings.LastIndex(text, "}") + 1
	for from, tries := to, 0; tries < 100; tries++ {
		if from = strings.LastIndex(text[:from], "{"); from < 0 {
			break
		}
		bare, _, wrong := agent.ParseOutcome(asBlock(text[from:to]))
		if wrong == nil && bare.Kind != "" {
			return bare, "", nil
		}
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

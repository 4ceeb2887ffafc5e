package result

import (
	"errors"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/state"
)

// maxBlock is how many characters are kept of a closing block that cannot be parsed.
const maxBlock = 8_000

// answer returns the text from which the closing block is read: for a run with a JSON schema, the structured output. A
// program that failed to produce it may have written the block in its text.
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

// parse reads an answer's closing block. A run that was asked for nothing else may omit the fences,
// but not the block.
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

// unread recovers parts of a closing block that cannot be parsed: of the newest one, else of the previous one.
func (in *Interpreter) unread(text string, problem error, out *state.RunResult) agent.Outcome {
	o, block := agent.RecoverOutcome(text)
	if r := in.run.Repair; r != nil && o.Kind == "" {
		o, block = agent.RecoverOutcome(asBlock(r.Block))
	}
	out.Message = in.clean("the agent's closing block could not be read: "+problem.Error(), maxNote)
	out.Broken, out.Guess, out.Block = in.clean(problem.Error(), maxNote), o.Kind == "", in.clean(block, maxBlock)
	return o
}

// asBlock is a block as an answer has it.
func asBlock(block string) string { return "````errand\n" + block + "\n````" }

// repaired keeps the text of the original answer, because a repair has no text.
func (in *Interpreter) repaired(out *state.RunResult) {
	if r := in.run.Repair; r != nil && strings.TrimSpace(r.Text) != "" {
		out.Text = r.Text
	}
}

// unrepaired makes the result of a run that was asked for its closing block and failed: the work was done
// before. Failures that a wait or money may resolve are left as they are.
func (in *Interpreter) unrepaired(status agent.Status, out *state.RunResult) {
	if in.run.Repair == nil {
		return
	}
	switch status {
	case agent.StatusOK, agent.StatusRateLimited, agent.StatusOverloaded, agent.StatusNetwork, agent.StatusAuth, agent.StatusBilling,
		agent.StatusBudget, agent.StatusInterrupted, agent.StatusLost:
		return
	}
	why := "errand asked for the closing block again, but " + state.RunStatus(status).Clause()
	o, _ := agent.RecoverOutcome(asBlock(in.run.Repair.Block))
	in.concluded(o, out)
	out.Status, out.Class, out.Message, out.RetryAt = state.StatusOK, state.RunSucceeded, why, time.Time{}
	out.Broken, out.Guess = in.run.Repair.Problem, o.Kind == ""
	in.repaired(out)
}

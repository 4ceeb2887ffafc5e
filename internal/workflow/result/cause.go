package result

import (
	"fmt"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/state"
)

// cause returns why a run ended that did not succeed, in a sentence of errand's own: that of the judgement, or else that of
// the status. Nothing of it is the program's, whose excuses name commands, addresses and request ids of a VM that is not
// people's to act on: what the program said goes to the log and the transcript.
func cause(res agent.Result, x runlog.Exit) string {
	words, ok := causes()[res.Status]
	switch {
	case res.Status == agent.StatusOK:
		return ""
	case res.Why != "":
		return res.Why
	case res.Status == agent.StatusSetupFailed: // the repository's own command, and the end of its output
		return firstText(x.Message, words)
	case !ok, res.Status == agent.StatusCrashed:
		return crash(x)
	}
	if res.HTTP == 404 && res.Status == agent.StatusInvalid {
		words = "the model's provider does not know the model, or does not offer it to errand's account"
	}
	if state.RunStatuses()[string(res.Status)].HTTP && res.HTTP >= 400 && res.HTTP < 600 {
		words += fmt.Sprintf(" (HTTP %d)", res.HTTP)
	}
	return words
}

// causes are the sentences of the statuses, but for those that cause makes of the run's exit.
func causes() map[agent.Status]string {
	return map[agent.Status]string{
		agent.StatusMaxTurns:           "the run's turns are used up",
		agent.StatusBudget:             "the run's money is used up",
		agent.StatusRateLimited:        "the model's provider allows no more calls for now",
		agent.StatusOverloaded:         "the model's provider is overloaded or failing",
		agent.StatusNetwork:            "the model could not be reached, or its answer was cut off",
		agent.StatusAuth:               "the model's provider refused the call",
		agent.StatusBilling:            "the model's provider wants to be paid first",
		agent.StatusContextOverflow:    "the conversation became too long for the model",
		agent.StatusAnswerCut:          "the agent's answer was too long, so nothing of it was used: it has to be shorter",
		agent.StatusLooped:             "the agent did the same again and again, and was stopped for it",
		agent.StatusRefused:            "the model declined to answer, or its last answer was empty",
		agent.StatusNoSession:          "the agent's session was not there any more",
		agent.StatusNoStructuredOutput: "the agent gave no answer in the form that was asked for",
		agent.StatusNoOp:               "the agent's program ended without an answer of the model",
		agent.StatusInterrupted:        "the run was stopped",
		agent.StatusHookStopped:        "a hook stopped the agent",
		agent.StatusDuration:           "the time for the run was up",
		agent.StatusStalled:            "the agent gave no sign of life for too long: no output, no open request to the model, no work",
		agent.StatusLost:               "the run was lost: what supervises it was ended, or its VM restarted",
		agent.StatusSetupFailed:        "a set-up command failed",
		agent.StatusStartFailed:        "the agent's program could not be started",
		agent.StatusInvalid:            "the agent's program or the model's provider did not accept what it was asked",
	}
}

// crash describes the end of a program for which errand knows no reason.
func crash(x runlog.Exit) string {
	switch {
	case x.Signal != "":
		return "the agent's program was killed before its work was done"
	case x.Code != 0:
		return fmt.Sprintf("the agent's program ended with code %d before its work was done", x.Code)
	}
	return "the agent's program ended without a result"
}

func firstText(texts ...string) string {
	for _, s := range texts {
		if s != "" {
			return s
		}
	}
	return ""
}

// explain adds errand's sentence about the end of a run to its result, together with the program's and the runner's messages.
func (in *Interpreter) explain(res agent.Result, x runlog.Exit, out *state.RunResult) {
	out.Message = in.clean(cause(res, x), maxNote)
	if res.Status == agent.StatusOK {
		return
	}
	out.ProgramError = in.clean(res.Said, maxNote)
	if note := in.clean(x.Message, maxNote); note != out.Message {
		out.RunnerNote = note
	}
}

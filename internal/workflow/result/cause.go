package result

import (
	"fmt"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/state"
)

// cause returns the reason why a run failed, in errand's own words: those of the judgment, or else those of the status.
// It contains none of the program's output, whose messages name commands, addresses and request IDs of a VM that people
// cannot act on. That output is in the log and the transcript.
func cause(res agent.Result, x runlog.Exit) string {
	words, ok := causes()[res.Status]
	switch {
	case res.Status == agent.StatusOK:
		return ""
	case res.Reason != "":
		return res.Reason
	case res.Status == agent.StatusSetupFailed: // the repository's own command, and the end of its output
		return firstText(x.Message, words)
	case !ok, res.Status == agent.StatusCrashed:
		return crash(x)
	}
	if res.HTTP == 404 && res.Status == agent.StatusInvalid {
		words = "the model's provider does not have the model, or does not offer it to errand's account"
	}
	if state.RunStatuses()[state.RunStatus(res.Status)].HTTP && res.HTTP >= 400 && res.HTTP < 600 {
		words += fmt.Sprintf(" (HTTP %d)", res.HTTP)
	}
	return words
}

// causes returns a sentence for each status, except those that cause derives from the run's exit.
func causes() map[agent.Status]string {
	return map[agent.Status]string{
		agent.StatusMaxTurns:           "the run's turns are used up",
		agent.StatusBudget:             "the run's cap on cost is reached",
		agent.StatusRateLimited:        "the model's provider allows no more calls at present",
		agent.StatusOverloaded:         "the model's provider is overloaded or failing",
		agent.StatusNetwork:            "the model could not be reached, or its answer was cut off",
		agent.StatusAuth:               "the model's provider refused the call",
		agent.StatusBilling:            "the model's provider requires a payment first",
		agent.StatusContextOverflow:    "the conversation became too long for the model",
		agent.StatusAnswerCut:          "the agent's answer was too long and was discarded: it has to be shorter",
		agent.StatusLooped:             "the agent repeated the same actions and was stopped",
		agent.StatusRefused:            "the model declined to answer, or its last answer was empty",
		agent.StatusNoSession:          "the agent's session no longer existed",
		agent.StatusNoStructuredOutput: "the agent gave no answer in the requested form",
		agent.StatusNoOp:               "the agent's program ended without an answer from the model",
		agent.StatusInterrupted:        "the run was stopped",
		agent.StatusHookStopped:        "a hook stopped the agent",
		agent.StatusDuration:           "the run's time limit was reached",
		agent.StatusStalled:            "the agent was inactive for too long: no output, no open request to the model, no work",
		agent.StatusLost:               "the run was lost: its supervisor was killed, or its VM restarted",
		agent.StatusSetupFailed:        "a set-up command failed",
		agent.StatusStartFailed:        "the agent's program could not be started",
		agent.StatusInvalid:            "the agent's program or the model's provider rejected the request as invalid",
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

// explain adds errand's sentence about the end of a run to its result, together with the program's and the runner's
// messages.
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

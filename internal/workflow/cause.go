package workflow

import (
	"fmt"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/state"
)

// cause returns why a run ended that did not succeed, in a sentence of errand's own. Nothing of it is the program's, whose
// excuses name commands, addresses and request ids of a VM that is not people's to act on: what the program said goes to
// the log and the transcript. HTTP is the status of the model's failure, if there was one.
func cause(s agent.Status, http int, x runlog.Exit) string {
	words, ok := causes()[s]
	switch {
	case s == agent.StatusOK:
		return ""
	case s == agent.StatusSetupFailed: // the repository's own command, and the end of its output
		return firstText(x.Message, words)
	case !ok, s == agent.StatusCrashed:
		return crash(x)
	}
	if http == 404 && s == agent.StatusInvalid {
		words = "the model's provider does not know the model, or does not offer it to errand's account"
	}
	if ofModel(s) && http >= 400 && http < 600 {
		words += fmt.Sprintf(" (HTTP %d)", http)
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
		agent.StatusAnswerCut:          "the agent's answer was longer than errand keeps of a line (4 MiB), or came when there was more output than it keeps of a run, so nothing of it was used: it has to be shorter",
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

// ofModel reports whether a status is a failure of the model's API.
func ofModel(s agent.Status) bool {
	switch s {
	case agent.StatusRateLimited, agent.StatusOverloaded, agent.StatusAuth, agent.StatusBilling, agent.StatusInvalid:
		return true
	}
	return false
}

// crash says how a program ended that gave no reason that errand knows.
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

// explain puts errand's words for the end of a run into its result, and the program's beside them.
func (in *Interpreter) explain(res agent.Result, x runlog.Exit, out *state.RunResult) {
	out.Message = in.clean(cause(res.Status, res.HTTP, x), maxNote)
	if res.Status != agent.StatusOK {
		out.ProgramError = in.clean(firstText(res.Message, x.Message), maxNote)
	}
}

package agenttest

import "github.com/errand-bot/errand/internal/agent"

// Statuses returns every status, in the order of their constants.
func Statuses() []agent.Status {
	return []agent.Status{
		agent.StatusOK, agent.StatusMaxTurns, agent.StatusBudget, agent.StatusRateLimited, agent.StatusOverloaded, agent.StatusNetwork, agent.StatusAuth,
		agent.StatusBilling, agent.StatusContextOverflow, agent.StatusAnswerCut, agent.StatusLooped, agent.StatusRefused, agent.StatusNoSession,
		agent.StatusNoStructuredOutput, agent.StatusNoOp, agent.StatusInterrupted, agent.StatusHookStopped, agent.StatusDuration, agent.StatusStalled,
		agent.StatusLost, agent.StatusSetupFailed, agent.StatusStartFailed, agent.StatusInvalid, agent.StatusCrashed,
	}
}

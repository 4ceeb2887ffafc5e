package launch

import (
	"cmp"
	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/state"
)

// Agents has the adapters of the agents that may be given runs; *registry.Registry is one.
type Agents interface {
	// Choose returns the adapter and the model of a step when people wish for a model.
	Choose(step, wish string) (agent.Adapter, agent.Route)
}

// choose returns the agent and the model of the task's run.
func (s *Steps) choose(t *state.Task) (agent.Adapter, agent.Route) {
	return s.Agents.Choose(string(t.Run.Kind), t.Model)
}

// provider names the provider of models that the task's next run asks.
func (s *Steps) provider(t *state.Task) string {
	_, route := s.choose(t)
	return s.Providers[route.Adapter]
}

// modelURL is where a run reaches its models: empty if it has no provider.
func (s *Steps) modelURL(base, adapter string) string {
	if name := s.Providers[adapter]; name != "" {
		return base + "/llm/" + name
	}
	return ""
}

// resumable returns the agent's session that the run can go on with: one of the same adapter, which is on this
// VM. A run by another agent begins with the conversation so far in its prompt.
func resumable(t *state.Task, vm state.VM, a agent.Adapter) string {
	if !a.Capabilities().Resume || !holdsSession(t, vm) {
		return ""
	}
	if last := lastAgentRun(t); last != nil && last.Adapter != "" && last.Adapter != a.Name() {
		return ""
	}
	return t.Run.Session
}

// turnLimit returns the limit on turns of a run, 0 for none: the one that a person gave, otherwise that of the settings. Where
// calls cost nothing, and so no cap on cost ends a run, the settings can only lower [Config.SubscriptionTurns].
func (s *Steps) turnLimit(t *state.Task, l *state.Launch) int {
	turns := cmp.Or(t.Turns, t.Settings.Limits.Turns)
	unpaid := s.Subscribed[s.Providers[l.Adapter]] || s.IsFree != nil && s.IsFree(l.Model)
	if t.Turns == 0 && unpaid && (turns == 0 || turns > s.SubscriptionTurns) {
		return s.SubscriptionTurns
	}
	return turns
}

// hardTurns returns how many answers of the model the gateway allows a run with that limit, whether or not the program
// on the VM obeys it; 0 means any number. For a program without a limit it is the number itself. For the others it is
// higher than an honest one needs: requests for titles, for a shorter conversation or by sub-agents are answered, too.
func hardTurns(can agent.Capabilities, turns int) int {
	if can.NoTurnLimit || turns == 0 {
		return turns
	}
	return 2*turns + 10
}

package server

import (
	"context"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/registry"
	"github.com/errand-bot/errand/internal/gateway"
	"github.com/errand-bot/errand/state"
)

// makeAgents makes the adapters of all agents that runs may be given to.
func (s *Server) makeAgents(context.Context) (err error) {
	s.agents, err = registry.New(s.cfg.Agent)
	return err
}

// allowedModels says which models a task's run may call: those of what it was started with. While it is being
// started that is not stored yet, and follows from the configuration, unless that was changed meanwhile.
func (s *Server) allowedModels(t *state.Task) gateway.AllowedModels {
	route := agent.Route{Adapter: t.Run.Adapter, Model: t.Run.Model}
	starts := t.Run.State == state.RunLaunching
	if starts {
		_, route = s.agents.Choose(string(t.Run.Kind), t.Model)
	}
	return gateway.AllowedModels{Names: s.agents.Models(route), Pending: starts}
}

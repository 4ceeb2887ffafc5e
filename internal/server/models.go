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

// allowedModels returns the models that a task's run may call: those with which it was started. While it is being
// started, they are not stored yet and follow from the configuration, unless it was changed in the meantime.
func (s *Server) allowedModels(t *state.Task) gateway.AllowedModels {
	route := agent.Route{Adapter: t.Run.Adapter, Model: t.Run.Model}
	starts := t.Run.State == state.RunLaunching
	if starts {
		_, route = s.agents.Choose(string(t.Run.Kind), t.Model)
	}
	return gateway.AllowedModels{Names: s.agents.Models(route), Pending: starts}
}

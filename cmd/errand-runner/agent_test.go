package main

import (
	"os"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/agent/api"
)

// TestAgent runs the suite of all agents with errand's own agent: as a process, over HTTP, with tools that really run.
func TestAgent(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := agent.Program{
		Command: []string{self, "agent"},
		Env:     map[string]string{"ERRAND_AGENT_RETRIES": "2", "ERRAND_AGENT_RETRY_WAIT": "1ms"},
	}
	agenttest.Run(t, agenttest.Harness{Adapter: api.New(program), Model: agenttest.StartModel(api.DefaultModel)})
}

package main

import (
	"context"
	"net/http/httptest"
	"os"
	"regexp"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/sim/simmodel"
)

// TestAgent holds the agent `api` against the suite of all agents: as a process, over HTTP, with tools
// that really run.
func TestAgent(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	set, err := agent.NewSet(agent.Config{
		Adapter: agent.NameAPI, Command: []string{self, "agent"},
		Env: map[string]string{"ERRAND_AGENT_RETRIES": "2", "ERRAND_AGENT_RETRY_WAIT": "1ms"},
	})
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Run(t, agenttest.Harness{Adapter: set.Of(agent.NameAPI), Model: startModel})
}

// startModel serves a scenario.
func startModel(t *testing.T, s agenttest.Scenario) agenttest.Model {
	t.Helper()
	const token = "run-token"
	srv, err := simmodel.New(simmodel.Config{Script: scriptOf(s), Key: token})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(srv)
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	return agenttest.Model{
		URL: web.URL, Token: token, Release: srv.Release,
		Waiting: func(ctx context.Context, gate string) error { return srv.Waiting(ctx, gate) },
		Usage: func() runlog.Usage {
			u := srv.Totals().Usage
			return runlog.Usage{Input: int64(u.Input), Output: int64(u.Output), CacheRead: int64(u.CacheRead), CacheWrite: int64(u.CacheWrite)}
		},
		Bodies: func() (bodies []string) {
			for _, r := range srv.Requests() {
				bodies = append(bodies, string(r.Body))
			}
			return bodies
		},
	}
}

func scriptOf(s agenttest.Scenario) (out simmodel.Script) {
	for _, reply := range s {
		rule := simmodel.Rule{Match: regexp.QuoteMeta(reply.Prompt), Repeat: reply.Repeat}
		for _, turn := range reply.Turns {
			one := simmodel.Turn{
				Text: turn.Text, Bash: turn.Bash, Wait: turn.Wait, Stop: turn.Stop,
				Status: turn.Status, Message: turn.Message, Cut: turn.Cut, Times: turn.Times,
			}
			if turn.Times == 0 {
				one.Times = -1
			}
			for _, c := range turn.Calls {
				one.Tools = append(one.Tools, simmodel.Call{Name: c.Name, Input: c.Input})
			}
			rule.Turns = append(rule.Turns, one)
		}
		out.Rules = append(out.Rules, rule)
	}
	return out
}

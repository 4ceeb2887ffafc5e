package agenttest

import (
	"context"
	"net/http/httptest"
	"regexp"
	"testing"

	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/sim/simmodel"
)

// StartModel returns a function for [Harness] that starts a simulated model of this name, which plays the scenario until
// the test ends.
func StartModel(name string) func(*testing.T, Scenario) Model {
	return func(t *testing.T, s Scenario) Model {
		t.Helper()
		return startModel(t, name, s)
	}
}

func startModel(t *testing.T, name string, s Scenario) Model {
	t.Helper()
	const key = "run-token"
	srv, err := simmodel.New(simmodel.Config{Script: script(s), Key: key})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(srv)
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	return Model{
		Name: name, URL: web.URL, Token: key,
		Usage: func() runlog.Usage {
			u := srv.Totals().Usage
			return runlog.Usage{
				Input:      int64(u.Input),
				Output:     int64(u.Output),
				CacheRead:  int64(u.CacheRead),
				CacheWrite: int64(u.CacheWrite),
			}
		},
		Bodies: func() []string {
			var bodies []string
			for _, r := range srv.Requests() {
				bodies = append(bodies, string(r.Body))
			}
			return bodies
		},
		Waiting: func(ctx context.Context, gate string) error { return srv.Waiting(ctx, gate) },
		Release: srv.Release,
	}
}

// script translates a scenario for the simulated model.
func script(s Scenario) simmodel.Script {
	var out simmodel.Script
	for _, reply := range s {
		rule := simmodel.Rule{Match: regexp.QuoteMeta(reply.Prompt), Repeat: reply.Repeat}
		for _, turn := range reply.Turns {
			one := simmodel.Turn{
				Thinking: turn.Thinking, Text: turn.Text, Bash: turn.Bash, Wait: turn.Wait, Stop: turn.Stop,
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

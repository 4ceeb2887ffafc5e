package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/shellrules"
	"github.com/errand-bot/errand/internal/sim/simagent"
	"github.com/errand-bot/errand/internal/sim/simcodex"
	"github.com/errand-bot/errand/internal/sim/simmodel"
)

// asAgent and asCodex in the environment make the test binary act as the simulated agent in one of its two modes.
const (
	asAgent = "ERRAND_TEST_SIMAGENT"
	asCodex = "ERRAND_TEST_SIMCODEX"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == "judge" {
		os.Exit(judge(os.Args[3], slices.Contains(os.Args, "--refuse-only")))
	}
	if os.Getenv(asCodex) != "" {
		os.Exit(simcodex.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
	}
	if os.Getenv(asAgent) != "" {
		os.Exit(simagent.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
	}
	if os.Getenv(asMCP) != "" {
		serveMCP(os.Stdin, os.Stdout)
		return
	}
	os.Exit(m.Run())
}

// judge does the same as errand-runner's hook for a command.
func judge(path string, refuseOnly bool) int {
	var rules shellrules.Rules
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &rules)
	}
	if err == nil {
		err = rules.Hook(os.Stdin, os.Stdout, refuseOnly)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// newAdapter returns an adapter or ends the test.
func newAdapter(t testing.TB, cfg agent.Config) agent.Adapter {
	t.Helper()
	set, err := agent.NewSet(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return set.Of(cfg.Adapter)
}

// simHarness runs the claude adapter with the simulated agent and the simulated model.
func simHarness(t *testing.T) agenttest.Harness {
	t.Helper()
	return agenttest.Harness{
		Adapter: newAdapter(t, agent.Config{
			Command: []string{os.Args[0]},
			Env:     map[string]string{asAgent: "1", "ERRAND_RUNNER": os.Args[0], "CLAUDE_CODE_MAX_RETRIES": "2", "SIMAGENT_RETRY_SCALE": "0.001"},
		}),
		Model: startModel,
	}
}

func TestClaudeOnStandIns(t *testing.T) {
	t.Parallel()
	agenttest.Run(t, simHarness(t))
}

// TestHeavyClaudeForReal runs the suite with the real command line and the simulated model.
func TestHeavyClaudeForReal(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	if _, err := exec.LookPath("claude"); err != nil {
		t.Skip("no claude in PATH: the suite runs on the stand-in only")
	}
	agenttest.Run(t, agenttest.Harness{
		Adapter: newAdapter(t, agent.Config{Env: map[string]string{"CLAUDE_CODE_MAX_RETRIES": "0", "ERRAND_RUNNER": os.Args[0]}}),
		Model:   startModel,
	})
}

// startModel turns a scenario into a script and serves it.
func startModel(t *testing.T, s agenttest.Scenario) agenttest.Model {
	t.Helper()
	const key = "run-token"
	srv, err := simmodel.New(simmodel.Config{Script: script(s), Key: key})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(srv)
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	return agenttest.Model{
		URL: web.URL, Token: key,
		Usage: func() runlog.Usage {
			u := srv.Totals().Usage
			return runlog.Usage{Input: int64(u.Input), Output: int64(u.Output), CacheRead: int64(u.CacheRead), CacheWrite: int64(u.CacheWrite)}
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

func script(s agenttest.Scenario) simmodel.Script {
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

// TestRetriesAreTold shows a run that waits for the model, and goes on when it answers.
func TestRetriesAreTold(t *testing.T) {
	t.Parallel()
	h := simHarness(t)
	h.Model = func(t *testing.T, _ agenttest.Scenario) agenttest.Model {
		t.Helper()
		return startScript(t, simmodel.Script{Rules: []simmodel.Rule{{Turns: []simmodel.Turn{{Text: "at last", Status: 529, Times: 2}}}}})
	}
	r := agenttest.Do(t, h, agenttest.NewBox(t).Spec(h.Model(t, nil), "Work."))
	if r.Result.Status != agent.StatusOK || r.Result.Text != "at last" {
		t.Fatalf("result %+v", r.Result)
	}
	var got []string
	for _, e := range r.Events {
		if e.Kind == runlog.KindRetry {
			got = append(got, e.Text+" "+e.Delay.String())
		}
	}
	if want := "overloaded 500µs, overloaded 1ms"; strings.Join(got, ", ") != want {
		t.Errorf("retries %q, want %q", strings.Join(got, ", "), want)
	}
}

// startScript serves a script without an API key.
func startScript(t *testing.T, s simmodel.Script) agenttest.Model {
	t.Helper()
	srv, err := simmodel.New(simmodel.Config{Script: s})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(srv)
	t.Cleanup(web.Close)
	return agenttest.Model{URL: web.URL, Token: "any"}
}

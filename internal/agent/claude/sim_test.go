package claude_test

import (
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/agent/claude"
	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/sim/simagent"
	"github.com/errand-bot/errand/internal/sim/simmodel"
)

// asAgent in the environment makes the test binary act as the simulated agent.
const asAgent = "ERRAND_TEST_SIMAGENT"

func TestMain(m *testing.M) {
	agenttest.ServeHook()
	if os.Getenv(asAgent) != "" {
		os.Exit(simagent.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
	}
	os.Exit(m.Run())
}

// simHarness runs the claude adapter with the simulated agent and the simulated model.
func simHarness(t *testing.T) agenttest.Harness {
	t.Helper()
	return agenttest.Harness{
		Cost: true,
		Adapter: claude.New(agent.Program{
			Command: []string{os.Args[0]},
			Env:     map[string]string{asAgent: "1", "ERRAND_RUNNER": os.Args[0], "CLAUDE_CODE_MAX_RETRIES": "2", "SIMAGENT_RETRY_SCALE": "0.001"},
		}),
		Model: agenttest.StartModel(claude.DefaultModel),
	}
}

func TestSimulated(t *testing.T) {
	t.Parallel()
	agenttest.Run(t, simHarness(t))
}

// TestHeavyReal runs the suite with the real command line and the simulated model.
func TestHeavyReal(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	if _, err := exec.LookPath("claude"); err != nil {
		t.Skip("no claude in PATH: the suite runs on the simulated agent only")
	}
	agenttest.Run(t, agenttest.Harness{
		Cost:    true,
		Adapter: claude.New(agent.Program{Command: []string{"claude"}, Env: map[string]string{"CLAUDE_CODE_MAX_RETRIES": "0", "ERRAND_RUNNER": os.Args[0]}}),
		Model:   agenttest.StartModel(claude.DefaultModel),
	})
}

// TestRetriesAreReported: each retry of a model call is an event with its reason and delay.
func TestRetriesAreReported(t *testing.T) {
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
	return agenttest.Model{Name: claude.DefaultModel, URL: web.URL, Token: "any"}
}

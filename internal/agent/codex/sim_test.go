package codex_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/agent/codex"
	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/internal/sim/simcodex"
)

// asCodex in the environment makes the test binary act as the simulated agent.
const asCodex = "ERRAND_TEST_SIMCODEX"

func TestMain(m *testing.M) {
	agenttest.ServeHook()
	if os.Getenv(asCodex) != "" {
		os.Exit(simcodex.Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
	}
	if os.Getenv(asMCP) != "" {
		serveMCP(os.Stdin, os.Stdout)
		return
	}
	os.Exit(m.Run())
}

// findProgram returns the real program: the one installed by `make clis`, else the one in PATH.
func findProgram(t *testing.T) string {
	t.Helper()
	program, err := filepath.Abs(filepath.Join("..", "..", "..", ".cache", "clis", "bin", "codex"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err == nil {
		return program
	}
	program, err = exec.LookPath("codex")
	if err != nil {
		t.Skip("codex is neither in .cache/clis (make clis) nor in PATH: its adapter is tested on recordings only")
	}
	return program
}

// realCommand is the program with fewer retries than it would make by itself, which take 24 seconds.
func realCommand(t *testing.T) []string {
	t.Helper()
	const provider = "model_providers.errand."
	return []string{findProgram(t), "-c", provider + "request_max_retries=0", "-c", provider + "stream_max_retries=1"}
}

// realHarness runs the adapter with the real program and the simulated model.
func realHarness(t *testing.T) agenttest.Harness {
	t.Helper()
	return agenttest.Harness{
		OwnSessionID: true,
		Adapter:      codex.New(agent.Program{Command: realCommand(t), Env: map[string]string{"ERRAND_RUNNER": os.Args[0]}}),
		Model:        agenttest.StartModel(codex.DefaultModel),
		Words:        true,
	}
}

// TestHeavyReal runs the suite with the real command line and the simulated model.
func TestHeavyReal(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	agenttest.Run(t, realHarness(t))
}

// TestSimulated runs the suite with the simulated agent, which must pass the same tests as the real one.
func TestSimulated(t *testing.T) {
	t.Parallel()
	const provider = "model_providers.errand."
	agenttest.Run(t, agenttest.Harness{
		OwnSessionID: true,
		Adapter: codex.New(agent.Program{
			Command: []string{os.Args[0], "-c", provider + "stream_max_retries=1"},
			Env:     map[string]string{asCodex: "1", "ERRAND_RUNNER": os.Args[0], "SIMAGENT_RETRY_SCALE": "0.001"},
		}),
		Model: agenttest.StartModel(codex.DefaultModel),
		Words: true, NoEditor: true,
	})
}

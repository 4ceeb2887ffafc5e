package agent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/heavytest"
)

// findCodex returns the real program: the one installed by `make clis`, else the one in PATH. The program is preferred
// to npm's wrapper, because a kill of the wrapper leaves its child running.
func findCodex(t *testing.T) string {
	t.Helper()
	modules := filepath.Join("..", "..", ".cache", "clis", "node_modules")
	for _, pattern := range []string{filepath.Join("@openai", "codex-*", "vendor", "*", "bin", "codex"), filepath.Join(".bin", "codex")} {
		found, err := filepath.Glob(filepath.Join(modules, pattern))
		if err != nil || len(found) == 0 {
			continue
		}
		program, err := filepath.Abs(found[0])
		if err != nil {
			t.Fatal(err)
		}
		return program
	}
	program, err := exec.LookPath("codex")
	if err != nil {
		t.Skip("codex is neither in .cache/clis (make clis) nor in PATH: its adapter is tested on recordings only")
	}
	return program
}

// codexCommand is the program with fewer retries than it would make by itself, which take 24 seconds.
func codexCommand(t *testing.T) []string {
	t.Helper()
	const provider = "model_providers.errand."
	return []string{findCodex(t), "-c", provider + "request_max_retries=0", "-c", provider + "stream_max_retries=1"}
}

// codexHarness runs the adapter with the real program and the simulated model.
func codexHarness(t *testing.T) agenttest.Harness {
	t.Helper()
	return agenttest.Harness{
		Adapter: newAdapter(t, agent.Config{Adapter: agent.NameCodex, Command: codexCommand(t), Env: map[string]string{"ERRAND_RUNNER": os.Args[0]}}),
		Model:   startModel,
		Words:   true,
	}
}

// TestHeavyCodexForReal runs the suite with the real command line and the simulated model.
func TestHeavyCodexForReal(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	agenttest.Run(t, codexHarness(t))
}

// TestCodexSimulated runs the suite with the simulated agent, which must pass the same tests as the real one.
func TestCodexSimulated(t *testing.T) {
	t.Parallel()
	const provider = "model_providers.errand."
	agenttest.Run(t, agenttest.Harness{
		Adapter: newAdapter(t, agent.Config{
			Adapter: agent.NameCodex, Command: []string{os.Args[0], "-c", provider + "stream_max_retries=1"},
			Env: map[string]string{asCodex: "1", "ERRAND_RUNNER": os.Args[0], "SIMAGENT_RETRY_SCALE": "0.001"},
		}),
		Model: startModel,
		Words: true, NoEditor: true,
	})
}

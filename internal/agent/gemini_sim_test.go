package agent_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
	"github.com/errand-bot/errand/internal/runlog"
)

// findGemini returns the real program: what is in .cache/clis, else the one in PATH.
func findGemini(t *testing.T) string {
	t.Helper()
	if os.Getenv("ERRAND_TEST_FULL") == "" {
		t.Skip("ERRAND_TEST_FULL is not set")
	}
	program, err := filepath.Abs(filepath.Join("..", "..", ".cache", "clis", "node_modules", ".bin", "gemini"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err == nil {
		return program
	}
	program, err = exec.LookPath("gemini")
	if err != nil {
		t.Skip("gemini is neither in .cache/clis nor in PATH: its adapter is tested on recordings only")
	}
	return program
}

// geminiHarness runs the adapter with the real program, which asks once only, and the stand-in model.
func geminiHarness(t *testing.T) agenttest.Harness {
	t.Helper()
	return agenttest.Harness{
		Adapter: newAdapter(t, agent.Config{
			Adapter: agent.NameGemini, Command: []string{findGemini(t)}, Env: map[string]string{"ERRAND_GEMINI_ATTEMPTS": "1"},
		}),
		NoExitCodes: true, Pieces: true,
		Model: func(t *testing.T, s agenttest.Scenario) agenttest.Model {
			t.Helper()
			m := startModel(t, s)
			usage := m.Usage
			m.Usage = func() runlog.Usage { // the API has no word for what a cache was given
				u := usage()
				u.Input, u.CacheWrite = u.Input+u.CacheWrite, 0
				return u
			}
			return m
		},
	}
}

// TestGeminiForReal runs the suite with the real command line on the stand-in model.
func TestGeminiForReal(t *testing.T) {
	t.Parallel()
	agenttest.Run(t, geminiHarness(t))
}

package realcli

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/fleet/local"
)

// geminiProgram finds Gemini CLI where it is installed. `make clis` leaves it out: it needs Node.js, and its
// packages are many.
func geminiProgram(t *testing.T) (string, real) {
	t.Helper()
	if os.Getenv(full) == "" {
		t.Skipf("the real gemini is driven only with %s=1", full)
	}
	path, err := exec.LookPath("gemini")
	if err != nil {
		t.Skip("gemini is not in PATH: no life is played with it")
	}
	path, err = filepath.EvalSymlinks(path)
	check(t, err)
	if common.Err != nil {
		t.Fatal(common.Err)
	}
	return path, real{adapter: "gemini", model: "gemini-2.5-pro", userAgent: "GeminiCLI", key: "X-Goog-Api-Key: " + demo.ModelKey}
}

// TestLifeWithGemini plays the same life with Gemini CLI.
func TestLifeWithGemini(t *testing.T) {
	t.Parallel()
	path, p := geminiProgram(t)
	l := live(t, path, "life.yaml", func(c *demo.Config) {
		c.Adapter, c.Model, c.Kind, c.Provider = p.adapter, p.model, local.KindBwrap, demo.ProviderHetzner
	})
	res := l.play()
	task := l.task(res.Issue)
	t.Run("no network", func(t *testing.T) { l.wantNoNetwork(t) })
	t.Run("through the gateway", func(t *testing.T) { l.wantGateway(t, p) })
	t.Run("money", func(t *testing.T) { l.wantMoney(t, task, p) })
	t.Run("one session", func(t *testing.T) { wantOneSession(t, task) })
	t.Run("comments", func(t *testing.T) { l.wantComments(t, res) })
	t.Run("code", func(t *testing.T) { l.wantCode(t, res) })
	t.Logf("PROOF: real programs: %s: a whole life, with %d runs and %d requests to the model", p.adapter, len(task.Runs), len(l.Model.Requests()))
}

// TestToolsWithGemini has Gemini CLI call errand's tools.
func TestToolsWithGemini(t *testing.T) {
	t.Parallel()
	path, p := geminiProgram(t)
	useTools(t, path, p)
}

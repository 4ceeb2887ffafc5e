package realcli

import (
	"testing"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/fleet/local"
	"github.com/errand-bot/errand/internal/heavytest"
)

// geminiProgram returns the path of Gemini CLI.
func geminiProgram(t *testing.T) (string, real) {
	t.Helper()
	return program(t, "gemini"), real{adapter: "gemini", model: "gemini-2.5-pro", userAgent: "GeminiCLI", key: "X-Goog-Api-Key: " + demo.ModelKey}
}

// TestHeavyLifeWithGemini plays the same life with Gemini CLI.
func TestHeavyLifeWithGemini(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	path, p := geminiProgram(t)
	l := startLife(t, path, "life.yaml", func(c *demo.Config) {
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
	t.Logf("PROOF: real programs: %s: a complete life with %d runs and %d requests to the model", p.adapter, len(task.Runs), len(l.Model.Requests()))
}

// TestHeavyToolsWithGemini lets Gemini CLI call errand's tools.
func TestHeavyToolsWithGemini(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	path, p := geminiProgram(t)
	useTools(t, path, p)
}

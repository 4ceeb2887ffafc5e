package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/agent"
)

// TestEveryEndIsInTheDocs: the docs list each status with its correct class.
func TestEveryEndIsInTheDocs(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile(filepath.Join("..", "..", "docs", "monitoring.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range agent.Statuses() {
		if row := fmt.Sprintf("\n| `%s` | %s | ", s, s.Class()); s != agent.StatusOK && !strings.Contains(string(docs), row) {
			t.Errorf("docs/monitoring.md has no row that begins with %q", row)
		}
	}
}

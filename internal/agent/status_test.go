package agent_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/agent"
	"github.com/errand-bot/errand/internal/agent/agenttest"
)

func TestClass(t *testing.T) {
	t.Parallel()
	want := map[agent.Status]agent.Class{
		"ok": "success", "max_turns": "fatal", "budget": "fatal", "rate_limited": "retryable", "overloaded": "retryable", "network": "retryable",
		"auth": "fatal", "billing": "fatal", "context_overflow": "retryable", "answer_cut": "fatal", "looped": "fatal", "refused": "fatal",
		"no_session": "retryable", "no_structured_output": "fatal", "no_op": "fatal", "interrupted": "retryable",
		"hook_stopped": "fatal", "duration": "fatal", "stalled": "retryable", "lost": "retryable",
		"setup_failed": "fatal", "start_failed": "fatal", "invalid": "fatal", "crashed": "retryable",
	}
	got := map[agent.Status]agent.Class{}
	for _, s := range agenttest.Statuses() {
		got[s] = s.Class()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("classes (-want +got):\n%s", diff)
	}
	if c := agent.Status("from the future").Class(); c != agent.ClassFatal {
		t.Errorf("an unknown status is %q", c)
	}
}

// TestStatusesAreInTheDocs: the docs list each status with its correct class.
func TestStatusesAreInTheDocs(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile(filepath.Join("..", "..", "docs", "monitoring.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range agenttest.Statuses() {
		if row := fmt.Sprintf("\n| `%s` | %s | ", s, s.Class()); s != agent.StatusOK && !strings.Contains(string(docs), row) {
			t.Errorf("docs/monitoring.md has no row that begins with %q", row)
		}
	}
}

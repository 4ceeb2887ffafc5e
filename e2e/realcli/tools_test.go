package realcli

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/heavytest"
	"github.com/errand-bot/errand/state"
)

// TestHeavyTools lets real programs call errand's tools: they start its MCP server in their sandbox without network,
// the calls take effect, and the results return to the model.
func TestHeavyTools(t *testing.T) {
	t.Parallel()
	heavytest.Mark(t)
	for name, p := range programs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			useTools(t, program(t, name), p)
		})
	}
}

// useTools lets an agent program store a note and a proposal with errand's tools, ask a question, and continue with the
// answer.
func useTools(t *testing.T, path string, p real) {
	t.Helper()
	l := startLife(t, path, "tools.yaml", func(c *demo.Config) { c.Adapter, c.Model = p.adapter, p.model })
	issue := l.assign("Paint it", "In some color.")
	asked := l.until(issue, "the question", func(t *state.Task) bool { return t.Question != nil && t.Question.Comment != 0 })
	if len(asked.Notes) != 1 || asked.Notes[0].Text != "Make is in slug.go" || len(asked.Proposed) != 1 || asked.Proposed[0].Title != "No benchmark" {
		t.Errorf("notes %+v, proposals %+v", asked.Notes, asked.Proposed)
	}
	if said := l.botComments(issue); !strings.Contains(said, "Which color?") || !strings.Contains(said, "- the blue one") {
		t.Errorf("got comments:\n%s", said)
	}
	heard := ""
	for _, r := range l.Model.Requests() {
		if r.Rule == "asks" && r.Turn == 3 {
			heard = string(r.Body)
		}
	}
	if !strings.Contains(heard, "Stored as proposal 1") || !strings.Contains(heard, "Make is in slug.go") {
		t.Errorf("the agent did not receive the results of its tools:\n%.6000s", heard)
	}
	_, err := l.GitHub.As(demo.Maintainer).Comment(demo.Full, issue, "I want the red one.")
	check(t, err)
	planned := l.until(issue, "the plan", func(t *state.Task) bool { return t.NewestPlan() != nil && t.NewestPlan().Posted() })
	if p := planned.NewestPlan(); p.Summary != "Red." || p.Estimate != "small" || !strings.Contains(p.Text, "It shall be red.") {
		t.Errorf("got plan %+v", p)
	}
	if r := planned.Runs; len(r) != 2 || r[0].Session == "" || r[0].Session != r[1].Session {
		t.Errorf("got runs %+v", r)
	}
}

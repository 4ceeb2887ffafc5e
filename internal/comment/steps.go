package comment

import (
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

// stepTotals returns a table with the cost and time of each step. It is empty if there was only one run.
func stepTotals(t *state.Task) string {
	s := t.Summary()
	if s.Iterations < 2 {
		return ""
	}
	var b strings.Builder
	b.WriteString("| Step | Runs | Agent time | Tokens | Cost |\n|---|---|---|---|---|\n")
	for _, step := range s.Steps {
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s |\n", markdown.Cell(words.Run(step.Step)), step.Runs,
			words.Span(step.Took), words.Count(step.Money.Tokens()), words.Spent(step.Money))
	}
	return markdown.Fold("By step", strings.TrimRight(b.String(), "\n"))
}

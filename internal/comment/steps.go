package comment

import (
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

// stepTotals returns a table with the time and the cost of each step. It is empty if there was only one run.
func stepTotals(t *state.Task) string {
	s := t.Summary()
	if s.Iterations < 2 {
		return ""
	}
	var b strings.Builder
	shown := showsMoney(t)
	b.WriteString("| Step | Runs | Agent time |")
	if shown {
		b.WriteString(" Tokens | Cost |\n|---|---|---|---|---|\n")
	} else {
		b.WriteString("\n|---|---|---|\n")
	}
	for _, step := range s.Steps {
		fmt.Fprintf(&b, "| %s | %d | %s |", markdown.Cell(words.Run(step.Step)), step.Runs, words.Span(step.Took))
		if shown {
			fmt.Fprintf(&b, " %s | %s |", words.Count(step.Money.Tokens()), words.Spent(step.Money))
		}
		b.WriteString("\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

package comment

import (
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

// stepTotals is what each step of the task took; empty if there was but one run.
func stepTotals(t *state.Task) string {
	s := t.Summary()
	if s.Iterations < 2 {
		return ""
	}
	var b strings.Builder
	b.WriteString("| Step | Runs | Agent time | Tokens | Cost |\n|---|---|---|---|---|\n")
	for _, step := range s.Steps {
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s |\n", markdown.Cell(words.Run(step.Step)), step.Runs, words.Span(step.Took), short(step.Money.Tokens()), words.Spent(step.Money))
	}
	return markdown.Fold("By step", strings.TrimRight(b.String(), "\n"))
}

package comment

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/state"
)

// TestStatusNamesAMissingStatement: the status comment says why the statement of provenance is missing, without Markdown of the reason, until it is posted.
func TestStatusNamesAMissingStatement(t *testing.T) {
	t.Parallel()
	const words = "- **Provenance:** the signed statement is missing or out of date."
	task := with(func(t *state.Task) { prOpen(t); t.PR.Unstated = "GitHub refuses it: `@all` <!-- see \n below." })
	if got := Status(task, view("status")); !strings.Contains(got, words+" GitHub refuses it: `@all` &lt;!-- see below.\n") || unfoldedLines(got) > 15 {
		t.Errorf("got:\n%s", got)
	}
	task.PR.Unstated = ""
	if got := Status(task, view("status")); strings.Contains(got, words) {
		t.Errorf("after it was posted: got:\n%s", got)
	}
}

package launch

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/attachment"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/state"
)

// TestAttachedToIssue: the files that the agent gets with the issue's text are named, without those in hidden content, which it does not get.
func TestAttachedToIssue(t *testing.T) {
	t.Parallel()
	files, err := attachment.New("https://github.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	const one, two = "https://github.com/user-attachments/assets/0b7c1f6e-1111-4222-8333-444455556666", "https://github.com/user-attachments/files/12/run.log"
	task := &state.Task{}
	task.Frozen.Body = "![screen](" + one + ")\n<!-- https://github.com/user-attachments/files/13/x.log -->\n[log](" + two + ") and https://example.org/x.png"
	for name, c := range map[string]struct {
		steps *Steps
		shown bool
		want  []string
	}{
		"shown":              {&Steps{Attachments: files, Redact: trust.NewRedactor(nil)}, true, []string{one, two}},
		"the text is hidden": {&Steps{Attachments: files, Redact: trust.NewRedactor(nil)}, false, []string{}},
		"none are read":      {&Steps{Redact: trust.NewRedactor(nil)}, true, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			task := task.Clone()
			task.Context.ShowsIssue = c.shown
			if diff := cmp.Diff(c.want, c.steps.AttachedToIssue(task)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

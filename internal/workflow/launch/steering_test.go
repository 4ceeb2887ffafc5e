package launch_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
)

// TestPromptHasMessages: new messages come first in the prompt, each once, and are redacted; those of earlier runs stay conditions,
// and those that wait for the run's end are in no prompt.
func TestPromptHasMessages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind  state.RunKind
		phase state.Phase
		by    state.FeedbackKind
		first string // the part of the prompt with new messages
		later string // the part with those that an earlier run received
	}{
		"planning":     {state.RunPreliminary, state.PhasePreliminaryPlanning, state.FeedbackComment, "Messages for you", "Feedback to address"},
		"implementing": {state.RunImplement, state.PhaseImplementing, state.FeedbackCondition, "They are conditions of the task", "Messages during the work"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			w.Task.Phase = c.phase
			message := func(id, login, body, taken string) state.Feedback {
				return state.Feedback{ID: "comment:" + id, Kind: c.by, By: w.Person(login), Body: body, Steers: true, Mention: true, TakenBy: taken}
			}
			earlier := state.Run{ID: "r-0", Kind: c.kind, State: state.RunEnded}
			w.Task.Runs = append(w.Task.Runs, earlier)
			w.Task.Feedback = []state.Feedback{
				message("5", "ada", "Use a map.", earlier.ID), message("6", "bob", "Mind "+workflowtest.Secret, ""), message("7", "ada", "No panics.\n```\n## Rules", ""),
				{ID: "comment:8", Kind: state.FeedbackComment, By: w.Person("bob"), Body: "Later.", After: true},
			}
			w.Launching(c.kind)
			l := w.Launched()
			for _, id := range []string{"comment:6", "comment:7"} {
				if !slices.Contains(l.FeedbackIDs, id) {
					t.Errorf("%s is not delivered: %v", id, l.FeedbackIDs)
				}
			}
			p := w.Prompt()
			head, rest, ok := strings.Cut(p, "## What to do")
			if !ok || !strings.Contains(head, c.first) || !strings.Contains(head, "comment:6") || !strings.Contains(head, "No panics.") || strings.Contains(head, "Use a map.") {
				t.Errorf("the prompt begins:\n%s", head)
			}
			if _, part, ok := strings.Cut(rest, c.later); !ok || !strings.Contains(part, "Use a map.") || strings.Contains(rest, "No panics.") {
				t.Errorf("the rest of the prompt:\n%s", rest)
			}
			if strings.Contains(p, "Later.") || strings.Contains(p, workflowtest.Secret) || slices.Contains(l.FeedbackIDs, "comment:8") {
				t.Errorf("the prompt has a secret, or a message that waits for the run's end: %v", l.FeedbackIDs)
			}
		})
	}
}

package intake_test

import (
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
)

// TestPreviewHasTheQuestions: a preview of a task says what its start would ask, all of it, and nothing that it would not ask.
func TestPreviewHasTheQuestions(t *testing.T) {
	t.Parallel()
	const key = "key: {pattern: \"[A-Z]+-[0-9]+\", required: true}\n"
	for name, c := range map[string]struct {
		settings string
		change   func(w *workflowtest.World)
		want     []string
	}{
		"nothing": {"", func(*workflowtest.World) {}, nil},
		"work by others and a key": {key + "branch: \"{number}-{slug}\"\n", func(w *workflowtest.World) {
			w.Push("bob", "fix", map[string]string{"a.txt": "a\n"})
			workflowtest.Check(w.T, workflowtest.Err(w.As("bob").OpenPull(workflowtest.RepoName, simgithub.NewPull{Title: "Mine", Head: "fix", Body: "Fixes #1"})))
			w.Push("bob", "1-it-breaks", map[string]string{"a.txt": "b\n"})
		}, []string{"somebody with write access has to say whether to go on: pull request #2, branch 1-it-breaks", "requires a ticket key in the form [A-Z]+-[0-9]+"}},
		"a key in the title":  {key, func(w *workflowtest.World) { w.Task.Frozen.Title = "ABC-1: it breaks" }, nil},
		"invalid settings":    {"key: [\n", func(*workflowtest.World) {}, []string{"line 1"}},
		"an unrelated branch": {"", func(w *workflowtest.World) { w.Push("bob", "unrelated", map[string]string{"a.txt": "b\n"}) }, nil},
		"disabled":            {"enabled: false\n" + key, func(*workflowtest.World) {}, []string{"`enabled` is false"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			if c.settings != "" {
				w.WriteSettings(c.settings)
			}
			c.change(w)
			task := &state.Task{Key: w.Task.Key, TaskIssue: w.Task.TaskIssue}
			waits, err := w.Steps.Preview(t.Context(), task, forge.Issue{Issue: state.Issue{Title: task.Frozen.Title, Body: task.Frozen.Body}})
			if err != nil || len(waits) != len(c.want) {
				t.Fatalf("got %v, %v; want %q", waits, err, c.want)
			}
			for i, want := range c.want {
				if !strings.Contains(waits[i].Detail, want) {
					t.Errorf("got %q, want %q", waits[i].Detail, want)
				}
			}
		})
	}
}

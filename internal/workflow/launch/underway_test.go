package launch_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// A launch whose answer was lost is repeated while the agent works: its checkout must not be touched, and later
// comments are not part of its prompt.
func TestLaunchAgainWhileAgentWorks(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.Task.Run = &state.Run{ID: "run-1", Kind: state.RunImplement, State: state.RunLaunching, Seq: 1}
	first, err := w.Try(state.JobLaunch)
	workflowtest.Check(t, err)
	if first.Kind() != event.KindLaunched || len(w.Host.Started) != 1 || w.Launch == nil {
		t.Fatalf("first launch: got %+v, %d started runs, marked %+v", first, len(w.Host.Started), w.Launch)
	}
	done := w.Host.Commit(t, "What the agent did", map[string]string{"slug.go": "package slug // better\n"})
	if _, err := w.Ada.PushCommit(workflowtest.RepoName, simgithub.Commit{Branch: "main", Message: "Newer base", Files: map[string]string{"other.txt": "x\n"}}); err != nil {
		t.Fatal(err)
	}
	w.Task.Feedback = append(w.Task.Feedback, state.Feedback{ID: "comment:9", Kind: "comment", By: w.Person("ada"), Body: "One more thing."})
	again, err := w.Try(state.JobLaunch, func(j *state.Job) { j.Attempted, j.Launch = true, w.Launch })
	workflowtest.Check(t, err)
	if diff := cmp.Diff(event.Of[event.Launched](first).Launch, event.Of[event.Launched](again).Launch); diff != "" {
		t.Errorf("prompt of the repeated launch (-first +again):\n%s", diff)
	}
	if head := w.Host.Git(t, "rev-parse", "HEAD"); head != done {
		t.Errorf("got checkout at %s, want the agent's commit", head)
	}
	if len(w.Host.Started) != 1 {
		t.Errorf("got %d started runs", len(w.Host.Started))
	}
}

// A launch that was marked but not made starts again, with current data.
func TestLaunchAgainWithoutStart(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.Task.Run = &state.Run{ID: "run-1", Kind: state.RunImplement, State: state.RunLaunching, Seq: 1}
	_, err := w.Try(state.JobLaunch, func(j *state.Job) {
		j.Attempted, j.Launch = true, &state.Launch{Run: "run-1", VM: w.Host.VM, BaseSHA: "0000"}
	})
	workflowtest.Check(t, err)
	if len(w.Host.Started) != 1 || w.Launch.BaseSHA != w.Head("main") {
		t.Errorf("got %d started runs from %s", len(w.Host.Started), w.Launch.BaseSHA)
	}
}

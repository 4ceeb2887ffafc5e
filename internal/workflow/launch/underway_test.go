package launch_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// A launch whose answer was lost is repeated while the agent works: its checkout must not be touched,
// and what was said since is not what it was told.
func TestLaunchAgainWhileAgentWorks(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.Task.Run = &state.Run{ID: "run-1", Kind: state.RunImplement, State: state.RunLaunching, Seq: 1}
	first, err := w.Try(state.JobLaunch)
	workflowtest.Check(t, err)
	if first.Kind() != event.KindLaunched || len(w.Host.Started) != 1 || w.Launch == nil {
		t.Fatalf("the first launch came to %+v, started %d runs and marked %+v", first, len(w.Host.Started), w.Launch)
	}
	done := w.Host.Commit(t, "What the agent did", map[string]string{"slug.go": "package slug // better\n"})
	if _, err := w.Ada.PushCommit(workflowtest.RepoName, simgithub.Commit{Branch: "main", Message: "Newer base", Files: map[string]string{"other.txt": "x\n"}}); err != nil {
		t.Fatal(err)
	}
	w.Task.Feedback = append(w.Task.Feedback, state.Feedback{ID: "comment:9", Kind: "comment", By: w.Person("ada"), Body: "One more thing."})
	again, err := w.Try(state.JobLaunch, func(j *state.Job) { j.Attempted, j.Launch = true, w.Launch })
	workflowtest.Check(t, err)
	if diff := cmp.Diff(event.Of[event.Launched](first).Launch, event.Of[event.Launched](again).Launch); diff != "" {
		t.Errorf("the run goes on with something else than it was started with (-first +again):\n%s", diff)
	}
	if head := w.Host.Git(t, "rev-parse", "HEAD"); head != done {
		t.Errorf("the checkout was put on %s, away from the agent's commit", head)
	}
	if len(w.Host.Started) != 1 {
		t.Errorf("%d runs were started", len(w.Host.Started))
	}
}

// A launch that was marked and then not made starts anew, with what there is now.
func TestLaunchAgainWithoutStart(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.Task.Run = &state.Run{ID: "run-1", Kind: state.RunImplement, State: state.RunLaunching, Seq: 1}
	_, err := w.Try(state.JobLaunch, func(j *state.Job) {
		j.Attempted, j.Launch = true, &state.Launch{Run: "run-1", VM: w.Host.VM, BaseSHA: "0000"}
	})
	workflowtest.Check(t, err)
	if len(w.Host.Started) != 1 || w.Launch.BaseSHA != w.Head("main") {
		t.Errorf("started %d runs from %s", len(w.Host.Started), w.Launch.BaseSHA)
	}
}

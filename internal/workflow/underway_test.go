package workflow_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
)

// A launch whose answer was lost is repeated while the agent works: its checkout must not be touched,
// and what was said since is not what it was told.
func TestLaunchAgainWhileAgentWorks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.task.Run = &state.Run{ID: "run-1", Kind: state.RunImplement, State: state.RunLaunching, Seq: 1}
	first, err := w.try(state.JobLaunch)
	check(t, err)
	if first.Launch == nil || len(w.host.started) != 1 || w.launch == nil {
		t.Fatalf("the first launch came to %+v, started %d runs and marked %+v", first, len(w.host.started), w.launch)
	}
	done := w.host.commit(t, "What the agent did", map[string]string{"slug.go": "package slug // better\n"})
	if _, err := w.ada.PushCommit(full, simgithub.Commit{Branch: "main", Message: "Newer base", Files: map[string]string{"other.txt": "x\n"}}); err != nil {
		t.Fatal(err)
	}
	w.task.Feedback = append(w.task.Feedback, state.Feedback{ID: "comment:9", Kind: "comment", By: w.person("ada"), Body: "One more thing."})
	again, err := w.try(state.JobLaunch, func(j *state.Job) { j.Attempted, j.Launch = true, w.launch })
	check(t, err)
	if diff := cmp.Diff(first.Launch, again.Launch); diff != "" {
		t.Errorf("the run goes on with something else than it was started with (-first +again):\n%s", diff)
	}
	if head := w.host.git(t, "rev-parse", "HEAD"); head != done {
		t.Errorf("the checkout was put on %s, away from the agent's commit", head)
	}
	if len(w.host.started) != 1 {
		t.Errorf("%d runs were started", len(w.host.started))
	}
}

// A launch that was marked and then not made starts anew, with what there is now.
func TestLaunchAgainWithoutStart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.task.Run = &state.Run{ID: "run-1", Kind: state.RunImplement, State: state.RunLaunching, Seq: 1}
	_, err := w.try(state.JobLaunch, func(j *state.Job) {
		j.Attempted, j.Launch = true, &state.Launch{Run: "run-1", VM: w.host.vm, BaseSHA: "0000"}
	})
	check(t, err)
	if len(w.host.started) != 1 || w.launch.BaseSHA != w.head("main") {
		t.Errorf("started %d runs from %s", len(w.host.started), w.launch.BaseSHA)
	}
}

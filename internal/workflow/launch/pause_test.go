package launch_test

import (
	"context"
	"errors"
	"testing"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// TestLaunchWaitsForThePause: while the operator has paused the repository, no kind of run is started, no VM is requested, and GitHub
// is not asked. A run that an earlier attempt started goes on.
func TestLaunchWaitsForThePause(t *testing.T) {
	t.Parallel()
	for _, kind := range []state.RunKind{state.RunPreliminary, state.RunPlan, state.RunImplement, state.RunReview, state.RunCheck} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			var paused *state.Waiting
			var failed error
			w := workflowtest.New(t, func(cfg *workflow.Config) {
				cfg.Paused = func(_ context.Context, repo int64) (*state.Waiting, error) {
					if repo != 1 {
						return nil, nil
					}
					return paused, failed
				}
			})
			w.Task.Key.Repo = 1
			w.Launching(kind)
			w.Host.Errs["Acquire"] = errors.New("a VM is requested")
			for _, method := range []string{"GET", "POST"} {
				w.MustFault(simgithub.Fault{Method: method, Path: ".", Status: 404, Count: 100})
			}
			paused = state.Pause{Repo: 1}.Waiting()
			e := w.Do(state.JobLaunch)
			if e.Kind() != event.KindStepBlocked || e.Waiting().Kind != state.WaitPaused || len(w.Host.Started) > 0 {
				t.Errorf("got event %s, waiting %+v, started %v", e.Kind(), e.Waiting(), w.Host.Started)
			}
			paused, failed = nil, errors.New("disk")
			if e, err := w.Try(state.JobLaunch); !errors.Is(err, failed) {
				t.Errorf("with an unreadable store: got %+v, %v", e, err)
			}
		})
	}
}

func TestStartedRunIgnoresThePause(t *testing.T) {
	t.Parallel()
	var paused *state.Waiting
	w := workflowtest.New(t, func(cfg *workflow.Config) {
		cfg.Paused = func(context.Context, int64) (*state.Waiting, error) { return paused, nil }
	})
	w.Launching(state.RunPreliminary)
	l := w.Launched()
	paused = state.Pause{}.Waiting()
	again := w.Do(state.JobLaunch, func(j *state.Job) { j.Launch = l })
	if again.Kind() != event.KindLaunched || len(w.Host.Started) != 1 {
		t.Errorf("got event %s, started %v", again.Kind(), w.Host.Started)
	}
}

package step_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
)

func TestErrorsBecomeProblems(t *testing.T) {
	t.Parallel()
	retry := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		err   error
		class state.FailureClass
		perm  bool
	}{
		"refused by the step": {fmt.Errorf("launch: %w", &step.Problem{Reason: "No.", Hint: "Do.", Class: state.ClassVM, Permanent: true, Retry: retry}), "vm", true},
		"out of time":         {fmt.Errorf("launch: %w", context.DeadlineExceeded), "timeout", false},
		"anything else":       {errors.New("disk full"), "internal", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := workflowtest.WantProblem(t, c.err, c.class, c.perm)
			if c.perm && !p.Retry.Equal(retry) {
				t.Errorf("got retry at %v", p.Retry)
			}
		})
	}
	p := &step.Problem{Reason: "No.", Err: context.Canceled}
	if p.Error() != "No.: context canceled" || !errors.Is(p, context.Canceled) || (&step.Problem{Reason: "No."}).Error() != "No." {
		t.Errorf("got text %q", p)
	}
}

// TestGitHubErrorsBecomeProblems: GitHub's answer determines whether and when a job is retried.
func TestGitHubErrorsBecomeProblems(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault simgithub.Fault
		perm  bool
		waits bool
	}{
		"5xx":             {simgithub.Fault{Status: 503}, false, false},
		"cut":             {simgithub.Fault{Cut: true}, false, false},
		"secondary limit": {simgithub.Fault{Secondary: true, RetryAfter: 600}, false, true},
		"hourly limit":    {simgithub.Fault{Primary: true}, false, true},
		"forbidden":       {simgithub.Fault{Status: 403, Body: `{"message":"Must have admin rights to Repository."}`}, true, false},
		"unprocessable":   {simgithub.Fault{Status: 422, Body: `{"message":"Validation Failed"}`}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			c.fault.Method, c.fault.Path = "POST", "/issues/1/comments$"
			w.MustFault(c.fault)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := w.Forge.CreateComment(forge.WithPriority(ctx, forge.PriorityReaction), w.RepoRef(), 1, "x")
			p := workflowtest.WantProblem(t, err, "github", c.perm)
			if c.waits != p.Retry.After(time.Now().Add(time.Minute)) {
				t.Errorf("got retry at %v", p.Retry)
			}
		})
	}
}

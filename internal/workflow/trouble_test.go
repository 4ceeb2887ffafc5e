package workflow_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/agent/registry"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/secretscan"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
)

// bareSteps can interpret runs and nothing else.
func bareSteps(f testing.TB, p *secretscan.Patterns) *workflow.Steps {
	f.Helper()
	agents, err := registry.New(registry.DefaultConfig())
	if err != nil {
		f.Fatal(err)
	}
	return workflow.New(workflow.Config{Agents: agents, Redact: trust.NewRedactor(p, secret)})
}

func TestTrouble(t *testing.T) {
	t.Parallel()
	retry := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		err   error
		class string
		perm  bool
	}{
		"a step's own":  {fmt.Errorf("launch: %w", &step.Problem{Reason: "No.", Hint: "Do.", Class: "vm", Permanent: true, Retry: retry}), "vm", true},
		"out of time":   {fmt.Errorf("launch: %w", context.DeadlineExceeded), "timeout", false},
		"anything else": {errors.New("disk full"), "internal", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := wantProblem(t, c.err, c.class, c.perm)
			if c.perm && !p.Retry.Equal(retry) {
				t.Errorf("tried again at %v", p.Retry)
			}
		})
	}
	p := &step.Problem{Reason: "No.", Err: context.Canceled}
	if p.Error() != "No.: context canceled" || !errors.Is(p, context.Canceled) || (&step.Problem{Reason: "No."}).Error() != "No." {
		t.Errorf("a problem reads %q", p)
	}
}

// TestTroubleOfGitHub: what GitHub answers decides whether to try again, and when.
func TestTroubleOfGitHub(t *testing.T) {
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
			w := newWorld(t)
			c.fault.Method, c.fault.Path = "POST", "/issues/1/comments$"
			w.fault(c.fault)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := w.forge.CreateComment(forge.WithPriority(ctx, forge.PriorityReaction), w.repoRef(), 1, "x")
			p := wantProblem(t, err, "github", c.perm)
			if c.waits != p.Retry.After(time.Now().Add(time.Minute)) {
				t.Errorf("tried again at %v", p.Retry)
			}
		})
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if e := w.do(state.JobStop, args("why", "cancelled")); e.Kind != state.EventSaved || e.Saved != nil {
		t.Errorf("without a VM: %+v", e)
	}
	h := w.building()
	w.task.Work = nil
	stop := func(j *state.Job) { j.Run = "r-1" }
	if e := w.do(state.JobStop, args("why", "cancelled"), stop); e.Saved != nil || len(h.stopped) != 1 || h.stopped[0] != "r-1 cancelled" {
		t.Errorf("of nothing: %+v, stopped %v", e.Saved, h.stopped)
	}
	h.write(t, map[string]string{"half.txt": "done\n"})
	e := w.do(state.JobStop, args("why", "cancelled"), stop)
	if e.Saved == nil || e.Saved.Run != "r-1" || e.Saved.Why != "cancelled" {
		t.Fatalf("saved %+v", e.Saved)
	}
	cs, err := w.files.LoadChangeset(e.Saved.Ref)
	check(t, err)
	if cs.Stats().Paths() != 1 {
		t.Errorf("saved %+v", cs.Stats())
	}
	h.errs["Stop"] = errors.New("no route to host")
	if _, err := w.try(state.JobStop, args("why", "cancelled"), stop); err == nil {
		t.Error("a VM that does not answer is given up at once")
	}
	if e := w.do(state.JobStop, args("why", "cancelled"), stop, func(j *state.Job) { j.Failures = 2 }); e.Kind != state.EventSaved || e.Saved != nil {
		t.Errorf("given up: %+v", e)
	}
	h.errs["Stop"], h.errs["Collect"] = nil, errors.New("bad object")
	if _, err := w.try(state.JobStop, args("why", "cancelled"), stop); err == nil {
		t.Error("work that cannot be read once is given up at once")
	}
	if e := w.do(state.JobStop, args("why", "cancelled"), stop, func(j *state.Job) { j.Failures = 2 }); e.Kind != state.EventSaved || e.Saved != nil {
		t.Errorf("unreadable: %+v", e)
	}
}

func TestRelease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.do(state.JobRelease, args("vm", "vm-7", "why", "done"))
	if e.Kind != state.EventReleased || e.Detail != "done" || len(w.host.released) != 1 || w.host.released[0] != "vm-7 done" {
		t.Errorf("event %+v, released %v", e, w.host.released)
	}
	w.host.errs["Release"] = errors.New("locked")
	if _, err := w.try(state.JobRelease, args("vm", "vm-7")); !errors.Is(err, w.host.errs["Release"]) {
		t.Errorf("error %v", err)
	}
}

// TestHowAnIssueWasClosed: a merge closes the issue, too; only a person's closing cancels.
func TestHowAnIssueWasClosed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		act  func(w *world, n int) error
		kind state.EventKind
	}{
		"by the merge":     {func(w *world, n int) error { return w.ada.Merge(full, n, simgithub.Merge{}) }, state.EventPRClosed},
		"by a person":      {func(w *world, _ int) error { return w.ada.Close(full, 1, "") }, state.EventIssueClosed},
		"and opened again": {func(*world, int) error { return nil }, step.EventNothing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			p := w.openPull()
			check(t, c.act(w, p.Number))
			e := w.do(state.JobDue, args("what", "closed", "key", "issue"))
			if e.Kind != c.kind || e.Merged != (c.kind == state.EventPRClosed) || c.kind == state.EventIssueClosed && e.Via != "confirmed" {
				t.Errorf("event %+v", e)
			}
		})
	}
	w := newWorld(t)
	if e := w.do(state.JobDue, args("what", "remind", "key", "h")); e.Kind != state.EventDue || e.Detail != "remind" || e.Hash != "h" {
		t.Errorf("event %+v", e)
	}
}

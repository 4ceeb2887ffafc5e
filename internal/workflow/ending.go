package workflow

import (
	"context"
	"fmt"

	"github.com/errand-bot/errand/internal/runnerctl"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/internal/workflow/workspace"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// stop ends the active run and saves its work, unless another run continues it at once: that of a canceled task as an archive,
// which `retry` restores, any other, and work that cannot be packed, as commits. From a VM that cannot be reached, nothing is
// saved.
func (s *Steps) stop(ctx context.Context, w *step.Attempt) (event.Event, error) {
	e := event.Event{Run: w.Job.Run, Payload: event.WorkSaved{Continues: w.Job.Args.Continues}}
	t := w.Task
	vm := w.Job.Args.VM // the task may have another one by now, or none
	if vm == "" && t.VM != nil {
		vm = t.VM.Name
	}
	if vm == "" {
		return e, nil
	}
	if err := s.Runner.Stop(ctx, vm, w.Job.Run, w.Job.Args.Reason); err != nil {
		if w.Job.Try() < 3 {
			return event.Event{}, fmt.Errorf("stop run %s: %w", w.Job.Run, err)
		}
		w.Log.Warn().Err(err).Msg("failed to stop a run; giving up its VM")
		return e, nil
	}
	if t.VM == nil || t.VM.Name != vm || w.Job.Args.Continues {
		return e, nil // of an earlier life, or given up: there is nothing to read it against; or the next run continues the work
	}
	if t.Ended() && t.End.Saving {
		a, err := s.packCanceled(ctx, w, vm)
		if err == nil {
			e.Payload = event.WorkSaved{Archive: a}
			return e, nil
		}
		if !unpackable(err) && w.Job.Try() < 3 && !runnerctl.Gone(err) {
			return event.Event{}, fmt.Errorf("pack the work of run %s: %w", w.Job.Run, err)
		}
		w.Log.Warn().Err(err).Msg("failed to pack the work of a canceled task; saving its commits only")
	}
	cs, _, err := s.publish.ReadChangeset(ctx, w, workspace.Root(t))
	if err != nil && w.Job.Try() < 3 && !runnerctl.Gone(err) {
		return event.Event{}, fmt.Errorf("save the work of run %s: %w", w.Job.Run, err)
	}
	if err != nil || cs.Empty() {
		if err != nil {
			w.Log.Warn().Err(err).Msg("failed to save the work of a stopped run")
		}
		return e, nil
	}
	ref, err := s.Files.SaveChangeset(w.Job.Run+"-saved", cs)
	if err != nil {
		return event.Event{}, fmt.Errorf("save the work of a stopped run: %w", err)
	}
	e.Payload = event.WorkSaved{Work: state.SavedWork{Run: w.Job.Run, Ref: ref, At: s.Now(), Reason: w.Job.Args.Reason}}
	return e, nil
}

// packCanceled packs the work of a canceled task. A run that was being launched when the task was canceled may have begun: it is
// stopped first.
func (s *Steps) packCanceled(ctx context.Context, w *step.Attempt, vm string) (*state.SuspendedWork, error) {
	if n := len(w.Task.Runs); n > 0 && w.Task.Runs[n-1].ID != w.Job.Run {
		if err := s.Runner.Stop(ctx, vm, w.Task.Runs[n-1].ID, w.Job.Args.Reason); err != nil {
			return nil, fmt.Errorf("stop a run that may have begun: %w", err)
		}
	}
	return s.packed(ctx, w)
}

// release deletes the task's VM. It may be repeated.
func (s *Steps) release(ctx context.Context, w *step.Attempt) (event.Event, error) {
	vm, why := w.Job.Args.VM, state.VMEndReason(w.Job.Args.Reason)
	if err := s.VMs.Release(ctx, vm, why); err != nil {
		return event.Event{}, fmt.Errorf("delete VM %s: %w", vm, err)
	}
	return event.Event{Payload: event.Released{VM: vm, Reason: why}}, nil
}

// due turns a delayed job into its event; some first check GitHub.
func (s *Steps) due(ctx context.Context, w *step.Attempt) (event.Event, error) {
	what, key := w.Job.Args.Due, w.Job.Args.Key
	switch {
	case what == state.DueClosed && w.Task.PR != nil:
		return s.intake.Closed(ctx, w)
	case what == state.DuePRClosed && w.Task.PR != nil:
		return s.intake.PRClosed(ctx, w)
	case what == state.DueDuplicate:
		if w.Job.Args.Duplicate == state.DuplicateAnswer {
			return s.publish.DeleteTwins(ctx, w, key)
		}
		return s.talk.DeleteTwins(ctx, w, key)
	case what == state.DueSpan:
		return s.workspaces.SpanEnds(ctx, w.Task, key)
	}
	due := event.NewDue(what, key)
	if what == state.DueComments || what == state.DueSteer {
		var err error
		if due.Reread, err = s.intake.RereadGathered(ctx, w); err != nil {
			return event.Event{}, err
		}
	}
	if vm := w.Task.VM; s.Outlives != nil && vm != nil && vm.Paid > 0 && vm.Name == key {
		var err error
		if due.Insured, err = s.Outlives(ctx, key); err != nil {
			return event.Event{}, fmt.Errorf("check whether VM %s may be kept: %w", key, err)
		}
	}
	return event.Event{Payload: due}, nil
}

package workflow

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/internal/runner/pack"
	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/internal/runnerctl"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/internal/workflow/workspace"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// maxPacks is how often packing is tried on a VM that can be reached before the VM is given up.
const maxPacks = 4

// sleep saves the work of an idle VM. It only reads there, except for test files, which the next launch adds again, so
// it may be repeated. The VM is released when the store knows where the work is. A task that needs the VM before the
// step has begun gets it as it is.
func (s *Steps) sleep(ctx context.Context, w *step.Attempt) (event.Event, error) {
	t, vm := w.Task, w.Job.Args.VM
	if t.Ended() || t.VM == nil || t.VM.Name != vm {
		return step.Done(), nil
	}
	snapshot := t.Settings.VM.Sleep == settings.SleepSnapshot && s.Sleeper != nil
	if !t.HasIdleVM() && !(snapshot && w.Job.Attempted) { // a VM that may be off already cannot be reached
		return step.Done(), nil
	}
	if err := s.workspaces.Quiet(ctx, t, vm); err != nil {
		return s.notSaved(ctx, w, err)
	}
	put := s.packed
	if snapshot {
		put = s.snapshot
	}
	a, err := put(ctx, w)
	if err != nil {
		return s.notSaved(ctx, w, fmt.Errorf("save the work of VM %s: %w", vm, err))
	}
	return event.Event{Payload: event.Suspended{VM: vm, Work: a}}, nil
}

// packed saves changes, session and caches in an archive.
func (s *Steps) packed(ctx context.Context, w *step.Attempt) (*state.SuspendedWork, error) {
	t, vm := w.Task, w.Task.VM.Name
	ws, err := s.workspaces.Open(ctx, t)
	if err != nil {
		return nil, err
	}
	if err := s.workspaces.RemoveTestFiles(ctx, t); err != nil {
		return nil, err
	}
	spec := pack.Spec{Dir: ws.Place.Dir, Home: ws.Place.Home, Base: workspace.Root(t), Keep: workspace.Kept(t)}
	got, err := s.Files.SaveSleep(fmt.Sprintf("%d-%d", t.Key.Repo, t.Key.Issue), func(out io.Writer) (pack.Manifest, error) {
		return s.Runner.Pack(ctx, vm, spec, out)
	})
	if err != nil {
		return nil, err
	}
	m := got.Manifest
	a := &state.SuspendedWork{
		Mode: settings.SleepArchive, Ref: got.Ref, Bytes: got.Bytes, SHA256: got.SHA256, VM: vm,
		Base: m.Base, Head: m.Head, Dir: m.Dir, Paths: m.Paths,
	}
	for _, l := range m.Left {
		a.Omitted = append(a.Omitted, l.Path+": "+l.Reason)
	}
	a.Omitted = a.Omitted[:min(len(a.Omitted), 10)]
	return a, nil
}

// snapshot has the provider save the whole disk.
func (s *Steps) snapshot(ctx context.Context, w *step.Attempt) (*state.SuspendedWork, error) {
	vm := w.Task.VM.Name
	if !w.Job.Attempted { // else it may be off already
		if err := s.workspaces.RemoveTestFiles(ctx, w.Task); err != nil {
			return nil, err
		}
	}
	if _, err := w.MarkAttempted(ctx); err != nil {
		return nil, err
	}
	ref, bytes, err := s.Sleeper.Snapshot(ctx, vm)
	if err != nil {
		return nil, err
	}
	return &state.SuspendedWork{Mode: settings.SleepSnapshot, Ref: ref, Bytes: bytes, VM: vm, Base: workspace.Root(w.Task),
		Head: w.Task.Branch.VMHead}, nil
}

// unpackable reports whether packing fails again, however often it is tried.
func unpackable(err error) bool {
	return errors.Is(err, pack.ErrTooLarge) || errors.Is(err, pack.ErrNoBase) || errors.Is(err, work.ErrNoRepository)
}

// notSaved returns the event of work that could not be saved. A VM that no longer exists is reported as such; one that
// cannot be reached is tried again later; one that fails repeatedly is given up, and only its commits are saved.
func (s *Steps) notSaved(ctx context.Context, w *step.Attempt, cause error) (event.Event, error) {
	out := event.Suspended{VM: w.Task.VM.Name, Failure: "the VM is gone", EndReason: state.VMEndVanished}
	if runnerctl.Gone(cause) {
		return event.Event{Payload: out}, nil
	}
	var said *remote.ExitError
	large := errors.Is(cause, pack.ErrTooLarge)
	if !unpackable(cause) && (w.Job.Try() < maxPacks || !errors.As(cause, &said)) {
		return event.Event{}, cause
	}
	w.Log.Warn().Err(cause).Msg("failed to save the work of an idle VM; giving it up")
	out.Failure, out.EndReason = "its work could not be packed", state.VMEndUnusable
	if large {
		out.Failure = "its work is too large to be packed"
	}
	cs, _, err := s.publish.ReadChangeset(ctx, w, workspace.Root(w.Task))
	if err != nil || cs.Empty() {
		if err != nil {
			w.Log.Warn().Err(err).Msg("failed to save the work of a VM that is given up")
		}
		return event.Event{Payload: out}, nil
	}
	ref, err := s.Files.SaveChangeset(w.Task.VM.Name+"-saved", cs)
	if err != nil {
		return event.Event{}, fmt.Errorf("save the work of a VM that is given up: %w", err)
	}
	out.Saved = state.SavedWork{Run: w.Job.Run, Ref: ref, At: s.Now(), Reason: out.Failure}
	return event.Event{Payload: out}, nil
}

// forget deletes saved work. It may be repeated.
func (s *Steps) forget(ctx context.Context, w *step.Attempt) (event.Event, error) {
	ref := w.Job.Args.Ref
	if a := w.Task.Suspended; a != nil && a.Ref == ref {
		return step.Done(), nil // the same work was saved again
	}
	if w.Job.Args.Mode == settings.SleepSnapshot {
		if s.Sleeper == nil {
			w.Log.Warn().Str("image", ref).Msg("cannot delete a snapshot of another provider")
			return step.Done(), nil
		}
		if err := s.Sleeper.DeleteSnapshot(ctx, ref); err != nil {
			return event.Event{}, fmt.Errorf("delete the snapshot %s: %w", ref, err)
		}
		return step.Done(), nil
	}
	if err := s.Files.DeleteSleep(ref); err != nil {
		return event.Event{}, fmt.Errorf("delete the archive %s: %w", ref, err)
	}
	return step.Done(), nil
}

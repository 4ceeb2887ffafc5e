package workflow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/internal/runner/pack"
	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/internal/runnerctl"
	"github.com/errand-bot/errand/state"
)

// maxPacks is how often packing is tried on a VM that says no before the VM is given up.
const maxPacks = 4

// sleep puts the work of an idle VM away. But for test files, which the next launch puts back, it only reads there, so it may be repeated; the VM goes when the
// store knows where the work is. Whoever wants the VM before it has begun gets it as it is.
func (s *Steps) sleep(ctx context.Context, w *unit) (state.Event, error) {
	t, vm := w.task, w.job.Args["vm"]
	if t.Ended() || t.VM == nil || t.VM.Name != vm {
		return done(), nil
	}
	snapshot := t.Settings.VM.Sleep == state.SleepSnapshot && s.Sleeper != nil
	if !t.Resting() && !(snapshot && w.job.Attempted) { // a VM that may be off already is not to be had
		return done(), nil
	}
	if err := s.quiet(ctx, t, vm); err != nil {
		return s.notSaved(ctx, w, err)
	}
	put := s.packed
	if snapshot {
		put = s.snapshot
	}
	a, err := put(ctx, w)
	if err != nil {
		return s.notSaved(ctx, w, fmt.Errorf("put the work of VM %s away: %w", vm, err))
	}
	return state.Event{Kind: state.EventSlept, VM: vm, Asleep: a}, nil
}

// packed packs changes, session and caches into an archive of ours.
func (s *Steps) packed(ctx context.Context, w *unit) (*state.Asleep, error) {
	t, vm := w.task, w.task.VM.Name
	place, err := s.Runner.Place(ctx, vm)
	if err != nil {
		return nil, err
	}
	if err := s.takeBack(ctx, t, vm); err != nil {
		return nil, err
	}
	spec := pack.Spec{Dir: place.Dir, Home: place.Home, Base: workRoot(t), Keep: kept(t)}
	got, err := s.Files.SaveSleep(fmt.Sprintf("%d-%d", t.Key.Repo, t.Key.Issue), func(out io.Writer) (pack.Manifest, error) {
		return s.Runner.Pack(ctx, vm, spec, out)
	})
	if err != nil {
		return nil, err
	}
	m := got.Manifest
	a := &state.Asleep{
		Mode: state.SleepArchive, Ref: got.Ref, Bytes: got.Bytes, SHA256: got.SHA256, VM: vm,
		Base: m.Base, Head: m.Head, Dir: m.Dir, Paths: m.Paths,
	}
	for _, l := range m.Left {
		a.Left = append(a.Left, l.Path+": "+l.Reason)
	}
	a.Left = a.Left[:min(len(a.Left), 10)]
	return a, nil
}

// kept are the folders that are carried besides the work; what may not be is left out.
func kept(t *state.Task) []string {
	return slices.DeleteFunc(slices.Clone(t.Settings.Keep), func(p string) bool { return pack.CheckKeep(p) != nil })
}

// snapshot has the provider keep the whole disk.
func (s *Steps) snapshot(ctx context.Context, w *unit) (*state.Asleep, error) {
	vm := w.task.VM.Name
	if !w.job.Attempted { // else it may be off already
		if err := s.takeBack(ctx, w.task, vm); err != nil {
			return nil, err
		}
	}
	if _, err := s.attempted(ctx, w); err != nil {
		return nil, err
	}
	ref, bytes, err := s.Sleeper.Snapshot(ctx, vm)
	if err != nil {
		return nil, err
	}
	return &state.Asleep{Mode: state.SleepSnapshot, Ref: ref, Bytes: bytes, VM: vm, Base: workRoot(w.task), Head: w.task.Branch.VMHead}, nil
}

// notSaved says what comes of work that could not be put away. A VM that is gone is so; one that cannot be
// reached is tried again later; one that says no again and again is given up, with what can be saved.
func (s *Steps) notSaved(ctx context.Context, w *unit, cause error) (state.Event, error) {
	e := state.Event{Kind: state.EventSlept, VM: w.task.VM.Name, Detail: "the VM is gone", Via: "vanished"}
	if runnerctl.Gone(cause) {
		return e, nil
	}
	var said *remote.ExitError
	large := errors.Is(cause, pack.ErrTooLarge)
	never := large || errors.Is(cause, pack.ErrNoBase) || errors.Is(cause, work.ErrNoRepository)
	if !never && (w.job.Try() < maxPacks || !errors.As(cause, &said)) {
		return state.Event{}, cause
	}
	w.log.Warn().Err(cause).Msg("put the work of an idle VM away; it is given up")
	e.Detail, e.Via = "its work could not be packed", "unusable"
	if large {
		e.Detail = "its work is too large to be packed"
	}
	cs, err := s.readChangeset(ctx, w, workRoot(w.task))
	if err != nil || cs.Empty() {
		if err != nil {
			w.log.Warn().Err(err).Msg("save the work of a VM that is given up")
		}
		return e, nil
	}
	ref, err := s.Files.SaveChangeset(w.task.VM.Name+"-saved", cs)
	if err != nil {
		return state.Event{}, fmt.Errorf("save the work of a VM that is given up: %w", err)
	}
	e.Saved = &state.SavedWork{Run: w.job.Run, Ref: ref, At: s.Now(), Why: e.Detail}
	return e, nil
}

// forget deletes what was put away. It may be repeated.
func (s *Steps) forget(ctx context.Context, w *unit) (state.Event, error) {
	ref := w.job.Args["ref"]
	if a := w.task.Asleep; a != nil && a.Ref == ref {
		return done(), nil // the same was put away again
	}
	if state.SleepMode(w.job.Args["mode"]) == state.SleepSnapshot {
		if s.Sleeper == nil {
			w.log.Warn().Str("image", ref).Msg("nobody can delete a snapshot of another provider")
			return done(), nil
		}
		if err := s.Sleeper.DeleteSnapshot(ctx, ref); err != nil {
			return state.Event{}, fmt.Errorf("delete the snapshot %s: %w", ref, err)
		}
		return done(), nil
	}
	if err := s.Files.DeleteSleep(ref); err != nil {
		return state.Event{}, fmt.Errorf("delete the archive %s: %w", ref, err)
	}
	return done(), nil
}

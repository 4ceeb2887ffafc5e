package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/internal/runner/pack"
	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/internal/runnerctl"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// Restore restores saved work onto a VM for a step that needs it there, and returns the event after which the step
// is tried again; restored is false if there is nothing to restore.
func (o *Opener) Restore(ctx context.Context, w *step.Attempt) (e event.Event, restored bool, err error) {
	t := w.Task
	if t.VM != nil || t.WorkToRestore() == nil {
		return e, false, nil
	}
	l := &state.Launch{Run: w.Job.Run, Started: o.Now()}
	ws, waiting, err := o.Reach(ctx, t, l)
	if waiting != nil || err != nil {
		return step.Blocked(waiting), true, err
	}
	if err := ws.Restore(ctx, w, l); err != nil {
		return e, true, err
	}
	return event.Event{Payload: event.Restored{Launch: *l, For: w.Job.Kind}}, true, nil
}

// maxUnpacks is how often unpacking is tried before the work begins from the branch instead.
const maxUnpacks = 4

// Restore restores saved work onto a VM that does not have it, and records in the launch whether it did. It may be
// repeated until a run has begun. An archive that can never be unpacked is not an error: the run then begins from the
// branch, the plan and the transcript, and a comment reports it.
func (ws *Workspace) Restore(ctx context.Context, w *step.Attempt, l *state.Launch) error {
	defer func() { ws.VM = l.VM }()
	t := w.Task
	if t.VM != nil && t.VM.Name == l.VM.Name {
		l.VM.RestoredFrom = t.VM.RestoredFrom
	}
	a := t.WorkToRestore()
	switch {
	case a == nil || l.VM.Contains(a.VM):
		return nil
	case l.RestoreFailure != "":
		return nil
	case a.Mode == settings.SleepSnapshot: // the VM was created from it
		l.VM.RestoredFrom = a.VMNames()
		return nil
	}
	err := ws.unpack(ctx, w, a)
	var bad *notUnpacked
	switch {
	case err == nil:
		l.VM.RestoredFrom = a.VMNames()
	case errors.As(err, &bad) && (bad.forGood() || w.Job.Try() >= maxUnpacks):
		w.Log.Warn().Err(err).Msg("saved work cannot be restored")
		l.RestoreFailure = bad.reason()
	default:
		return err
	}
	return nil
}

// A notUnpacked is an error of the archive itself, or of unpacking it.
type notUnpacked struct{ err error }

func (e *notUnpacked) Error() string { return e.err.Error() }

func (e *notUnpacked) Unwrap() error { return e.err }

// forGood reports whether a retry does not help.
func (e *notUnpacked) forGood() bool {
	for _, known := range []error{pack.ErrMalformed, pack.ErrTooLarge, pack.ErrNoBase, work.ErrNoRepository, archive.ErrNoArchive,
		archive.ErrDamaged} {
		if errors.Is(e.err, known) {
			return true
		}
	}
	return false
}

// reason returns the error in words for people.
func (e *notUnpacked) reason() string {
	switch {
	case errors.Is(e.err, archive.ErrNoArchive):
		return "the archive of the work is gone"
	case errors.Is(e.err, pack.ErrMalformed), errors.Is(e.err, archive.ErrDamaged):
		return "the archive of the work is damaged"
	case errors.Is(e.err, pack.ErrTooLarge):
		return "the archive of the work is too large"
	case errors.Is(e.err, pack.ErrNoBase):
		return "the commit that the work builds on is gone"
	}
	return "the archive of the work could not be unpacked"
}

// unpack makes a checkout at the commit that the archive builds on, and unpacks the archive there.
func (ws *Workspace) unpack(ctx context.Context, w *step.Attempt, a *state.SuspendedWork) error {
	stream, err := ws.open.Archives.OpenSleep(a.Ref, a.SHA256)
	if err != nil {
		return &notUnpacked{fmt.Errorf("open the archive: %w", err)}
	}
	defer func() { _ = stream.Close() }()
	from := ws.task.Branch.Name
	if ws.task.Branch.Head == "" {
		from = ws.task.Branch.Base
	}
	src := ws.Source(from)
	if _, err := ws.Prepare(ctx, w, src, a.Base); err != nil {
		return err
	}
	spec := pack.UnpackSpec{Dir: ws.Place.Dir, Home: ws.Place.Home, Source: src, Keep: Kept(ws.task)}
	if _, err := ws.open.Runner.Unpack(ctx, ws.VM.Name, spec, stream); err != nil {
		if runnerctl.Gone(err) {
			return err
		}
		return &notUnpacked{fmt.Errorf("unpack the work on VM %s: %w", ws.VM.Name, err)}
	}
	return nil
}

// Kept returns the folders of the settings' `keep` that are saved together with the work; invalid ones are left out.
func Kept(t *state.Task) []string {
	return slices.DeleteFunc(slices.Clone(t.Settings.Keep), func(p string) bool { return pack.CheckKeep(p) != nil })
}

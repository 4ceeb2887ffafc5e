package publish

import (
	"context"
	"errors"
	"fmt"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// Move puts the branch on the published head. It succeeds only if the branch is where errand left it.
func (s *Steps) Move(ctx context.Context, w *step.Attempt) (event.Event, error) {
	t := w.Task
	if _, err := w.MarkAttempted(ctx); err != nil {
		return event.Event{}, err
	}
	err := s.GitHub.MoveBranch(ctx, w.Repo, t.Branch.Name, t.Branch.Head, t.Work.Head)
	var moved *forge.MovedError
	switch {
	case errors.As(err, &moved) && moved.Head == t.Work.Head: // an earlier attempt did it
	case errors.As(err, &moved) && t.Branch.Head == "":
		return event.Event{}, &step.Problem{Reason: fmt.Sprintf("The branch `%s` exists already and is not errand's.", t.Branch.Name),
			Hint: "Rename or delete that branch, then comment `retry`.", Class: state.ClassGitHub, Permanent: true, Err: err}
	case errors.As(err, &moved) && moved.Head == "":
		return event.Event{}, step.BranchDeleted(t, err)
	case errors.As(err, &moved):
		return event.Event{Run: t.Work.Run, Payload: event.BranchAhead{Head: moved.Head}}, nil
	case err != nil:
		return event.Event{}, fmt.Errorf("move the branch: %w", err)
	}
	s.resetVM(ctx, w)
	return event.Event{Run: t.Work.Run, Payload: event.BranchMoved{}}, nil
}

// resetVM puts the VM's checkout on the published head. Best effort: the next run's launch does it
// again.
func (s *Steps) resetVM(ctx context.Context, w *step.Attempt) {
	if w.Task.VM == nil {
		return
	}
	if err := s.resetTo(ctx, w.Task, w.Task.Work.Head); err != nil {
		w.Log.Warn().Err(err).Msg("failed to reset the VM's checkout to the published head")
	}
}

// resetTo fetches a published commit of the task's branch on the VM and puts the checkout on it.
func (s *Steps) resetTo(ctx context.Context, t *state.Task, commit string) error {
	ws, err := s.Workspaces.Open(ctx, t)
	if err != nil {
		return err
	}
	if err := ws.Attach(ctx); err != nil {
		return err
	}
	return ws.Reset(ctx, ws.Source(t.Branch.Name), commit, false)
}

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
	pending, err := s.preventMerge(ctx, w)
	if err != nil {
		return event.Event{}, err
	}
	if pending != nil {
		return event.Event{Run: t.Work.Run, Payload: *pending}, nil
	}
	err = s.GitHub.MoveBranch(ctx, w.Repo, t.Branch.Name, t.Branch.Head, t.Work.Head)
	var moved *forge.MovedError
	switch {
	case errors.As(err, &moved) && moved.Head == t.Work.Head: // an earlier attempt did it
	case errors.As(err, &moved) && t.Branch.Head == "":
		return s.branchExists(ctx, w, err)
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

// preventMerge keeps GitHub from merging, by itself, commits that nobody has reviewed: it disables auto-merge, and removes the pull request from
// the merge queue. Before that it returns an event, so that people learn of it whatever happens then; nil says that nothing is in the way of the push.
func (s *Steps) preventMerge(ctx context.Context, w *step.Attempt) (*event.MergePending, error) {
	t := w.Task
	if t.PR == nil || t.PR.State != state.PROpen {
		return nil, nil
	}
	m, pending, err := s.mergePending(ctx, w)
	if err != nil || pending == nil || !t.PR.PreventMerge {
		return pending, err
	}
	if pending.AutoMerge != "" { // first, because it might add the pull request to the queue again
		err = s.GitHub.DisableAutoMerge(ctx, w.Repo, m.Node)
	}
	if (err == nil || isRefusal(err)) && pending.Queued {
		err = errors.Join(err, s.GitHub.DequeuePR(ctx, w.Repo, m.Node))
	}
	if err != nil && !forge.IsPermanent(err) {
		return nil, fmt.Errorf("keep GitHub from merging the pull request by itself: %w", err)
	}
	if err == nil {
		return nil, nil
	}
	if _, again, readErr := s.mergePending(ctx, w); readErr != nil || again == nil { // somebody did it meanwhile
		return nil, readErr
	}
	return nil, &step.Problem{
		Reason: "GitHub would merge the pull request by itself, with commits that nobody has reviewed, and does not let errand prevent that.",
		Hint:   "Disable auto-merge on the page of the pull request, and remove it from the merge queue. Then comment `retry`.",
		Class:  state.ClassGitHub, Permanent: true, Err: err,
	}
}

// mergePending returns how GitHub may merge the open pull request by itself, nil if it does not. After the push that does not matter any more.
func (s *Steps) mergePending(ctx context.Context, w *step.Attempt) (forge.Merging, *event.MergePending, error) {
	m, err := s.GitHub.Merging(ctx, w.Repo, w.Task.PR.Number)
	if err != nil {
		return m, nil, fmt.Errorf("read whether auto-merge is enabled: %w", err)
	}
	if !m.Open || m.Head == w.Task.Work.Head {
		return m, nil, nil
	}
	if m.AutoMerge == "" && !m.Queued {
		return m, nil, nil
	}
	return m, &event.MergePending{AutoMerge: m.AutoMerge, Queued: m.Queued}, nil
}

// branchExists returns the event of a branch that exists before errand, as far as the store knows, has published anything.
func (s *Steps) branchExists(ctx context.Context, w *step.Attempt, cause error) (event.Event, error) {
	found, err := step.FindPR(ctx, s.GitHub, w)
	if err != nil {
		return event.Event{}, err
	}
	if found != nil {
		return event.Event{Run: w.Task.Work.Run, Payload: *found}, nil
	}
	p := &step.Problem{
		Reason: fmt.Sprintf("The branch `%s` exists already and is not errand's.", w.Task.Branch.Name),
		Hint:   "Rename that branch, or delete it if nobody needs its commits. Then comment `retry`.", Class: state.ClassGitHub, Permanent: true, Err: cause,
	}
	if !w.Job.Restored.IsZero() {
		p.Reason = fmt.Sprintf("The branch `%s` exists already. It may have this task's work from before errand was restored from a backup.", w.Task.Branch.Name)
		p.Hint = "Rename that branch to keep its commits. Then comment `retry`, and errand publishes its present work."
	}
	return event.Event{}, p
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

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

// Reopen reopens the task's closed pull request. GitHub requires its branch for that, so a deleted branch is restored first,
// at the commit that it had. A pull request that is open or merged by now is only reported. It can be repeated.
func (s *Steps) Reopen(ctx context.Context, w *step.Attempt) (event.Event, error) {
	if w.Task.PR == nil || isObsolete(w) {
		return step.Done(), nil
	}
	pr, err := s.GitHub.PR(ctx, w.Repo, w.Task.PR.Number)
	if err != nil {
		return event.Event{}, fmt.Errorf("read the pull request: %w", err)
	}
	if pr.Merged {
		return event.Event{By: pr.MergedBy, At: pr.ClosedAt, Payload: event.PRClosed{Merged: true}}, nil
	}
	if err := s.closeReplaced(ctx, w); err != nil {
		return event.Event{}, err
	}
	if !pr.Open {
		if err := s.restoreBranch(ctx, w, pr); err != nil {
			return event.Event{}, err
		}
		if pr, err = s.GitHub.ReopenPR(ctx, w.Repo, pr.Number); err != nil {
			return event.Event{}, fmt.Errorf("reopen the pull request: %w", err)
		}
	}
	return event.Event{At: pr.UpdatedAt, Payload: event.PRReopened{Number: pr.Number, Head: pr.Head}}, nil
}

// restoreBranch creates the branch of a closed pull request again if it was deleted. A branch that exists stays as it is.
func (s *Steps) restoreBranch(ctx context.Context, w *step.Attempt, pr forge.PR) error {
	branch := w.Task.Branch.Name
	_, err := s.GitHub.Head(ctx, w.Repo, branch)
	if err == nil {
		return nil
	}
	if !errors.Is(err, forge.ErrNotFound) {
		return fmt.Errorf("read the branch: %w", err)
	}
	if _, err := w.MarkAttempted(ctx); err != nil {
		return err
	}
	var moved *forge.MovedError
	err = s.GitHub.MoveBranch(ctx, w.Repo, branch, "", pr.Head)
	switch {
	case err == nil, errors.As(err, &moved): // somebody else restored it meanwhile
		return nil
	case step.ProblemOf(err).Permanent:
		return &step.Problem{Reason: fmt.Sprintf("The deleted branch `%s` of pull request #%d cannot be restored.", branch, pr.Number),
			Hint: "Restore it on the pull request's page, then comment `retry`.", Class: state.ClassGitHub, Permanent: true, Err: err}
	}
	return fmt.Errorf("restore the branch: %w", err)
}

package talk

import (
	"context"
	"errors"
	"fmt"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state/event"
)

// React sets a reaction, and removes the one that it replaces. It may be repeated: GitHub keeps one of a kind per account.
func (s *Steps) React(ctx context.Context, w *step.Attempt) (event.Event, error) {
	a := w.Job.Args
	repo := w.Repo
	if w.Task == nil {
		repo = forge.Repo{Installation: a.Installation, Owner: a.Owner, Name: a.Name, ID: w.Job.Task.Repo}
	}
	target := forge.Target{Kind: forge.TargetIssue, ID: int64(w.Job.Task.Issue)}
	if a.Comment != 0 {
		target = forge.Target{Kind: forge.TargetComment, ID: a.Comment}
		if a.Review {
			target.Kind = forge.TargetReviewComment
		}
	}
	ctx = forge.WithPriority(ctx, forge.PriorityReaction)
	err := s.GitHub.React(ctx, repo, target, string(a.Reaction))
	if err == nil && a.Replaces != "" {
		err = s.GitHub.Unreact(ctx, repo, target, string(a.Replaces))
	}
	switch {
	case errors.Is(err, forge.ErrLocked):
		w.Log.Info().Err(err).Msg("reaction skipped: the conversation is locked")
	case errors.Is(err, forge.ErrNotFound) && a.Comment != 0:
		w.Log.Info().Err(err).Msg("reaction skipped: the comment was deleted")
	case err != nil:
		return event.Event{}, fmt.Errorf("react with %s: %w", a.Reaction, err)
	}
	return step.Done(), nil
}

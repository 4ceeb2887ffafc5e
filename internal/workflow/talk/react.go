package talk

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state/event"
)

// React sets a reaction. It may be repeated: GitHub keeps one of a kind per account.
func (s *Steps) React(ctx context.Context, w *step.Attempt) (event.Event, error) {
	a := w.Job.Args
	repo := w.Repo
	if w.Task == nil {
		inst, err := strconv.ParseInt(a["installation"], 10, 64)
		if err != nil {
			return event.Event{}, fmt.Errorf("react: installation %q: %w", a["installation"], err)
		}
		repo = forge.Repo{Installation: inst, Owner: a["owner"], Name: a["name"], ID: w.Job.Task.Repo}
	}
	target := forge.Target{Kind: forge.TargetIssue, ID: int64(w.Job.Task.Issue)}
	if c := a["comment"]; c != "" {
		id, err := strconv.ParseInt(c, 10, 64)
		if err != nil {
			return event.Event{}, fmt.Errorf("react: comment %q: %w", c, err)
		}
		target = forge.Target{Kind: forge.TargetComment, ID: id}
		if a["review"] != "" {
			target.Kind = forge.TargetReviewComment
		}
	}
	ctx = forge.WithPriority(ctx, forge.PriorityReaction)
	switch err := s.GitHub.React(ctx, repo, target, a["content"]); {
	case errors.Is(err, forge.ErrLocked):
		w.Log.Info().Err(err).Msg("reaction skipped: the conversation is locked")
	case errors.Is(err, forge.ErrNotFound) && a["comment"] != "":
		w.Log.Info().Err(err).Msg("reaction skipped: the comment was deleted")
	case err != nil:
		return event.Event{}, fmt.Errorf("react with %s: %w", a["content"], err)
	}
	return step.Done(), nil
}

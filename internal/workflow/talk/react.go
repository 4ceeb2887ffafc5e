package talk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// React sets a reaction, and removes the one that it replaces. It may be repeated: GitHub keeps one of a kind per account.
func (s *Steps) React(ctx context.Context, w *step.Attempt) (event.Event, error) {
	a, repo := w.Job.Args, repoOf(w)
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

// repoOf returns the repository of a job, whose issue perhaps has no task.
func repoOf(w *step.Attempt) forge.Repo {
	if w.Task != nil {
		return w.Repo
	}
	a := w.Job.Args
	return forge.Repo{Installation: a.Installation, Owner: a.Owner, Name: a.Name, ID: w.Job.Task.Repo}
}

// NeedsNoTask reports whether a job posts a reply to a command on an issue without a task.
func NeedsNoTask(j *state.Job) bool {
	return j.Kind == state.JobPost && j.Post != nil && (j.Post.Reason == state.ReplyNoTask || j.Post.Reason == state.ReplyNoTaskClosed)
}

// quiet is how long a reply to a command on an issue without a task is not repeated on that issue.
const quiet = 24 * time.Hour

// replyWithoutTask posts a reply to a command on an issue without a task, unless the issue has one from the last day, by this job or an earlier one.
func (s *Steps) replyWithoutTask(ctx context.Context, w *step.Attempt) (event.Event, error) {
	repo, issue := repoOf(w), w.Job.Task.Issue
	v, err := s.View.Read(ctx)
	if err != nil {
		return event.Event{}, err
	}
	v.Key = w.Job.Key
	found, err := s.GitHub.FindComments(ctx, repo, issue, comment.Marker(v.Key), s.Now().Add(-quiet))
	if err != nil || len(found) > 0 {
		return step.Done(), err
	}
	_, err = s.GitHub.CreateComment(ctx, repo, issue, comment.Render(nil, *w.Job.Post, v))
	if errors.Is(err, forge.ErrLocked) {
		w.Log.Info().Err(err).Msg("reply skipped: the conversation is locked")
		return step.Done(), nil
	}
	if err != nil {
		return event.Event{}, fmt.Errorf("reply to a command on an issue without a task: %w", err)
	}
	return step.Done(), nil
}

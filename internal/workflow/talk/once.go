package talk

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// writeOnce creates the comment unless an earlier attempt did. looked reports that an earlier attempt may have created
// it.
func (s *Steps) writeOnce(ctx context.Context, w *step.Attempt, number int, body string) (posted forge.Comment, looked bool, err error) {
	before, err := w.MarkAttempted(ctx)
	if err != nil {
		return forge.Comment{}, false, err
	}
	if before {
		found, err := s.lookFor(ctx, w, number)
		if err != nil {
			return forge.Comment{}, true, err
		}
		if found = ofThisJob(w.Job, found, body); len(found) > 0 {
			return found[0], true, s.deleteTwins(ctx, w, found[1:])
		}
	}
	posted, err = s.GitHub.CreateComment(ctx, w.Repo, number, body)
	return posted, before, err
}

// lookFor returns the comments that earlier attempts of a job have written, oldest first.
func (s *Steps) lookFor(ctx context.Context, w *step.Attempt, number int) ([]forge.Comment, error) {
	return s.GitHub.FindComments(ctx, w.Repo, number, comment.Marker(w.Job.Key), since(w.Job).Add(-step.LookBack))
}

// ofThisJob leaves out comments that an errand of which a restored store knows nothing has posted for other jobs with the same key. These
// keys have numbers that are counted from where the backup left off. A comment with the same text is the job's, whoever posted it.
func ofThisJob(j *state.Job, found []forge.Comment, body string) []forge.Comment {
	if j.Restored.IsZero() || j.Post == nil { // the key of a status comment has no number
		return found
	}
	switch j.Post.Kind {
	case state.PostQuestion, state.PostFailed, state.PostRefused, state.PostNoChanges, state.PostReport, state.PostRound, state.PostPRClosed:
	default:
		return found
	}
	return slices.DeleteFunc(found, func(c forge.Comment) bool {
		return c.CreatedAt.Before(j.Restored) && comment.BodyHash(c.Body) != comment.BodyHash(body)
	})
}

// since returns when the effect of a job may first have happened.
func since(j *state.Job) time.Time {
	if !j.UnknownSince.IsZero() {
		return j.UnknownSince
	}
	return j.Created
}

// deleteTwins removes younger comments with the same marker.
func (s *Steps) deleteTwins(ctx context.Context, w *step.Attempt, twins []forge.Comment) error {
	for _, t := range twins {
		if err := s.GitHub.DeleteComment(ctx, w.Repo, t.ID); err != nil {
			return fmt.Errorf("delete a twin comment: %w", err)
		}
	}
	return nil
}

// DeleteTwins checks a while after an unknown outcome for a second copy of a comment, and deletes it. It is retried if GitHub
// refuses it, because the refusal may be temporary and nothing else would delete the copy.
func (s *Steps) DeleteTwins(ctx context.Context, w *step.Attempt, id string) (event.Event, error) {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return event.Event{}, fmt.Errorf("look for a twin of comment %q: %w", id, err)
	}
	if w.Job.Args.Marker == "" || w.Job.Args.Since.IsZero() {
		return event.Event{}, fmt.Errorf("look for a twin of comment %q: the job has no marker or no time", id)
	}
	number := w.Task.Key.Issue
	if w.Job.Args.Number != 0 {
		number = w.Job.Args.Number
	}
	found, err := s.GitHub.FindComments(ctx, w.Repo, number, comment.Marker(w.Job.Args.Marker), w.Job.Args.Since.Add(-step.LookBack))
	if err != nil {
		return event.Event{}, step.Retryable(fmt.Errorf("look for a twin comment: %w", err))
	}
	for _, f := range found {
		if f.ID == n {
			continue
		}
		if f.CreatedAt.Before(w.Job.Restored) { // it may be that of another job: see ofThisJob
			continue
		}
		if err := s.GitHub.DeleteComment(ctx, w.Repo, f.ID); err != nil {
			return event.Event{}, step.Retryable(fmt.Errorf("delete a twin comment: %w", err))
		}
	}
	return step.Done(), nil
}

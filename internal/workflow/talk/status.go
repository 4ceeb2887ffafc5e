package talk

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// Status brings the status comment up to date with the store as it is now.
func (s *Steps) Status(ctx context.Context, w *step.Attempt) (event.Event, error) {
	t := w.Task
	if t.Status.Shown >= t.Visible || !strings.HasPrefix(w.Job.Key, fmt.Sprintf("%d.", t.Gen)) {
		return step.Done(), nil // shown, or of an earlier life: the current one has a separate job
	}
	v, err := s.View.Read(ctx)
	if err != nil {
		return event.Event{}, err
	}
	v.Key = w.Job.Key
	body, _ := s.Redact.Redact(comment.Status(t, v))
	sent := state.StatusComment{Comment: t.Status.Comment, Node: t.Status.Node, URL: t.Status.URL, Shown: t.Visible, At: s.Now()}
	ctx = forge.WithPriority(ctx, forge.PriorityStatus)
	if t.Status.Comment != 0 {
		_, err := s.GitHub.EditComment(ctx, w.Repo, t.Status.Comment, body)
		if err == nil {
			return event.Event{Payload: event.StatusSent{Status: sent}}, nil
		}
		if !errors.Is(err, forge.ErrNotFound) {
			return event.Event{}, fmt.Errorf("edit the status comment: %w", err)
		}
	}
	posted, looked, err := s.writeOnce(ctx, w, t.Key.Issue, body)
	if err == nil && looked && comment.BodyHash(posted.Body) != comment.BodyHash(body) { // as an earlier attempt saw the task
		_, err = s.GitHub.EditComment(ctx, w.Repo, posted.ID, body)
	}
	if err != nil {
		return event.Event{}, fmt.Errorf("post the status comment: %w", err)
	}
	sent.Comment, sent.Node, sent.URL = posted.ID, posted.Node, posted.URL
	return event.Event{Payload: event.StatusSent{Status: sent, Searched: looked}}, nil // a copy by an earlier attempt may appear later
}

package talk

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/provenance"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// Provenance signs statements about tasks; *provenance.Signer does.
type Provenance interface {
	State(ctx context.Context, t *state.Task) (provenance.Statement, error)
}

// provenance brings the comment with the signed statement about the published changes up to date. It states what the store has now, so a
// repeated attempt writes the same text.
func (s *Steps) provenance(ctx context.Context, w *step.Attempt) (event.Event, error) {
	t, number := w.Task, w.Job.Args.Number
	if s.Provenance == nil || t.PR == nil || t.PR.Number != number || t.LastPublication() == nil {
		return step.Done(), nil // the task began anew, or was purged
	}
	made, err := s.Provenance.State(ctx, t)
	if errors.Is(err, provenance.ErrTooLong) {
		return event.Event{}, &step.Problem{Reason: "The statement does not fit into a comment, although its lists were shortened.", Class: state.ClassInternal, Permanent: true, Err: err}
	}
	if err != nil {
		return event.Event{}, fmt.Errorf("state the provenance of pull request #%d: %w", number, err)
	}
	v, err := s.View.Read(ctx)
	if err != nil {
		return event.Event{}, err
	}
	v.Key = w.Job.Key
	p := state.Post{Kind: state.PostProvenance, OnPR: true, Text: string(made.Envelope), Items: made.Summary}
	body, _ := s.Redact.Redact(comment.Render(t, p, v))
	if !strings.Contains(body, p.Text) {
		return event.Event{}, &step.Problem{Reason: "The signed statement looks like a secret, or is not plain text, so it was not posted.", Class: state.ClassInternal, Permanent: true}
	}
	if before := lastStatement(t, number); before != 0 {
		c, err := s.GitHub.EditComment(ctx, w.Repo, before, body)
		if err == nil && t.PR.Unstated != "" {
			return posted(w, number, c, false), nil // the status comment says that it is missing
		}
		if !errors.Is(err, forge.ErrNotFound) { // somebody deleted it
			return step.Done(), err
		}
	}
	c, looked, err := s.writeOnce(ctx, w, number, body)
	if err == nil && looked && c.Body != body { // as an earlier attempt saw the task
		_, err = s.GitHub.EditComment(ctx, w.Repo, c.ID, body)
	}
	if err != nil {
		return event.Event{}, fmt.Errorf("post the provenance of pull request #%d: %w", number, err)
	}
	return posted(w, number, c, looked), nil
}

// lastStatement returns the comment with the statement about a pull request, 0 if there is none.
func lastStatement(t *state.Task, number int) int64 {
	for i := len(t.Posted) - 1; i >= 0; i-- {
		if p := t.Posted[i]; p.Kind == string(state.PostProvenance) && p.Number == number {
			return p.ID
		}
	}
	return 0
}

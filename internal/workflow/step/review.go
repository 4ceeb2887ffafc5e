package step

import (
	"context"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
)

// Reviewers asks people for reviews.
type Reviewers interface {
	Permission(ctx context.Context, r forge.Repo, login string, id int64) (state.Permission, error)
	RequestReview(ctx context.Context, r forge.Repo, number int, login string) (note string, err error)
}

// RequestReview asks the author for a review of a pull request if that person may write, else who approved the plan. A failure
// is only logged: a pull request without a reviewer is open all the same.
func RequestReview(ctx context.Context, github Reviewers, w *Attempt, number int) {
	t := w.Task
	who := t.Trigger.By
	if t.Approval != nil {
		who = t.Approval.By
	}
	if t.Author.ID != who.ID && !t.Author.Bot {
		if p, err := github.Permission(ctx, w.Repo, t.Author.Login, t.Author.ID); err == nil && p.CanWrite() {
			who = t.Author
		}
	}
	if who.ID == 0 { // the operator, who has no account
		return
	}
	if note, err := github.RequestReview(ctx, w.Repo, number, who.Login); err != nil || note != "" {
		w.Log.Info().Err(err).Str("note", note).Msg("failed to request a review")
	}
}

package walk

import (
	"context"
	"time"

	"github.com/errand-bot/errand/internal/forge"
)

// CommentsSince lists the comments since a time.
func (a api) CommentsSince(ctx context.Context, _ forge.Repo, number int, since time.Time) ([]forge.Comment, error) {
	a.w.model.lists(number, "comments", since)
	return looked(a, func() ([]forge.Comment, error) { return a.spoken(ctx, number, since) })
}

func (a api) spoken(ctx context.Context, number int, since time.Time) ([]forge.Comment, error) {
	return read(ctx, a, "list comments", func() (out []forge.Comment, err error) {
		a.w.model.listed(number, "comments")
		for _, c := range a.issues[number].comments {
			if !c.gone && !c.created.Before(since) {
				out = append(out, c.view())
			}
		}
		return out, nil
	})
}

// Reviews lists the submitted reviews.
func (a api) Reviews(ctx context.Context, _ forge.Repo, number int) ([]forge.Review, error) {
	if a.w.job != nil && a.w.model.sweeping() == nil { // the end of a round, not a sweep
		return read(ctx, a, "read verdicts", func() ([]forge.Review, error) { return a.issues[number].pull.reviews, nil })
	}
	a.w.model.lists(number, "reviews", time.Time{})
	return looked(a, func() ([]forge.Review, error) {
		return read(ctx, a, "list reviews", func() ([]forge.Review, error) {
			a.w.model.listed(number, "reviews")
			return a.issues[number].pull.reviews, nil
		})
	})
}

// CheckInstalled reports that the App is installed.
func (a api) CheckInstalled(ctx context.Context, _ int64) error {
	_, err := read(ctx, a, "look for an installation", nothing(func() error { return nil }))
	if s := a.w.model.sweeping(); s != nil && err != nil {
		s.lost = true
	}
	return err
}

// looked tells the model about a failed check.
func looked[T any](a api, look func() (T, error)) (T, error) {
	out, err := look()
	if err != nil {
		a.w.model.failed()
	}
	return out, err
}

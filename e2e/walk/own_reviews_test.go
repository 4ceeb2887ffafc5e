package walk

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
)

// ownReview is one of errand's reviews of a pull request. Only errand sees a pending one and its replies.
type ownReview struct {
	node    string
	created time.Time
	pending bool
	replies []*comment
}

func (p *pull) pendingReview() *ownReview {
	for _, v := range p.own {
		if v.pending {
			return v
		}
	}
	return nil
}

// ownReview returns a review with its pull request.
func (h *hub) ownReview(node string) (*issue, *ownReview) {
	for n := 1; n <= h.last; n++ {
		if i := h.issues[n]; i.pull != nil {
			for _, v := range i.pull.own {
				if v.node == node {
					return i, v
				}
			}
		}
	}
	return nil, nil
}

// view returns a review as errand reads it. New replies may be missing.
func (v *ownReview) view(w *world) forge.OwnReview {
	out := forge.OwnReview{Node: v.node, Pending: v.pending}
	for _, c := range v.replies {
		if !c.gone && c.lists(w) {
			out.Replies = append(out.Replies, c.view())
		}
	}
	return out
}

func startOf(pull int) string { return fmt.Sprintf("pending review of #%d", pull) }

func (a api) PendingReview(ctx context.Context, _ forge.Repo, number int) (*forge.OwnReview, error) {
	return read(ctx, a, "find review", func() (*forge.OwnReview, error) {
		a.w.model.recordSearch(startOf(number), time.Time{})
		v := a.issues[number].pull.pendingReview()
		if v == nil || v.created.After(a.w.now.Add(-a.w.lag)) {
			return nil, nil
		}
		out := v.view(a.w)
		return &out, nil
	})
}

func (a api) OwnReview(ctx context.Context, _ forge.Repo, node string) (forge.OwnReview, error) {
	return read(ctx, a, "read review", func() (forge.OwnReview, error) {
		_, v := a.ownReview(node)
		if v == nil {
			return forge.OwnReview{}, notFound("read review")
		}
		a.w.model.recordSearch("submitted "+node, time.Time{})
		return v.view(a.w), nil
	})
}

// StartReview refuses a second pending review, like GitHub. forge makes that refusal temporary.
func (a api) StartReview(ctx context.Context, _ forge.Repo, node string) (string, error) {
	i := a.issueBy(node)
	a.w.model.creates(startOf(i.number))
	return write(ctx, a, "start review", func() (string, error) {
		if i.pull.pendingReview() != nil {
			return "", temporary("start review", forge.ClassTemporary, 0, time.Time{})
		}
		v := &ownReview{node: fmt.Sprintf("PRR_%d", a.id()), created: a.clock(), pending: true}
		i.pull.own = append(i.pull.own, v)
		a.w.model.created(startOf(i.number))
		return v.node, nil
	})
}

func (h *hub) issueBy(node string) *issue {
	for n := 1; n <= h.last; n++ {
		if h.issues[n].node == node {
			return h.issues[n]
		}
	}
	return nil
}

func (a api) AddReply(ctx context.Context, _ forge.Repo, review, th, words string) error {
	a.w.model.creates(markOf(words))
	_, err := write(ctx, a, "reply", nothing(func() error {
		i, v := a.ownReview(review)
		var top int64
		if _, err := fmt.Sscanf(th, "T_%d", &top); err != nil || v == nil || !v.pending || a.thread(i.number, top) == nil {
			return notFound("reply")
		}
		c := a.newComment(i, nil, words)
		c.reviewed = top
		v.replies = append(v.replies, c)
		a.w.model.created(markOf(words))
		return nil
	}))
	return err
}

func (a api) SubmitReview(ctx context.Context, _ forge.Repo, review, words string) error {
	a.w.model.creates("submitted " + review)
	_, err := write(ctx, a, "submit review", nothing(func() error {
		i, v := a.ownReview(review)
		if v == nil || !v.pending {
			return refuses("submit review")
		}
		v.pending = false
		for _, c := range v.replies {
			th := a.thread(i.number, c.reviewed)
			if th == nil || c.gone {
				continue
			}
			th.comments = append(th.comments, c)
		}
		i.pull.reviews = append(i.pull.reviews, forge.Review{By: personOf(nil), Review: state.Review{ID: a.id(), State: "commented", Body: words, At: a.clock()}})
		a.w.model.created("submitted " + review)
		return nil
	}))
	return err
}

func (a api) DeleteReview(ctx context.Context, _ forge.Repo, review string) error {
	_, err := write(ctx, a, "delete review", nothing(func() error {
		if i, v := a.ownReview(review); v != nil && v.pending {
			i.pull.own = slices.DeleteFunc(i.pull.own, func(o *ownReview) bool { return o == v })
		}
		return nil
	}))
	return err
}

func (a api) DeletePendingReply(ctx context.Context, _ forge.Repo, node string) error {
	_, err := write(ctx, a, "delete pending reply", nothing(func() error {
		for n := 1; n <= a.last; n++ {
			if a.issues[n].pull == nil {
				continue
			}
			for _, v := range a.issues[n].pull.own {
				for _, c := range v.replies {
					c.gone = c.gone || c.node == node && v.pending
				}
			}
		}
		return nil
	}))
	return err
}

func (a api) ResolveThread(ctx context.Context, _ forge.Repo, node string) error {
	_, err := write(ctx, a, "resolve thread", nothing(func() error { return nil }))
	return err
}

// reviews checks that errand submitted no review twice.
func (m *model) reviews(i *issue) {
	marks := map[string]bool{}
	for _, v := range i.pull.reviews {
		mark := markOf(v.Body)
		if v.By.ID != botID {
			continue
		}
		if mark == "" || marks[mark] {
			m.w.fatalf("twice: errand's review of #%d has no marker or a repeated one: %s", i.number, strings.TrimSpace(v.Body))
		}
		marks[mark] = true
	}
}

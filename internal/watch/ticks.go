package watch

import (
	"context"
	"fmt"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
)

// planReader reads the comment of a plan as it stands.
type planReader interface {
	Standing(ctx context.Context, r forge.Repo, comment, said, branch string) (forge.Standing, error)
}

// ticks reports a ticked box of the plan that a task waits with. A tick is known from its webhook, which names who made it; where a
// box has been ticked for a while and nothing came of it, that webhook is lost. One that was ticked a moment ago is left for later.
func (s *Sweeper) ticks(ctx context.Context, t *state.Task) error {
	p := t.NewestPlan()
	if !t.Phase.AwaitsApproval() || p == nil || !p.Open() {
		return nil
	}
	st, err := s.cfg.GitHub.Standing(ctx, forge.RepoOf(t), p.CommentNode, "", t.Branch.Base)
	if err != nil {
		return fmt.Errorf("read the boxes of a plan: %w", err)
	}
	c := st.Comment
	if st.Deleted || comment.BodyHash(c.Body) != p.BodyHash || len(comment.Ticked(c.Body, p.Hash)) == 0 || s.cfg.Now().Sub(c.EditedAt) < lookBack {
		return nil
	}
	return s.report(ctx, t, []state.Event{{
		Kind: state.EventPlanEdited, Via: state.ViaSweep, Permission: state.PermissionNone, OnlyBoxes: true, Ticked: true,
		At: c.EditedAt, Comment: &state.Comment{ID: p.Comment},
	}})
}

package watch

import (
	"context"
	"fmt"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// reportLostTick reports a ticked box of the plan that awaits approval. Normally a webhook reports the tick and names the
// person. A box that has been ticked for a while without effect means that the webhook was lost. A recent tick is left
// for the next sweep.
func (s *Sweeper) reportLostTick(ctx context.Context, t *state.Task) error {
	p := t.NewestPlan()
	if !t.Phase.AwaitsApproval() || p == nil || !p.Open() {
		return nil
	}
	st, err := s.cfg.GitHub.PlanSnapshot(ctx, forge.RepoOf(t), p.CommentNode, "", t.Branch.Base)
	if err != nil {
		return fmt.Errorf("read the boxes of a plan: %w", err)
	}
	c := st.Comment
	if st.Deleted || comment.BodyHash(c.Body) != p.BodyHash || len(comment.Ticked(c.Body, p.Hash)) == 0 ||
		s.cfg.Now().Sub(c.EditedAt) < readOverlap {
		return nil
	}
	return s.report(ctx, t, []event.Event{{
		Via:        event.ViaSweep,
		Permission: state.PermissionNone,
		At:         c.EditedAt,
		Payload:    event.CommentEdited{OnlyBoxes: true, Ticked: true, Comment: &state.Comment{ID: p.Comment}},
	}})
}

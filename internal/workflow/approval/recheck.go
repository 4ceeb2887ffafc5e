package approval

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
)

// fresh is how long GitHub's answer about a person is used for the start of the work that the person approved.
const fresh = 10 * time.Second

// Recheck checks again, right before the approved work starts, whether the approval holds, and returns why not, or
// nothing. A start that follows the check of the approval at once does not repeat it. Once work has started,
// withdrawing an approval has no effect. It also reads the newest commit of the base.
func (c *Checker) Recheck(ctx context.Context, w *step.Attempt, a *state.Approval) (why string, err error) {
	if a == nil || a.Via == state.ViaSettings {
		return "", nil
	}
	plan := w.Task.PlanByHash(a.Hash)
	if plan != nil && !plan.Intact() {
		return "", &step.Problem{Reason: "The stored plan differs from the approved one, so nothing was started.",
			Hint: "Comment `replan` to get a new one.", Class: state.ClassInternal, Permanent: true}
	}
	if k := w.Job.Vetted; w.Job.Attempt <= 1 && w.VettedWithin(fresh, a.By.ID, c.Now()) && k.Hash == a.Hash && k.Permission.CanWrite() {
		return "", nil
	}
	p, err := c.GitHub.Permission(ctx, w.Repo, a.By.Login, a.By.ID)
	if err != nil {
		return "", err
	}
	if !p.CanWrite() || plan == nil {
		return state.RejectedRevoked, nil
	}
	at := c.Now()
	st, err := c.GitHub.PlanSnapshot(ctx, w.Repo, plan.CommentNode, a.Node, w.Task.Branch.Base)
	if err != nil {
		return "", fmt.Errorf("read the source of the approval: %w", err)
	}
	w.Base, w.BaseRead = st.Head, at
	if a.Via == state.ViaBox {
		return c.countedTickProblem(ctx, st, plan, a)
	}
	return approvalProblem(st, plan, a), nil
}

// countedTickProblem returns a reason unless a tick that counted is still there; other boxes no longer
// matter. Everybody who can edit the comment may approve, so a box that they leave ticked, or tick again, is valid. A
// bot may not approve: after an edit by another bot than errand, the author of the tick is unknown.
func (c *Checker) countedTickProblem(ctx context.Context, st forge.PlanSnapshot, plan *state.Plan, a *state.Approval) (why string, err error) {
	if !slices.Contains(comment.Ticked(st.Comment.Body, plan.Hash), a.Choice) {
		return state.RejectedUnticked, nil
	}
	if editor := st.Comment.Editor; editor != nil && editor.Bot {
		self, err := c.GitHub.Self(ctx)
		if err != nil {
			return "", err
		}
		if editor.ID != self.BotID {
			return state.RejectedUnticked, nil
		}
	}
	return "", nil
}

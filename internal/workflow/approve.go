package workflow

import (
	"context"
	"fmt"
	"slices"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
)

// approve holds a 👍, a tick or a command against GitHub as it is now: the plan comment as we wrote
// it, the issue as frozen, the person's permission, and the 👍, the tick or the comment with the command, which
// people may have withdrawn before errand read of it. What the store knows (newest revision, change requests) is judged by the
// transition table, in the same transaction that starts the work.
func (s *Steps) approve(ctx context.Context, w *unit) (state.Event, error) {
	k := *w.job.Candidate
	e := state.Event{Kind: state.EventNoApproval, Candidate: &k}
	plan := planByHash(w.task, k.Hash)
	if plan == nil {
		e.Detail = state.NotSuperseded
		return e, nil
	}
	if k.By.Bot {
		e.Detail = state.NotBot
		return e, nil
	}
	if plan.Comment == 0 && (plan.Superseded || !w.task.Phase.AwaitsApproval()) {
		e.Detail = state.NotSuperseded
		return e, nil
	}
	if plan.Comment == 0 { // its hash is known, so that it is being posted, or was and we have not noted it
		return state.Event{}, fmt.Errorf("check approval of @%s: revision %s is not known to be posted yet", k.By.Login, plan.Short())
	}
	at := s.Now()
	p, err := s.GitHub.Permission(ctx, w.repo, k.By.Login, k.By.ID)
	if err != nil {
		return state.Event{}, insist(fmt.Errorf("check approval of @%s: %w", k.By.Login, err))
	}
	k.Permission = p
	if !p.CanWrite() {
		e.Detail = state.NotNoPermission
		return e, nil
	}
	st, err := s.GitHub.PlanSnapshot(ctx, w.repo, plan.CommentNode, k.Node, w.task.Branch.Base)
	if err != nil {
		return e, insist(fmt.Errorf("read the plan comment, its issue and its reactions: %w", err))
	}
	if e.Detail = planStands(st, plan); e.Detail == "" {
		e.Detail = actStands(st, plan, &k.Approval)
	}
	if e.Detail == "" && k.Via == state.ViaBox && k.Comment != plan.Comment { // the tick was in a second copy, which is gone by now
		e.Detail = state.NotTicked
	}
	if e.Detail == "" {
		e.Kind, e.Permission = state.EventApproved, p
		e.Vetted = &state.Vetted{By: k.By, Permission: p, At: at, Hash: plan.Hash, Base: st.Head}
	}
	return e, nil
}

func planByHash(t *state.Task, hash string) *state.Plan { return t.PlanByHash(hash) }

// approvalOf returns the approval of a revision that counted, or nil.
func approvalOf(t *state.Task, plan *state.Plan) *state.Approval {
	if plan.Publish != nil {
		return plan.Publish.Approved
	}
	for a := t.Approval; a != nil; a = a.Before {
		if a.Hash == plan.Hash {
			return a
		}
	}
	return nil
}

// planStands says why the plan as it stands on GitHub cannot be approved, or nothing.
func planStands(st forge.PlanSnapshot, plan *state.Plan) string {
	switch {
	case st.Deleted:
		return state.NotDeleted
	case comment.BodyHash(st.Comment.Body) != plan.BodyHash:
		return state.NotEdited
	case st.Closed:
		return state.NotClosed
	case plan.Kind == state.PlanPublish: // what it came to stands by itself
	case state.FreezeHash(st.Title, st.Body) != plan.IssueHash:
		return state.NotIssueChanged
	}
	return ""
}

// thumbStands says whether the person's 👍 is still there and was given after the comment.
func thumbStands(st forge.PlanSnapshot, plan *state.Plan, by state.Person) string {
	if slices.ContainsFunc(st.Comment.ThumbsUp, func(th forge.Reaction) bool {
		return th.By.ID == by.ID && !th.At.Before(plan.PostedAt)
	}) {
		return ""
	}
	return state.NotRevoked
}

// actStands says why an approval is no longer what the person said, or nothing.
func actStands(st forge.PlanSnapshot, plan *state.Plan, a *state.Approval) string {
	switch a.Via {
	case state.ViaReaction:
		return thumbStands(st, plan, a.By)
	case state.ViaBox:
		return tickStands(st, plan, a)
	case state.ViaCommand:
		if a.Given.Before(plan.PostedAt) { // it names a revision that nobody could have read
			return state.NotTooFresh
		}
		return wordsStand(st, a)
	}
	return ""
}

// tickStands says whether the person's tick is there, and nobody has touched a box since. GitHub names the last editor only,
// so a box that somebody else ticked again cannot be told from the person's own tick.
func tickStands(st forge.PlanSnapshot, plan *state.Plan, a *state.Approval) string {
	ticked := comment.Ticked(st.Comment.Body, plan.Hash)
	switch editor := st.Comment.Editor; {
	case !slices.Contains(ticked, a.Choice):
		return state.NotTicked
	case len(ticked) > 1:
		return state.NotSeveral
	case editor != nil && editor.ID != a.By.ID:
		return state.NotTicked
	}
	return ""
}

// wordsStand says whether the comment with the command is there and reads as it did. What a comment was edited to is not an
// approval either: edits give no commands.
func wordsStand(st forge.PlanSnapshot, a *state.Approval) string {
	switch {
	case a.Node == "": // given to an older version, which did not keep it
		return ""
	case st.Approval == nil || st.Approval.Minimized:
		return state.NotErased
	case st.Approval.Author.ID != a.By.ID || state.SaidHash(st.Approval.Body) != a.Said:
		return state.NotReworded
	}
	return ""
}

// stillApproved checks again, right before the approved work starts, whether the approval holds, and returns why not, or nothing.
// A start that follows the check of the approval at once does not repeat it. Once work has started, withdrawing an approval has no
// effect. It also reads where the base is.
func (s *Steps) stillApproved(ctx context.Context, w *unit, a *state.Approval) (why string, err error) {
	if a == nil || a.Via == state.ViaSettings {
		return "", nil
	}
	plan := planByHash(w.task, a.Hash)
	if plan != nil && !plan.Intact() {
		return "", &Problem{Reason: "The plan that is stored is not the one that was approved, so nothing was started.",
			Hint: "Comment `replan` to have a new one made.", Class: "internal", Permanent: true}
	}
	if k := w.job.Vetted; w.job.Attempt <= 1 && s.vettedWithin(w, a.By.ID, approvalFresh) && k.Hash == a.Hash && k.Permission.CanWrite() {
		return "", nil
	}
	p, err := s.GitHub.Permission(ctx, w.repo, a.By.Login, a.By.ID)
	if err != nil {
		return "", err
	}
	if !p.CanWrite() || plan == nil {
		return state.NotRevoked, nil
	}
	at := s.Now()
	st, err := s.GitHub.PlanSnapshot(ctx, w.repo, plan.CommentNode, a.Node, w.task.Branch.Base)
	if err != nil {
		return "", fmt.Errorf("read what gave the approval: %w", err)
	}
	w.base, w.baseAt = st.Head, at
	if a.Via == state.ViaBox {
		return s.countedTickStands(ctx, st, plan, a)
	}
	return actStands(st, plan, a), nil
}

// countedTickStands says whether a tick that counted is still there; other boxes do not matter any more. Everybody who can edit the
// comment may approve, so a box that they leave ticked, or tick again, stands. A bot may not: after its edit, other than errand's own,
// nobody can tell whose tick it is.
func (s *Steps) countedTickStands(ctx context.Context, st forge.PlanSnapshot, plan *state.Plan, a *state.Approval) (why string, err error) {
	if !slices.Contains(comment.Ticked(st.Comment.Body, plan.Hash), a.Choice) {
		return state.NotTicked, nil
	}
	if editor := st.Comment.Editor; editor != nil && editor.Bot {
		self, err := s.GitHub.Self(ctx)
		if err != nil {
			return "", err
		}
		if editor.ID != self.BotID {
			return state.NotTicked, nil
		}
	}
	return "", nil
}

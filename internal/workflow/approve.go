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
// it, the issue as frozen, the person's permission and, for a 👍, that it is still there and younger
// than the comment. What the store knows (newest revision, change requests) is judged by the
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
		return state.Event{}, fmt.Errorf("check approval of @%s: revision %s is not known to be posted yet", k.By.Login, k.Hash)
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
	st, err := s.GitHub.Standing(ctx, w.repo, plan.CommentNode, w.task.Branch.Base)
	if err != nil {
		return e, insist(fmt.Errorf("read the plan comment, its issue and its reactions: %w", err))
	}
	if e.Detail = planStands(st, plan); e.Detail == "" && k.Via == state.ViaReaction {
		e.Detail = thumbStands(st, plan, k.By)
	}
	if e.Detail == "" {
		e.Kind, e.Permission = state.EventApproved, p
		e.Vetted = &state.Vetted{By: k.By, Permission: p, At: at, Hash: plan.Hash, Base: st.Head}
	}
	return e, nil
}

func planByHash(t *state.Task, hash string) *state.Plan {
	for i := range t.Plans {
		if t.Plans[i].Hash == hash {
			return &t.Plans[i]
		}
	}
	return nil
}

// planStands says why the plan as it stands on GitHub cannot be approved, or nothing.
func planStands(st forge.Standing, plan *state.Plan) string {
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
func thumbStands(st forge.Standing, plan *state.Plan, by state.Person) string {
	if slices.ContainsFunc(st.Comment.ThumbsUp, func(th forge.Thumb) bool {
		return th.By.ID == by.ID && !th.At.Before(plan.PostedAt)
	}) {
		return ""
	}
	return state.NotRevoked
}

// stillApproved asks again, at the start of what was approved, whether the approval holds. A start that follows
// the check of the approval at once does not repeat it. After the start a withdrawn 👍 does nothing. With the 👍
// it reads where the base is.
func (s *Steps) stillApproved(ctx context.Context, w *unit, a *state.Approval) (bool, error) {
	if a == nil || a.Via == state.ViaSettings {
		return true, nil
	}
	if k := w.job.Vetted; w.job.Attempt <= 1 && s.vettedWithin(w, a.By.ID, approvalFresh) && k.Hash == a.Hash {
		w.base, w.baseAt = k.Base, k.At
		return k.Permission.CanWrite(), nil
	}
	p, err := s.GitHub.Permission(ctx, w.repo, a.By.Login, a.By.ID)
	if err != nil || !p.CanWrite() {
		return false, err
	}
	if a.Via != state.ViaReaction {
		return true, nil
	}
	plan := planByHash(w.task, a.Hash)
	if plan == nil {
		return false, nil
	}
	at := s.Now()
	st, err := s.GitHub.Standing(ctx, w.repo, plan.CommentNode, w.task.Branch.Base)
	if err != nil {
		return false, fmt.Errorf("read the reactions: %w", err)
	}
	w.base, w.baseAt = st.Head, at
	return thumbStands(st, plan, a.By) == "", nil
}

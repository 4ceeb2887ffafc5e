package workflow

import (
	"context"
	"errors"
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
	p, err := s.GitHub.Permission(ctx, w.repo, k.By.Login, k.By.ID)
	if err != nil {
		return state.Event{}, fmt.Errorf("check approval of @%s: %w", k.By.Login, err)
	}
	k.Permission = p
	if !p.CanWrite() {
		e.Detail = state.NotNoPermission
		return e, nil
	}
	if e.Detail, err = s.planStands(ctx, w, plan); e.Detail != "" || err != nil {
		return e, err
	}
	if k.Via == state.ViaReaction {
		if e.Detail, err = s.thumbStands(ctx, w.task, plan, k.By); e.Detail != "" || err != nil {
			return e, err
		}
	}
	e.Kind = state.EventApproved
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
func (s *Steps) planStands(ctx context.Context, w *unit, plan *state.Plan) (string, error) {
	c, err := s.GitHub.Comment(ctx, w.repo, plan.Comment)
	if errors.Is(err, forge.ErrNotFound) {
		return state.NotDeleted, nil
	}
	if err != nil {
		return "", fmt.Errorf("read the plan comment: %w", err)
	}
	if comment.BodyHash(c.Body) != plan.BodyHash {
		return state.NotEdited, nil
	}
	i, err := s.GitHub.Issue(ctx, w.repo, w.task.Key.Issue)
	if err != nil {
		return "", fmt.Errorf("read the issue: %w", err)
	}
	switch {
	case i.Closed:
		return state.NotClosed, nil
	case state.FreezeHash(i.Title, i.Body) != plan.IssueHash:
		return state.NotIssueChanged, nil
	}
	return "", nil
}

// thumbStands reports whether the person's 👍 is still there and was given after the comment.
func (s *Steps) thumbStands(ctx context.Context, t *state.Task, plan *state.Plan, by state.Person) (string, error) {
	thumbs, err := s.GitHub.Thumbs(ctx, t.Installation, []string{plan.CommentNode})
	if err != nil {
		return "", fmt.Errorf("read the reactions: %w", err)
	}
	if slices.ContainsFunc(thumbs.By[plan.CommentNode], func(th forge.Thumb) bool {
		return th.By.ID == by.ID && !th.At.Before(plan.PostedAt)
	}) {
		return "", nil
	}
	return state.NotRevoked, nil
}

// stillApproved asks again, at the start of what was approved, whether the approval holds. After the
// start a withdrawn 👍 does nothing.
func (s *Steps) stillApproved(ctx context.Context, w *unit) (bool, error) {
	a := w.task.Approval
	if a == nil || a.Via == state.ViaSettings {
		return true, nil
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
	why, err := s.thumbStands(ctx, w.task, plan, a.By)
	return why == "", err
}

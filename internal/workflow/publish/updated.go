package publish

import (
	"context"
	"fmt"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
)

// method returns how the branch is updated: by a rebase if somebody asked for one, or if the repository merges in no other way.
func (u *update) method() state.UpdateMethod {
	if u.read.Request.Rebase || u.m.OnlyRebases() {
		return state.UpdateRebase
	}
	return state.UpdateMerge
}

// stateUpdate adds to the event that GitHub was asked to update the branch, for the statement about the pull request. head is the new head, or "" if
// it is not known. A head that is not the result of this update leaves the result open: somebody has pushed. So does one that cannot be read: the
// update happened all the same.
func (s *Steps) stateUpdate(ctx context.Context, u *update, asked state.BranchUpdate, head string) {
	if u.Task.LastPublication() == nil {
		return // no statement lists its commits
	}
	out := state.Publication{Update: &asked}
	if u.Task.Approval != nil {
		out.Plan = u.Task.Approval.Hash
	}
	u.read.Published = &out
	if head == "" {
		return
	}
	if err := s.readResult(ctx, u, &out, head); err != nil {
		u.Log.Warn().Err(err).Msg("failed to read the result of an update; the statement about the pull request does not name it yet")
	}
}

// readResult adds a head to an update whose result it is.
func (s *Steps) readResult(ctx context.Context, u *update, out *state.Publication, head string) error {
	c, err := s.GitHub.Commit(ctx, u.Repo, head)
	if err != nil {
		return fmt.Errorf("read the new head of the branch: %w", err)
	}
	switch asked := out.Update; {
	case isMergeInto(c, asked.Before):
		asked.Method, out.Base = state.UpdateMerge, c.Parents[1]
	case asked.Method == state.UpdateRebase && len(c.Parents) == 1:
		onto, err := s.GitHub.ChangedSince(ctx, u.Repo, head, u.m.Base)
		if err != nil {
			return fmt.Errorf("compare the branch with its base: %w", err)
		}
		out.Base = onto.MergeBase
	default:
		return nil
	}
	out.Head, out.Tree = c.ID, c.Tree
	return nil
}

// isMergeInto reports whether a commit merges something into another one.
func isMergeInto(c forge.Commit, before string) bool {
	return len(c.Parents) == 2 && c.Parents[0] == before
}

// findUpdate finds the result of an update that GitHub had only begun when it answered. A head by somebody else is not the result.
func (s *Steps) findUpdate(ctx context.Context, u *update) error {
	p := u.Task.PendingUpdate()
	if p == nil || u.m.Head == p.Update.Before {
		return nil
	}
	c, err := s.GitHub.Commit(ctx, u.Repo, u.m.Head)
	if err != nil {
		return fmt.Errorf("read the new head of the branch: %w", err)
	}
	self, err := s.GitHub.Self(ctx)
	if err != nil {
		return fmt.Errorf("read the App: %w", err)
	}
	if isMergeInto(c, p.Update.Before) && c.Author.ID == self.BotID || p.Update.Method == state.UpdateRebase && c.Committer.ID == self.BotID {
		s.stateUpdate(ctx, u, *p.Update, u.m.Head)
	}
	return nil
}

// findLostUpdate finds what an earlier attempt of the job did, whose answer was lost, and reports whether there is such an update. Only a merge is
// recognized for certain: after a rebase nobody knows which head it replaced, so its result stays open.
func (s *Steps) findLostUpdate(ctx context.Context, u *update) (bool, error) {
	asked := state.BranchUpdate{Method: u.method(), By: u.read.Request.By, Before: u.Task.Branch.Head}
	last := u.Task.LastPublication()
	if !u.Job.Attempted || last == nil || u.Task.PendingUpdate() != nil {
		return false, nil
	}
	if asked.Before == u.read.Head { // the webhook about the new head came first
		asked.Before = last.Head
	}
	if asked.Before == u.read.Head {
		return false, nil
	}
	c, err := s.GitHub.Commit(ctx, u.Repo, u.read.Head)
	if err != nil {
		return false, fmt.Errorf("read the new head of the branch: %w", err)
	}
	self, err := s.GitHub.Self(ctx)
	if err != nil {
		return false, fmt.Errorf("read the App: %w", err)
	}
	switch {
	case isMergeInto(c, asked.Before) && c.Author.ID == self.BotID:
		s.stateUpdate(ctx, u, asked, u.read.Head)
	case asked.Method == state.UpdateRebase && c.Committer.ID == self.BotID:
		u.read.Rebased = true
		s.stateUpdate(ctx, u, asked, "")
	default:
		return false, nil
	}
	return true, nil
}

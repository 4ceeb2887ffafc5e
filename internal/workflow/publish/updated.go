package publish

import (
	"context"
	"fmt"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
)

// method returns how the branch is updated: by a rebase if somebody asked for one, or if the repository merges in no other way.
func (u *update) method() state.UpdateMethod {
	if u.read.Request.Rebase || u.m.OnlyRebases {
		return state.UpdateRebase
	}
	return state.UpdateMerge
}

// stateUpdate adds to the event that GitHub was asked to update the branch, for the statement about the pull request. head is the new head, or "" if
// it is not known. A head that is not the result of this update leaves the result open: somebody has pushed.
func (s *Steps) stateUpdate(ctx context.Context, u *update, asked state.BranchUpdate, head string) error {
	if u.Task.LastPublication() == nil {
		return nil // no statement lists its commits
	}
	out := state.Publication{Update: &asked}
	if u.Task.Approval != nil {
		out.Plan = u.Task.Approval.Hash
	}
	u.read.Published = &out
	if head == "" {
		return nil
	}
	c, err := s.GitHub.Commit(ctx, u.Repo, head)
	if err != nil {
		return fmt.Errorf("read the new head of the branch: %w", err)
	}
	switch {
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
		return s.stateUpdate(ctx, u, *p.Update, u.m.Head)
	}
	return nil
}

// findLostUpdate finds what an earlier attempt of the job did, whose answer was lost. Only a merge is recognized for certain: after a rebase nobody
// knows which head it replaced, so its result stays open.
func (s *Steps) findLostUpdate(ctx context.Context, u *update) error {
	asked := state.BranchUpdate{Method: u.method(), By: u.read.Request.By, Before: u.Task.Branch.Head}
	if last := u.Task.LastPublication(); asked.Before == u.read.Head && last != nil { // the webhook about the new head came first
		asked.Before = last.Head
	}
	if asked.Before == u.read.Head || u.Task.PendingUpdate() != nil {
		return nil
	}
	c, err := s.GitHub.Commit(ctx, u.Repo, u.read.Head)
	if err != nil {
		return fmt.Errorf("read the new head of the branch: %w", err)
	}
	self, err := s.GitHub.Self(ctx)
	if err != nil {
		return fmt.Errorf("read the App: %w", err)
	}
	switch {
	case isMergeInto(c, asked.Before) && c.Author.ID == self.BotID:
		return s.stateUpdate(ctx, u, asked, u.read.Head)
	case asked.Method == state.UpdateRebase && c.Committer.ID == self.BotID:
		return s.stateUpdate(ctx, u, asked, "")
	}
	return nil
}

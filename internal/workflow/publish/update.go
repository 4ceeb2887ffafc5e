package publish

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// workflowFolder has the files that GitHub lets only Apps with the permission workflows change.
const workflowFolder = ".github/workflows/"

// Update compares the pull request's branch with its base. It has GitHub add the base's newest commits if somebody asked for it, or if the
// pull request is approved and green, and GitHub knows of nothing else that is missing. It changes nothing on a conflict: that takes an agent.
//
// After an unknown outcome the next attempt reads the branch: if GitHub has updated it, there is nothing left to do.
func (s *Steps) Update(ctx context.Context, w *step.Attempt) (event.Event, error) {
	t := w.Task
	if t.PR == nil || t.PR.State != state.PROpen || t.Phase != state.PhasePROpen {
		return step.Done(), nil // it is compared again after the present work
	}
	m, err := s.GitHub.Merging(ctx, w.Repo, t.PR.Number)
	if err != nil {
		return event.Event{}, fmt.Errorf("read whether the pull request can be merged: %w", err)
	}
	if !m.Open {
		return step.Done(), nil
	}
	u := &update{Attempt: w, m: m, read: event.BaseRead{
		Known: t.Branch.Head, Head: t.Branch.Head, Base: m.Base, Request: t.PR.Update, Reads: w.Job.Args.Reads,
	}}
	if err := s.findUpdate(ctx, u); err != nil {
		return event.Event{}, err
	}
	asked := t.PR.Update != state.UpdateRequest{}
	if !w.Job.Attempted && m.Mergeable != nil && *m.Mergeable && m.Head == t.Branch.Head && !asked && !(t.IsMergeReady() && m.IsBehind) {
		return u.result(event.BaseBehind), nil // or it has all commits: either may stay so
	}
	return s.compare(ctx, u, asked)
}

// update is an attempt to update a pull request's branch.
type update struct {
	*step.Attempt
	m    forge.Merging
	read event.BaseRead
}

func (u *update) result(r event.BaseResult) event.Event {
	u.read.Result = r
	return event.Event{Payload: u.read}
}

// compare reads the branch's head and the base's commits that it lacks, and updates it if possible.
func (s *Steps) compare(ctx context.Context, u *update, asked bool) (event.Event, error) {
	t := u.Task
	head, err := s.GitHub.Head(ctx, u.Repo, t.Branch.Name)
	if errors.Is(err, forge.ErrNotFound) {
		return event.Event{}, step.BranchDeleted(t, err)
	}
	if err != nil {
		return event.Event{}, fmt.Errorf("read the branch: %w", err)
	}
	u.read.Head = head
	if isFound, err := s.findLostUpdate(ctx, u); err != nil || isFound {
		return u.result(event.BaseUpdated), err
	}
	missing, err := s.GitHub.ChangedSince(ctx, u.Repo, head, u.m.Base)
	switch {
	case err != nil:
		return event.Event{}, fmt.Errorf("compare the branch with its base: %w", err)
	case missing.AheadBy == 0 && u.Job.Attempted && head != t.Branch.Head: // it was updated, unless a person was faster
		return u.result(event.BaseUpdated), nil
	case missing.AheadBy == 0:
		return u.result(event.BaseCurrent), nil
	case u.m.Head != head || u.m.Mergeable == nil:
		return u.result(event.BaseUnknown), nil
	case !*u.m.Mergeable:
		return s.conflict(ctx, u, missing)
	case !asked && (head != t.Branch.Head || !t.IsMergeReady() || !u.m.IsBehind):
		return u.result(event.BaseBehind), nil
	case !asked && t.PR.Updates >= state.MaxUpdates:
		return u.result(event.BaseLimit), nil
	}
	return s.update(ctx, u, missing)
}

// conflict returns the event of a conflict. An agent's merge of a base that changed a workflow could not be published without the permission
// for that.
func (s *Steps) conflict(ctx context.Context, u *update, missing forge.Comparison) (event.Event, error) {
	var err error
	if u.read.Newest, err = s.GitHub.Head(ctx, u.Repo, u.m.Base); err != nil {
		return event.Event{}, fmt.Errorf("read the base: %w", err)
	}
	if u.read.Workflow, err = s.forbiddenWorkflow(ctx, u, missing); err != nil {
		return event.Event{}, err
	}
	return u.result(event.BaseConflict), nil
}

// update has GitHub update the branch: by a rebase if somebody asked for one, or if the repository merges in no other way. If GitHub refuses a
// rebase that nobody asked for, it merges.
func (s *Steps) update(ctx context.Context, u *update, missing forge.Comparison) (event.Event, error) {
	if _, err := u.MarkAttempted(ctx); err != nil {
		return event.Event{}, err
	}
	asked := u.Task.PR.Update.Rebase
	u.read.Rebased = u.method() == state.UpdateRebase
	head, err := s.GitHub.UpdatePRBranch(ctx, u.Repo, u.m.Node, u.read.Head, u.read.Rebased)
	if isRefusal(err) && u.read.Rebased && !asked {
		u.read.Rebased = false
		head, err = s.GitHub.UpdatePRBranch(ctx, u.Repo, u.m.Node, u.read.Head, false)
	}
	if isRefusal(err) {
		return s.refused(ctx, u, missing, err)
	}
	if err != nil {
		return event.Event{}, fmt.Errorf("update the branch: %w", err)
	}
	done := state.BranchUpdate{Method: state.UpdateMerge, By: u.read.Request.By, Before: u.read.Head}
	if u.read.Rebased {
		done.Method = state.UpdateRebase
	}
	if head == u.read.Head { // GitHub is about to do it
		head = ""
	}
	s.stateUpdate(ctx, u, done, head)
	if head == "" {
		u.read.Begun = true
		return u.result(event.BaseUnknown), nil
	}
	u.read.Head = head
	return u.result(event.BaseUpdated), nil
}

// isRefusal reports whether GitHub refused an update, and would do so again.
func isRefusal(err error) bool {
	class, _ := forge.Classify(err)
	return err != nil && class == forge.ClassPermanent
}

// refused finds out why GitHub refused an update, not from the text of its error: the branch may have moved, or the base may have changed
// workflows. Otherwise GitHub's reason is repeated.
func (s *Steps) refused(ctx context.Context, u *update, missing forge.Comparison, cause error) (event.Event, error) {
	u.Log.Warn().Err(cause).Msg("GitHub refused to update the branch of a pull request")
	now, err := s.GitHub.Merging(ctx, u.Repo, u.Task.PR.Number)
	if err != nil {
		return event.Event{}, fmt.Errorf("read whether the pull request can be merged: %w", err)
	}
	if now.Head != u.read.Head || now.Mergeable == nil || !*now.Mergeable {
		return u.result(event.BaseUnknown), nil // it is read again
	}
	if u.read.Workflow, err = s.forbiddenWorkflow(ctx, u, missing); err != nil {
		return event.Event{}, err
	}
	u.read.Refusal, _ = forge.Explain(cause)
	return u.result(event.BaseRefused), nil
}

// forbiddenWorkflow returns a workflow that the base changed and that errand may not push, or "".
func (s *Steps) forbiddenWorkflow(ctx context.Context, u *update, missing forge.Comparison) (string, error) {
	for _, f := range missing.Files {
		if !strings.HasPrefix(f.Path, workflowFolder) && !strings.HasPrefix(f.OldPath, workflowFolder) {
			continue
		}
		in, err := s.GitHub.Installation(ctx, u.Repo.Installation)
		if err != nil {
			return "", fmt.Errorf("read the App's permissions: %w", err)
		}
		if in.Permissions["workflows"] == "write" {
			return "", nil
		}
		return f.Path, nil
	}
	return "", nil
}

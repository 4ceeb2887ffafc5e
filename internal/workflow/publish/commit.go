package publish

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/settings"
)

// Commit creates the changeset's objects on GitHub. Objects are named by their content, so a repeated
// attempt creates nothing twice; existing objects are not created again.
func (s *Steps) Commit(ctx context.Context, w *step.Attempt) (event.Event, error) {
	set := *w.Task.Work
	cs, err := s.Files.LoadChangeset(set.Ref)
	if err != nil {
		return event.Event{}, fmt.Errorf("load the changeset: %w", err)
	}
	if e, ok, err := s.mayPublish(ctx, w, cs); !ok || err != nil {
		return e, err
	}
	if _, err := w.MarkAttempted(ctx); err != nil {
		return event.Event{}, err
	}
	if err := s.uploadLargeFiles(ctx, w, cs); err != nil {
		return event.Event{}, fmt.Errorf("upload large files: %w", err)
	}
	out, err := s.GitHub.CreateCommits(ctx, w.Repo, cs, cs.Base, maps.Clone(set.IDs))
	if errors.Is(err, forge.ErrTreeMismatch) {
		return event.Event{}, &step.Problem{Reason: "The tree that GitHub built from the commits differs from the VM's, so nothing was published.",
			Hint: "Comment `retry fresh` to do the work again on a new VM.", Class: state.ClassGitHub, Permanent: true, Err: err}
	}
	if err != nil {
		return event.Event{}, fmt.Errorf("create the commits on GitHub: %w", err)
	}
	if set.Digest, err = cs.Digest(); err != nil {
		return event.Event{}, err
	}
	set.IDs, set.Head, set.Tree, set.Published = out.IDs, out.Head, out.Tree, publishedCommits(cs, out.IDs)
	return event.Event{Payload: event.Committed{Work: &set}}, nil
}

// publishedCommits returns the newest commits of a changeset as they are on GitHub.
func publishedCommits(cs *changeset.Changeset, ids map[string]string) (list []state.PublishedCommit) {
	for _, c := range cs.Commits[max(0, len(cs.Commits)-state.MaxPublishedCommits):] {
		list = append(list, state.PublishedCommit{ID: ids[c.ID], Tree: c.Tree})
	}
	return list
}

// mayPublish compares a changeset that needs approval with the approved digest, and checks for the last time whether
// the approval is valid. If it is not, the event says so.
func (s *Steps) mayPublish(ctx context.Context, w *step.Attempt, cs *changeset.Changeset) (event.Event, bool, error) {
	t := w.Task
	if t.Settings.Publish != settings.PublishAfterApproval {
		return event.Event{}, true, nil
	}
	digest, err := cs.Digest()
	if err != nil {
		return event.Event{}, false, err
	}
	plan := t.PlanByHash(t.Work.Approved)
	if plan == nil || plan.Publish == nil || plan.Publish.Approved == nil || plan.Publish.Digest != digest ||
		plan.Publish.Tree != t.Work.LocalTree {
		return event.Event{}, false, &step.Problem{Reason: "The stored commits differ from the approved ones, so nothing was published.",
			Hint: "Comment `retry fresh` to do the work again on a new VM.", Class: state.ClassInternal, Permanent: true}
	}
	if w.Job.Attempted { // publishing has begun: withdrawing a 👍 no longer has an effect
		return event.Event{}, true, nil
	}
	why, err := s.Approvals.Recheck(ctx, w, plan.Publish.Approved)
	if err != nil {
		return event.Event{}, false, fmt.Errorf("check the approval before publishing: %w", err)
	}
	if why != "" {
		return event.Event{Payload: event.ApprovalRejected{
			Rejection: why, Candidate: state.Candidate{Approval: *plan.Publish.Approved},
		}}, false, nil
	}
	return event.Event{}, true, nil
}

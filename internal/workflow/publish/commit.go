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
)

// Commit creates the changeset's objects on GitHub. Objects are named by their content, so a repeated
// attempt creates nothing twice; existing objects are not created again.
func (s *Steps) Commit(ctx context.Context, w *step.Attempt) (state.Event, error) {
	set := *w.Task.Work
	cs, err := s.Files.LoadChangeset(set.Ref)
	if err != nil {
		return state.Event{}, fmt.Errorf("load the changeset: %w", err)
	}
	if e, ok, err := s.mayPublish(ctx, w, cs); !ok || err != nil {
		return e, err
	}
	if _, err := w.MarkAttempted(ctx); err != nil {
		return state.Event{}, err
	}
	if err := s.uploadLargeFiles(ctx, w, cs); err != nil {
		return state.Event{}, fmt.Errorf("upload large files: %w", err)
	}
	out, err := s.GitHub.CreateCommits(ctx, w.Repo, cs, cs.Base, maps.Clone(set.IDs))
	if errors.Is(err, forge.ErrTreeMismatch) {
		return state.Event{}, &step.Problem{Reason: "GitHub built another tree from the commits than the VM says it had, so nothing was published.",
			Hint: "Comment `retry fresh` to do the work again on a new VM.", Class: "github", Permanent: true, Err: err}
	}
	if err != nil {
		return state.Event{}, fmt.Errorf("make the commits on GitHub: %w", err)
	}
	set.IDs, set.Head, set.Tree = out.IDs, out.Head, out.Tree
	return state.Event{Kind: state.EventCommitted, JobReport: state.JobReport{Work: &set}}, nil
}

// mayPublish compares a changeset that needs approval with the approved digest, and checks for the last time whether the approval is
// valid. If it is not, the event says so.
func (s *Steps) mayPublish(ctx context.Context, w *step.Attempt, cs *changeset.Changeset) (state.Event, bool, error) {
	t := w.Task
	if t.Settings.Publish != state.PublishAfterApproval {
		return state.Event{}, true, nil
	}
	digest, err := cs.Digest()
	if err != nil {
		return state.Event{}, false, err
	}
	plan := t.PlanByHash(t.Work.Approved)
	if plan == nil || plan.Publish == nil || plan.Publish.Approved == nil || plan.Publish.Digest != digest || plan.Publish.Tree != t.Work.LocalTree {
		return state.Event{}, false, &step.Problem{Reason: "The commits that are stored are not the ones that were approved, so nothing was published.",
			Hint: "Comment `retry fresh` to do the work again on a new VM.", Class: "internal", Permanent: true}
	}
	if w.Job.Attempted { // it has begun: a 👍 that is taken back now does nothing
		return state.Event{}, true, nil
	}
	why, err := s.Approvals.Recheck(ctx, w, plan.Publish.Approved)
	if err != nil {
		return state.Event{}, false, fmt.Errorf("check the approval before publishing: %w", err)
	}
	if why != "" {
		return state.Event{Kind: state.EventNoApproval, JobReport: state.JobReport{Rejection: why}, Candidate: &state.Candidate{Approval: *plan.Publish.Approved}}, false, nil
	}
	return state.Event{}, true, nil
}

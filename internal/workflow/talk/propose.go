package talk

import (
	"context"
	"fmt"
	"slices"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state/event"
)

// CreateIssue creates an issue that an agent proposed and a person wanted, once: after an unknown outcome it is
// looked for by its hidden marker.
func (s *Steps) CreateIssue(ctx context.Context, w *step.Attempt) (event.Event, error) {
	n := w.Job.Args.Proposal
	if n < 1 || n > len(w.Task.Proposed) || w.Task.Proposed[n-1].Issue != 0 {
		return step.Done(), nil // of an earlier life, or there already
	}
	v, err := s.View.Read(ctx)
	if err != nil {
		return event.Event{}, err
	}
	v.Key = w.Task.Key.String() + "/" + w.Job.Key // it is looked for in the whole repository
	title, body := comment.Proposed(w.Task, &w.Task.Proposed[n-1], v)
	title, _ = s.Redact.Redact(title)
	body, _ = s.Redact.Redact(body)
	before, err := w.MarkAttempted(ctx)
	if err != nil {
		return event.Event{}, err
	}
	var issue forge.Issue
	if before {
		found, err := s.GitHub.FindIssues(ctx, w.Repo, comment.Marker(v.Key), since(w.Job).Add(-step.LookBack))
		if err != nil {
			return event.Event{}, fmt.Errorf("look for the proposed issue: %w", err)
		}
		found = slices.DeleteFunc(found, func(i forge.Issue) bool { // another proposal with this number, in a store that is lost
			return i.CreatedAt.Before(w.Job.Restored) && i.Title != title
		})
		if len(found) > 0 {
			issue = found[0]
		}
	}
	if issue.Number == 0 {
		if issue, err = s.GitHub.CreateIssue(ctx, w.Repo, title, body); err != nil {
			return event.Event{}, fmt.Errorf("create the proposed issue: %w", err)
		}
	}
	return event.Event{Payload: event.IssueCreated{N: n, Issue: issue.Number, URL: issue.URL, OnPR: w.Job.Args.OnPR}}, nil
}

package publish

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state/event"
)

// ClosePR closes a pull request that the task began anew without, if it is open. It can be repeated.
func (s *Steps) ClosePR(ctx context.Context, w *step.Attempt) (event.Event, error) {
	number, branch := w.Job.Args.Number, w.Job.Args.Branch
	if number == 0 { // a job of an earlier life may have opened it
		found, err := s.GitHub.PRByHead(ctx, w.Repo, branch)
		if err != nil {
			return event.Event{}, fmt.Errorf("look for a replaced pull request: %w", err)
		}
		if found == nil || !found.Open {
			return event.Event{Payload: event.PRReplaced{Branch: branch}}, nil
		}
		number = found.Number
	}
	if pr := w.Task.PR; pr != nil && pr.Number == number {
		return step.Done(), nil
	}
	before, err := w.MarkAttempted(ctx)
	if err != nil {
		return event.Event{}, err
	}
	pr, closed, err := s.closePR(ctx, w, number)
	if err != nil {
		return event.Event{}, err
	}
	return event.Event{Payload: event.PRReplaced{Number: number, URL: pr.URL, Branch: branch, Closed: closed || before && !pr.Merged}}, nil
}

// closePR closes a pull request if it is open. One that is gone counts as closed.
func (s *Steps) closePR(ctx context.Context, w *step.Attempt, number int) (pr forge.PR, closed bool, err error) {
	pr, err = s.GitHub.PR(ctx, w.Repo, number)
	switch {
	case errors.Is(err, forge.ErrNotFound):
		return forge.PR{}, false, nil
	case err != nil:
		return forge.PR{}, false, fmt.Errorf("read the replaced pull request: %w", err)
	case !pr.Open:
		return pr, false, nil
	}
	if err := s.GitHub.ClosePR(ctx, w.Repo, number); err != nil {
		return forge.PR{}, false, fmt.Errorf("close the replaced pull request: %w", err)
	}
	return pr, true, nil
}

// closeReplaced closes what the task began anew without, right before it opens or reopens its own pull request: whatever
// happened to the job that closes them, no issue gets two open ones.
func (s *Steps) closeReplaced(ctx context.Context, w *step.Attempt) error {
	for _, r := range w.Task.Replaced {
		if r.Number == 0 {
			continue
		}
		if _, _, err := s.closePR(ctx, w, r.Number); err != nil {
			return err
		}
	}
	return nil
}

// isObsolete reports whether the task ended or began anew since the job was queued.
func isObsolete(w *step.Attempt) bool {
	return w.Task.Ended() || !strings.HasPrefix(w.Job.Key, fmt.Sprintf("%d.", w.Task.Gen))
}

// opened returns the pull request that an obsolete job opened in an earlier attempt. It opens none.
func (s *Steps) opened(ctx context.Context, w *step.Attempt) (event.Event, error) {
	if !w.Job.Attempted || w.Task.PR != nil {
		return step.Done(), nil
	}
	branches := []string{w.Task.Branch.Name}
	if w.Task.Branch.Head == "" {
		branches = nil
	}
	for _, r := range w.Task.Replaced {
		if r.Number == 0 {
			branches = append(branches, r.Branch)
		}
	}
	for _, branch := range branches {
		found, err := s.GitHub.PRByHead(ctx, w.Repo, branch)
		if err != nil {
			return event.Event{}, fmt.Errorf("look for the pull request: %w", err)
		}
		if found != nil && found.Open {
			return event.Event{Payload: event.PROpened{PR: found.State(), Searched: true}}, nil
		}
	}
	return step.Done(), nil
}

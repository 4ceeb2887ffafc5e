package step

import (
	"context"
	"fmt"
	"regexp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// PRs finds errand's pull requests.
type PRs interface {
	Self
	PRByHead(ctx context.Context, r forge.Repo, branch string) (*forge.PR, error)
}

// FindPR returns a PRFound if errand has opened a pull request for the task's issue from its branch and the task does not know it, and it
// was not closed without a merge. That can be so only after errand was restored from a backup: otherwise a pull request from that branch is
// another task's.
func FindPR(ctx context.Context, github PRs, w *Attempt) (*event.PRFound, error) {
	t := w.Task
	if w.Job.Restored.IsZero() || t.PR != nil || t.Branch.Head != "" || t.Branch.Name == "" {
		return nil, nil
	}
	found, err := github.PRByHead(ctx, w.Repo, t.Branch.Name)
	if err != nil {
		return nil, fmt.Errorf("look for a pull request that the task does not know: %w", err)
	}
	if found == nil || found.State().State == state.PRClosed || t.IsReplacedPR(found.Number) || !isFor(t.Key.Issue, found.Body) {
		return nil, nil
	}
	me, err := github.Self(ctx)
	if err != nil || found.By.ID != me.BotID {
		return nil, err
	}
	return &event.PRFound{PR: found.State(), Head: found.Head}, nil
}

// isFor reports whether a pull request's text refers to an issue of its repository, as that of errand's pull requests always does.
func isFor(issue int, body string) bool {
	return regexp.MustCompile(fmt.Sprintf(`(?m)(^|[^\w/])#%d\b`, issue)).MatchString(body)
}

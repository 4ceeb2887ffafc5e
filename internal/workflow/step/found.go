package step

import (
	"context"
	"fmt"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// PRs finds errand's pull requests.
type PRs interface {
	Self
	PRByHead(ctx context.Context, r forge.Repo, branch string) (*forge.PR, error)
}

// FindPR returns a PRFound if errand has opened a pull request from the task's branch and the task does not know it, and it was not closed
// without a merge. That is so after errand was restored from a backup.
func FindPR(ctx context.Context, github PRs, w *Attempt) (*event.PRFound, error) {
	t := w.Task
	if t.PR != nil || t.Branch.Head != "" || t.Branch.Name == "" {
		return nil, nil
	}
	found, err := github.PRByHead(ctx, w.Repo, t.Branch.Name)
	if err != nil {
		return nil, fmt.Errorf("look for a pull request that the task does not know: %w", err)
	}
	if found == nil || found.State().State == state.PRClosed || t.IsReplacedPR(found.Number) {
		return nil, nil
	}
	me, err := github.Self(ctx)
	if err != nil || found.By.ID != me.BotID {
		return nil, err
	}
	return &event.PRFound{PR: found.State(), Head: found.Head}, nil
}

package launch

import (
	"context"
	"fmt"
	"time"

	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/internal/workflow/workspace"
	"github.com/errand-bot/errand/state"
)

// checkout puts the VM's checkout on the commit at which the run begins. Work of an earlier attempt that is not
// published yet is kept; otherwise the run begins at the published head, or at the base's newest commit. Whether the
// checkout has large files is noted in the workspace's place.
func (s *Steps) checkout(ctx context.Context, w *step.Attempt, ws *workspace.Workspace, l *state.Launch) error {
	t, vm := w.Task, ws.VM
	from, commit := t.Branch.Name, t.Branch.Head
	if commit == "" {
		from = t.Branch.Base
		head, err := s.baseHead(ctx, w)
		if err != nil {
			return fmt.Errorf("find the base's newest commit: %w", err)
		}
		commit = head
		if continuesWork(t, vm) {
			commit = t.Branch.BaseSHA // the work under way began there
		}
		l.BaseSHA = commit
	}
	src := ws.Source(from)
	if t.VM != nil && t.VM.Name == vm.Name && t.Branch.VMHead == commit {
		src.Ref = "" // it is there already: nothing is fetched
	}
	at, err := ws.Prepare(ctx, w, src, commit)
	if err != nil {
		return err
	}
	l.VMHead, ws.Place.LargeFiles = at.Head, at.LargeFiles
	if continuesWork(t, vm) && !at.Created {
		l.VMHead = workspace.Root(t) // at.Head is the agent's unpublished commit
		return nil                   // the base of the current work does not change
	}
	l.Root = commit
	if at.Created {
		return nil
	}
	l.VMHead = commit
	// Files that a planning run left behind must not reach the changeset.
	src.Ref = "" // as above
	if err = ws.Reset(ctx, src, commit, true); err != nil {
		return fmt.Errorf("reset the checkout to %s: %w", commit, err)
	}
	return nil
}

// continuesWork reports whether the VM holds unpublished work that this run continues: an earlier run of
// the same kind and round was on it, and nothing of it was published. Work from before people asked
// for a new plan is not continued; that of a review round is, which no plan precedes.
func continuesWork(t *state.Task, vm state.VM) bool {
	if t.Run.Kind != state.RunImplement && t.Run.Kind != state.RunReview {
		return false
	}
	for i := len(t.Runs) - 1; i >= 0; i-- {
		r := t.Runs[i]
		if r.Kind == t.Run.Kind && r.Round == t.Run.Round && !r.Started.IsZero() {
			return vm.Contains(r.VM) && (r.Kind == state.RunReview || !r.Started.Before(t.PlanningBegan()))
		}
	}
	return false
}

// baseFresh is how long a job uses the base's newest commit that it, or for the first run the job before, has
// read: no longer than errand takes to notice a push.
const baseFresh = 30 * time.Second

// baseHead returns the base's newest commit.
func (s *Steps) baseHead(ctx context.Context, w *step.Attempt) (string, error) {
	b := w.Task.Branch
	young := func(at time.Time) bool {
		age := s.Now().Sub(at)
		return age >= 0 && age < baseFresh
	}
	v := w.Job.Vetted
	switch {
	case w.Base != "" && young(w.BaseRead):
		return w.Base, nil
	case v != nil && v.Base != "" && young(v.At):
		return v.Base, nil // it was read for the comment or the approval that led to this run
	case b.BaseSHA != "" && young(b.BaseAt):
		return b.BaseSHA, nil // the job start has just read it
	}
	return s.GitHub.Head(ctx, w.Repo, b.Base)
}

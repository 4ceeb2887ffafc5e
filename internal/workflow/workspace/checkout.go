package workspace

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/runner/work"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
)

// Root returns the commit that GitHub and the VM both have: the one on which the VM's checkout was put. The
// published head may be newer, if somebody pushed meanwhile.
func Root(t *state.Task) string {
	switch {
	case t.Branch.Root != "":
		return t.Branch.Root
	case t.Branch.Head != "":
		return t.Branch.Head
	}
	return t.Branch.BaseSHA
}

// Base returns the commit with which checks compare: the pull request shows the differences from it, and
// sometimes fewer, after the base was merged in. It is errand's own record; a VM could name its own head.
func Base(t *state.Task) string { return cmp.Or(t.Branch.BaseSHA, Root(t)) }

// Source returns where the VM fetches a branch of the task's repository from: its own end of the tether.
func (ws *Workspace) Source(branch string) work.Source {
	return work.Source{
		URL:   fmt.Sprintf("%s/git/%s/%s", ws.Place.BaseURL, ws.task.Repo.Owner, ws.task.Repo.Name),
		Token: ws.open.Tether.VMToken(ws.VM.Name), Ref: "refs/heads/" + branch,
	}
}

// Prepare creates a checkout of the task's branch at a commit, or keeps the one that is there. If the branch was
// deleted, the error is a Problem that says so.
func (ws *Workspace) Prepare(ctx context.Context, w *step.Attempt, src work.Source, commit string) (work.Place, error) {
	me, err := ws.open.GitHub.Self(ctx)
	if err != nil {
		return work.Place{}, err
	}
	at, err := ws.open.Runner.Prepare(ctx, ws.VM.Name, work.PrepareSpec{
		Dir: ws.Place.Dir, Source: src, Branch: ws.task.Branch.Name, Base: commit,
		Config:   work.LFSConfig(ws.Place.Runner, strings.TrimSuffix(src.URL, ".git")),
		UserName: me.BotLogin, UserEmail: fmt.Sprintf("%d+%s@users.noreply.github.com", me.BotID, me.BotLogin),
	})
	if err != nil {
		return at, step.BranchGone(ctx, ws.open.GitHub, w, fmt.Errorf("prepare the checkout: %w", err))
	}
	return at, nil
}

// Reset puts the checkout on a published commit; clean also deletes files that git does not track.
func (ws *Workspace) Reset(ctx context.Context, src work.Source, commit string, clean bool) error {
	return ws.open.Runner.Reset(ctx, ws.VM.Name, work.ResetSpec{Dir: ws.Place.Dir, Source: src, Branch: ws.task.Branch.Name,
		Head: commit, Clean: clean})
}

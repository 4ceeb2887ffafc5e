package simgithub

import (
	"errors"
	"fmt"
	"slices"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

// BranchUpdate describes how to add the newest commits of its base to a pull request.
type BranchUpdate struct {
	Rebase bool   // move the commits onto the base, instead of merging it
	Head   string // required head; empty: not checked
}

// updateBranch merges the base into the branch of a pull request, or rebases its commits, and pushes the result. A merge is authored by the
// actor and committed and signed by GitHub; commits that are rebased keep their authors, and the actor commits them.
func (u refs) updateBranch(p *Pull, in BranchUpdate) error {
	r := p.issue.repo
	if err := u.x.need(r, "contents", "write", RoleWrite); err != nil {
		return err
	}
	if err := u.x.need(r, "pull_requests", "write", RoleRead); err != nil {
		return err
	}
	base := r.Git.Branch(p.Base)
	switch {
	case p.issue.State != "open":
		return errUnprocessable("The pull request is not open.")
	case in.Head != "" && in.Head != p.HeadSHA:
		return errUnprocessable("expected head sha didn’t match current head ref.")
	case r.Git.IsAncestor(base, p.HeadSHA):
		return errUnprocessable("There are no new commits on the base branch.")
	}
	update := u.mergeBase
	if in.Rebase {
		update = u.rebaseOnto
	}
	sha, err := update(p, base)
	if errors.Is(err, git.ErrConflict) {
		return errUnprocessable("merge conflict between base and head")
	}
	if err != nil {
		return err
	}
	return u.update(r, git.RefChange{Name: "refs/heads/" + p.Head, Before: p.HeadSHA, After: sha, Force: in.Rebase})
}

// mergeBase creates the merge of a base's commit into a pull request's branch.
func (u refs) mergeBase(p *Pull, base string) (string, error) {
	r := p.issue.repo
	tree, err := r.Git.MergeTree(p.HeadSHA, base)
	if err != nil {
		return "", err
	}
	sha, err := r.Git.WriteCommit(git.NewCommit{
		Tree: tree, Parents: []string{p.HeadSHA, base}, Message: fmt.Sprintf("Merge branch '%s' into %s", p.Base, p.Head),
		Author: u.x.identity(), Committer: u.x.s.webFlow(),
	})
	if err == nil {
		u.x.s.verified[sha] = true
	}
	return sha, err
}

// maxRebased is the maximum number of commits that are rebased.
const maxRebased = 100

// rebaseOnto creates the commits of a pull request's branch again on a base's commit, except merges and those that change nothing there.
func (u refs) rebaseOnto(p *Pull, base string) (string, error) {
	r := p.issue.repo
	list, err := r.Git.Commits(maxRebased+1, p.HeadSHA, "--no-merges", "--topo-order", "--not", base)
	if err != nil {
		return "", err
	}
	if len(list) > maxRebased {
		return "", errUnprocessable("This branch has too many commits to be rebased")
	}
	onto := r.Git.Commit(base)
	sha, tree := base, onto.Tree
	for _, c := range slices.Backward(list) {
		next, err := r.Git.CherryPickTree(sha, c)
		if err != nil {
			return "", err
		}
		if next == tree {
			continue
		}
		sha, err = r.Git.WriteCommit(git.NewCommit{Tree: next, Parents: []string{sha}, Message: c.Message, Author: c.Author, Committer: u.x.identity()})
		if err != nil {
			return "", err
		}
		tree = next
	}
	return sha, nil
}

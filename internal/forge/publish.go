package forge

import (
	"context"
	"fmt"
	"maps"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/changeset"
)

// Published is what Commit made. No branch points at it yet: see Move.
type Published struct {
	IDs  map[string]string // commit ids, local to published
	Head string            // published id of the changeset's head
	Tree string            // its tree, which is the VM's
}

// Commit makes a changeset's commits on GitHub as git objects, on top of the commit onto, which takes
// the place of the changeset's base. Authors are left out, so that GitHub signs the commits as the
// App's. Every commit's tree is compared with the one that the VM had: ErrTreeMismatch.
//
// Nothing that people see changes, so it may be repeated; known holds the ids that an earlier try
// returned, also beside an error, and those commits are not made again.
func (f *Forge) Commit(ctx context.Context, r Repo, cs *changeset.Changeset, onto string, known map[string]string) (Published, error) {
	p := Published{IDs: maps.Clone(known), Head: onto}
	if p.IDs == nil {
		p.IDs = map[string]string{}
	}
	u, err := f.begin(ctx, &call{name: "publish commits", kind: kindData, installation: r.Installation}, "to "+r.FullName())
	if err != nil {
		return p, err
	}
	b := &builder{u: u, repo: r, cs: cs, there: map[string]bool{}}
	if p.Tree = f.known.tree(r, onto); p.Tree == "" {
		if p.Tree, err = b.treeOf(onto); err != nil {
			return p, u.wrap(err)
		}
		f.known.noteTree(r, onto, p.Tree)
	}
	trees := map[string]string{cs.Base: p.Tree} // by local commit id
	published := map[string]string{cs.Base: onto}
	for i := range cs.Commits {
		c := &cs.Commits[i]
		id, ok := p.IDs[c.ID]
		if !ok {
			if id, err = b.commit(c, trees, published); err != nil {
				return p, u.wrap(fmt.Errorf("publish commit %s: %w", c.ID, err))
			}
			p.IDs[c.ID] = id
		}
		trees[c.ID], published[c.ID] = c.Tree, id
		p.Head, p.Tree = id, c.Tree
	}
	f.known.published(r, cs, onto, p)
	return p, nil
}

// builder makes git objects of one changeset.
type builder struct {
	u     *use
	repo  Repo
	cs    *changeset.Changeset
	there map[string]bool // blobs that GitHub has from this run of Commit
}

func (b *builder) treeOf(commit string) (string, error) {
	got, _, err := b.u.client.Git.GetCommit(b.u.ctx, b.repo.Owner, b.repo.Name, commit)
	if err != nil {
		return "", fmt.Errorf("read commit %s: %w", commit, err)
	}
	return got.GetTree().GetSHA(), nil
}

// commit makes one commit, whose first parent's tree is in trees, and returns its id.
func (b *builder) commit(c *changeset.Commit, trees, published map[string]string) (string, error) {
	if len(c.Parents) == 0 || published[c.Parents[0]] == "" {
		return "", fmt.Errorf("%w: its first parent is not part of the chain", ErrIncomplete)
	}
	tree, err := b.tree(trees[c.Parents[0]], c.Changes)
	if err != nil {
		return "", err
	}
	if tree != c.Tree {
		return "", fmt.Errorf("%w: %s instead of %s", ErrTreeMismatch, tree, c.Tree)
	}
	var parents []*github.Commit
	for _, p := range c.Parents {
		if id := published[p]; id != "" {
			p = id
		}
		parents = append(parents, &github.Commit{SHA: github.String(p)})
	}
	got, _, err := b.u.client.Git.CreateCommit(b.u.ctx, b.repo.Owner, b.repo.Name, &github.Commit{
		Message: &c.Message, Tree: &github.Tree{SHA: &tree}, Parents: parents,
	}, nil)
	if err != nil {
		return "", fmt.Errorf("create commit: %w", err)
	}
	return got.GetSHA(), nil
}

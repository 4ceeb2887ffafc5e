package publish

import (
	"context"
	"fmt"
	"maps"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/forge/client"
)

// Publisher publishes changesets on GitHub. It is safe for concurrent use. Every error is a *client.Error.
type Publisher struct {
	client *client.Client
	cache  *Cache
}

// New makes a Publisher that uses cache.
func New(c *client.Client, cache *Cache) *Publisher { return &Publisher{client: c, cache: cache} }

// Published is the result of CreateCommits. No branch points at it yet; see MoveBranch.
type Published struct {
	IDs  map[string]string // IDs of published commits by local ID
	Head string            // published ID of the changeset's head
	Tree string            // ID of its tree, the same as on the VM
}

// CreateCommits creates the commits of a changeset on GitHub as git objects, on top of the commit onto, which replaces
// the changeset's base. It omits authors, so that GitHub signs the commits as those of the App. If the tree of a commit
// differs from the tree on the VM, it returns ErrTreeMismatch.
//
// It changes nothing that people see, so it can be repeated. Commits in known, the IDs that an earlier attempt
// returned, possibly with an error, are not created again.
func (p *Publisher) CreateCommits(
	ctx context.Context, r client.Repo, cs *changeset.Changeset, onto string, known map[string]string,
) (Published, error) {
	out := Published{IDs: maps.Clone(known), Head: onto}
	if out.IDs == nil {
		out.IDs = map[string]string{}
	}
	op, err := p.client.Data(ctx, r.Installation, "publish commits", "to "+r.FullName())
	if err != nil {
		return out, err
	}
	b := &builder{op: op, repo: r, cs: cs, uploaded: map[string]bool{}}
	if out.Tree = p.cache.tree(r, onto); out.Tree == "" {
		if out.Tree, err = b.treeOf(onto); err != nil {
			return out, op.Wrap(err)
		}
		p.cache.RememberTree(r, onto, out.Tree)
	}
	trees := map[string]string{cs.Base: out.Tree} // by local commit ID
	published := map[string]string{cs.Base: onto}
	for i := range cs.Commits {
		c := &cs.Commits[i]
		id, ok := out.IDs[c.ID]
		if !ok {
			if id, err = b.commit(c, trees, published); err != nil {
				return out, op.Wrap(fmt.Errorf("publish commit %s: %w", c.ID, err))
			}
			out.IDs[c.ID] = id
		}
		trees[c.ID], published[c.ID] = c.Tree, id
		out.Head, out.Tree = id, c.Tree
	}
	p.cache.rememberPublished(r, cs, onto, out)
	return out, nil
}

// builder creates the git objects of one changeset.
type builder struct {
	op       *client.Operation
	repo     client.Repo
	cs       *changeset.Changeset
	uploaded map[string]bool // blobs that this call has uploaded
}

func (b *builder) treeOf(commit string) (string, error) {
	got, _, err := b.op.GitHub.Git.GetCommit(b.op.Ctx, b.repo.Owner, b.repo.Name, commit)
	if err != nil {
		return "", fmt.Errorf("read commit %s: %w", commit, err)
	}
	return got.GetTree().GetSHA(), nil
}

// commit creates one commit, whose first parent's tree is in trees, and returns its ID.
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
	got, _, err := b.op.GitHub.Git.CreateCommit(b.op.Ctx, b.repo.Owner, b.repo.Name, &github.Commit{
		Message: &c.Message, Tree: &github.Tree{SHA: &tree}, Parents: parents,
	}, nil)
	if err != nil {
		return "", fmt.Errorf("create commit: %w", err)
	}
	return got.GetSHA(), nil
}

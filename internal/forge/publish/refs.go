package publish

import (
	"cmp"
	"context"
	"errors"
	"net/http"

	"github.com/errand-bot/errand/internal/forge/client"
)

// noCommit is the object ID by which updateRefs means that a ref does not exist.
const noCommit = "0000000000000000000000000000000000000000"

const updateRefsMutation = `mutation($repo: ID!, $name: GitRefname!, $before: GitObjectID!, $after: GitObjectID!, $force: Boolean!) {
  updateRefs(input: {
    repositoryId: $repo, refUpdates: [{name: $name, beforeOid: $before, afterOid: $after, force: $force}]
  }) { clientMutationId }
}`

// Head returns the head commit of a branch, or ErrNotFound if the branch does not exist.
func (p *Publisher) Head(ctx context.Context, r client.Repo, branch string) (sha string, err error) {
	op, err := p.client.Read(ctx, r.Installation, "read branch", branch+" of "+r.FullName())
	if err != nil {
		return "", err
	}
	sha, err = readHead(op, r, branch)
	return sha, op.Wrap(err)
}

func readHead(op *client.Operation, r client.Repo, branch string) (string, error) {
	ref, _, err := op.GitHub.Git.GetRef(op.Ctx, r.Owner, r.Name, "heads/"+branch)
	if err != nil {
		return "", err
	}
	return ref.GetObject().GetSHA(), nil
}

// An update moves a branch from one commit to another. An empty before means that the branch does not exist.
type update struct{ branch, before, after string }

// MoveBranch moves a branch from the commit before to the commit after. An empty before creates the branch; after need
// not descend from before. If the branch is at another commit, it stays there and the error is a *MovedError.
// MoveBranch can be repeated: it succeeds if the branch is already at after, also after an unknown outcome.
func (p *Publisher) MoveBranch(ctx context.Context, r client.Repo, branch, before, after string) error {
	node, err := p.repositoryNode(ctx, r)
	if err != nil {
		return err
	}
	op, err := p.client.Write(ctx, r.Installation, "move branch", branch+" of "+r.FullName())
	if err != nil {
		return err
	}
	err = op.GraphQL(updateRefsMutation, map[string]any{
		"repo": node, "name": "refs/heads/" + branch, "before": cmp.Or(before, noCommit), "after": after, "force": true,
	}, nil)
	if err == nil {
		return nil
	}
	err = op.Wrap(err)
	if class, _ := client.Classify(err); class == client.ClassTemporary {
		return err // the branch was not changed
	}
	return confirmMove(op, r, update{branch, before, after}, err)
}

// confirmMove reads the branch after an update that failed, and returns nil if it took effect. It does not rely on the
// text of GitHub's error.
func confirmMove(op *client.Operation, r client.Repo, want update, cause error) error {
	head, err := readHead(op.Verify(), r, want.branch)
	switch {
	case client.StatusOf(err) == http.StatusNotFound:
		head = ""
	case err != nil:
		return cause
	}
	switch {
	case head == want.after:
		return nil
	case head == want.before:
		return cause
	}
	return op.Wrap(&MovedError{Branch: want.branch, Want: want.before, Head: head})
}

const repoNodeQuery = `query($owner: String!, $name: String!) { repository(owner: $owner, name: $name) { id } }`

// repositoryNode returns the GraphQL ID of a repository, which never changes.
func (p *Publisher) repositoryNode(ctx context.Context, r client.Repo) (string, error) {
	node := p.cache.repository(r)
	if node != "" {
		return node, nil
	}
	op, err := p.client.Read(ctx, r.Installation, "read repository", r.FullName())
	if err != nil {
		return "", err
	}
	var data struct {
		Repository struct {
			ID string `json:"id"`
		} `json:"repository"`
	}
	if err := op.GraphQL(repoNodeQuery, map[string]any{"owner": r.Owner, "name": r.Name}, &data); err != nil {
		return "", op.Wrap(err)
	}
	if data.Repository.ID == "" {
		return "", op.Wrap(errors.New("GitHub returned no ID"))
	}
	p.cache.RememberRepository(r, data.Repository.ID)
	return data.Repository.ID, nil
}

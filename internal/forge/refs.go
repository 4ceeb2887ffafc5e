package forge

import (
	"context"
	"errors"
)

// noCommit is how updateRefs writes that a ref does not exist.
const noCommit = "0000000000000000000000000000000000000000"

const updateRefsMutation = `mutation($repo: ID!, $name: GitRefname!, $before: GitObjectID!, $after: GitObjectID!, $force: Boolean!) {
  updateRefs(input: {repositoryId: $repo, refUpdates: [{name: $name, beforeOid: $before, afterOid: $after, force: $force}]}) { clientMutationId }
}`

// Move moves a branch from one commit to another, if it is still there: else it is ErrMoved, with a
// *MovedError that says where it is. An empty before creates the branch. It is never forced over
// somebody's work, but after need not descend from before. It may be repeated: a branch that is at
// after already is a success, which also settles an unknown outcome.
func (f *Forge) Move(ctx context.Context, r Repo, branch, before, after string) error {
	node, err := f.repoNode(ctx, r)
	if err != nil {
		return err
	}
	u, err := f.writes(ctx, r.Installation, "move branch", branch+" of "+r.FullName())
	if err != nil {
		return err
	}
	oid := func(sha string) string {
		if sha == "" {
			return noCommit
		}
		return sha
	}
	err = f.graphql(u, updateRefsMutation, map[string]any{
		"repo": node, "name": "refs/heads/" + branch, "before": oid(before), "after": after, "force": true,
	}, nil)
	if err == nil {
		return nil
	}
	err = u.wrap(err)
	if class, _ := Classify(err); class == ClassTemporary {
		return err // nothing was sent
	}
	return u.settle(r, branch, before, after, err)
}

// settle finds out what an update that was refused, or not answered, has left. The words of GitHub's
// refusal are not relied on.
func (u *use) settle(r Repo, branch, before, after string, cause error) error {
	look := &use{call: &call{op: u.op, name: u.name, kind: kindRead, installation: u.installation, now: u.now}, client: u.client}
	look.ctx = look.in(u.ctx)
	head, err := look.head(r, branch)
	switch {
	case statusOf(err) == 404:
		head = ""
	case err != nil:
		return cause
	}
	switch {
	case head == after:
		return nil
	case head == before:
		return cause
	}
	return u.wrap(&MovedError{Branch: branch, Want: before, Head: head})
}

const repoNodeQuery = `query($owner: String!, $name: String!) { repository(owner: $owner, name: $name) { id } }`

// repoNode returns a repository's GraphQL id, which never changes.
func (f *Forge) repoNode(ctx context.Context, r Repo) (string, error) {
	f.mu.Lock()
	node := f.nodes[r.ID]
	f.mu.Unlock()
	if node != "" {
		return node, nil
	}
	u, err := f.reads(ctx, r.Installation, "read repository", r.FullName())
	if err != nil {
		return "", err
	}
	var data struct {
		Repository struct {
			ID string `json:"id"`
		} `json:"repository"`
	}
	if err := f.graphql(u, repoNodeQuery, map[string]any{"owner": r.Owner, "name": r.Name}, &data); err != nil {
		return "", u.wrap(err)
	}
	if data.Repository.ID == "" {
		return "", u.wrap(errors.New("GitHub named no id"))
	}
	f.noteNode(r, data.Repository.ID)
	return data.Repository.ID, nil
}

// noteNode keeps the GraphQL id of a repository.
func (f *Forge) noteNode(r Repo, node string) {
	if r.ID == 0 || node == "" {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nodes[r.ID] = node
}

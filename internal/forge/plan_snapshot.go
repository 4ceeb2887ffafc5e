package forge

import (
	"context"

	"github.com/errand-bot/errand/internal/forge/client"
)

// PlanSnapshot is the state of a plan at one moment: its comment with the 👍 on it, and its issue.
type PlanSnapshot struct {
	Deleted bool // the comment does not exist
	// Approval is the comment that gave an approval, nil if it was not requested or does not exist.
	Approval    *Comment
	Comment     Comment
	Title, Body string // of the issue
	Closed      bool   // the issue is closed
	Head        string // of the requested branch, empty if it does not exist
}

const planSnapshotQuery = `query($id: ID!, $owner: String!, $name: String!, $branch: String!) {` + planSnapshotFields + `}`

const planAndApprovalQuery = `query($id: ID!, $approval: ID!, $owner: String!, $name: String!, $branch: String!) {` + planSnapshotFields + `
  approval: node(id: $approval) { ` + commentTextFields + ` }
}`

const planSnapshotFields = `
  node(id: $id) {
    __typename
    ... on IssueComment { ` + commentFields + ` issue { title body state } }
  }
  repository(owner: $owner, name: $name) { id ref(qualifiedName: $branch) { target ` + targetFields + ` } }
`

// PlanSnapshot reads the comment of a plan, the 👍 on it, its issue and the head of a branch in one request. comment is
// the GraphQL ID of the plan's comment, approval that of the comment that gave an approval, or empty.
func (f *Forge) PlanSnapshot(ctx context.Context, r Repo, comment, approval, branch string) (PlanSnapshot, error) {
	op, err := f.client.Read(ctx, r.Installation, "read a plan's comment", "in "+r.FullName())
	if err != nil {
		return PlanSnapshot{}, err
	}
	var data struct {
		Node *struct {
			commentNode
			Issue struct {
				Title string `json:"title"`
				Body  string `json:"body"`
				State string `json:"state"`
			} `json:"issue"`
		} `json:"node"`
		Approval   *commentNode `json:"approval"`
		Repository *struct {
			ID  string `json:"id"`
			Ref *struct {
				Target refTarget `json:"target"`
			} `json:"ref"`
		} `json:"repository"`
	}
	query, vars := planSnapshotQuery, map[string]any{"id": comment, "owner": r.Owner, "name": r.Name, "branch": "refs/heads/" + branch}
	if approval != "" {
		query, vars["approval"] = planAndApprovalQuery, approval
	}
	if err := client.IgnoreNotFound(op.GraphQL(query, vars, &data)); err != nil {
		return PlanSnapshot{}, op.Wrap(err)
	}
	if data.Repository == nil {
		return PlanSnapshot{}, op.Deleted()
	}
	f.cache.RememberRepository(r, data.Repository.ID)
	out := PlanSnapshot{}
	if ref := data.Repository.Ref; ref != nil {
		out.Head = ref.Target.OID
		f.cache.RememberTree(r, ref.Target.OID, ref.Target.Tree.OID)
	}
	if data.Approval != nil && data.Approval.ID != "" {
		v := data.Approval.comment()
		out.Approval = &v
	}
	if data.Node == nil || data.Node.ID == "" {
		out.Deleted = true
		return out, nil
	}
	out.Title, out.Body, out.Closed = data.Node.Issue.Title, data.Node.Issue.Body, data.Node.Issue.State == "CLOSED"
	out.Comment, err = withAllReactions(op, &data.Node.commentNode)
	return out, op.Wrap(err)
}

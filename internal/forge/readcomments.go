package forge

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/forge/client"
)

// commentFields omits the database ID, which exceeds GraphQL's Int. The URL contains it.
const commentFields = `id url body createdAt lastEditedAt isMinimized
      author ` + actorFields + ` editor ` + actorFields + `
      reactions(content: THUMBS_UP, first: 20, orderBy: {field: CREATED_AT, direction: DESC}) ` + reactionFields

// commentTextFields selects a comment, in a conversation or in a review thread, without its reactions.
const commentTextFields = `__typename
    ... on IssueComment { id url body createdAt lastEditedAt isMinimized author ` + actorFields + ` editor ` + actorFields + ` }
    ... on PullRequestReviewComment { id url body createdAt lastEditedAt isMinimized author ` + actorFields + ` editor ` + actorFields + ` }`

const commentAndHeadQuery = `query($id: ID!, $owner: String!, $name: String!, $branch: String!) {
  node(id: $id) { ` + commentTextFields + ` }
  repository(owner: $owner, name: $name) { id ref(qualifiedName: $branch) { target ` + targetFields + ` } }
}`

// CommentAndHead reads a comment, in a conversation or in a review thread, by its GraphQL ID, without its reactions,
// and the head of a branch. The comment is nil if it does not exist, the head is empty if the branch does not exist.
func (f *Forge) CommentAndHead(ctx context.Context, r Repo, node, branch string) (comment *Comment, head string, err error) {
	op, err := f.client.Read(ctx, r.Installation, "read a comment again", "in "+r.FullName())
	if err != nil {
		return nil, "", err
	}
	var data struct {
		Node       *commentNode `json:"node"`
		Repository *struct {
			Ref *struct {
				Target refTarget `json:"target"`
			} `json:"ref"`
		} `json:"repository"`
	}
	vars := map[string]any{"id": node, "owner": r.Owner, "name": r.Name, "branch": "refs/heads/" + branch}
	if err := client.IgnoreMissing(op.GraphQL(commentAndHeadQuery, vars, &data), "node"); err != nil {
		return nil, "", op.Wrap(err)
	}
	if data.Repository == nil {
		return nil, "", op.Deleted()
	}
	if ref := data.Repository.Ref; ref != nil {
		head = ref.Target.OID
		f.cache.RememberTree(r, head, ref.Target.Tree.OID)
	}
	if data.Node == nil || data.Node.ID == "" {
		return nil, head, nil
	}
	v := data.Node.comment()
	return &v, head, nil
}

const commentsQuery = `query($ids: [ID!]!) {
  nodes(ids: $ids) {
    __typename
    ... on IssueComment { ` + commentFields + ` }
  }
}`

type commentNode struct {
	ID           string       `json:"id"`
	URL          string       `json:"url"`
	Body         string       `json:"body"`
	CreatedAt    time.Time    `json:"createdAt"`
	LastEditedAt *time.Time   `json:"lastEditedAt"`
	IsMinimized  bool         `json:"isMinimized"`
	Author       *actor       `json:"author"`
	Editor       *actor       `json:"editor"`
	Reactions    reactionPage `json:"reactions"`
	// State of a review comment: PENDING or SUBMITTED. The App sees the comments of its own pending review.
	State string `json:"state"`
}

func (n *commentNode) comment() Comment {
	v := Comment{
		ID: idOf(n.URL), Node: n.ID, URL: n.URL, Author: n.Author.Person(), Body: n.Body, CreatedAt: n.CreatedAt, Minimized: n.IsMinimized,
	}
	if n.LastEditedAt != nil {
		editor := n.Editor.Person()
		v.EditedAt, v.Editor = *n.LastEditedAt, &editor
	}
	return v
}

// idOf returns the database ID at the end of a comment's address (…#issuecomment-123, …#discussion_r123), or 0 if there
// is none, as for the body of an issue.
func idOf(address string) int64 {
	_, fragment, _ := strings.Cut(address, "#")
	id, err := strconv.ParseInt(strings.TrimLeft(fragment, "abcdefghijklmnopqrstuvwxyz_-"), 10, 64)
	if err != nil {
		return 0
	}
	return id
}

// Comment reads a comment. It returns ErrNotFound if the comment was deleted.
func (f *Forge) Comment(ctx context.Context, r Repo, id int64) (Comment, error) {
	op, err := f.client.Read(ctx, r.Installation, "read comment", fmt.Sprintf("%d in %s", id, r.FullName()))
	if err != nil {
		return Comment{}, err
	}
	got, _, err := op.GitHub.Issues.GetComment(op.Ctx, r.Owner, r.Name, id)
	if err != nil {
		return Comment{}, op.Wrap(err)
	}
	list, err := readComments(op, []string{got.GetNodeID()})
	if err != nil {
		return Comment{}, op.Wrap(err)
	}
	if len(list) == 0 {
		return Comment{}, op.Deleted()
	}
	return list[0], nil
}

// readComments reads comments by GraphQL ID, and omits deleted ones.
func readComments(op *client.Operation, ids []string) ([]Comment, error) {
	var data struct {
		Nodes []*commentNode `json:"nodes"`
	}
	if err := client.IgnoreNotFound(op.GraphQL(commentsQuery, map[string]any{"ids": ids}, &data)); err != nil {
		return nil, err
	}
	var out []Comment
	var found ReactionPoll // its costs are not used
	for _, n := range data.Nodes {
		if n == nil || n.ID == "" {
			continue
		}
		v := n.comment()
		var err error
		if v.ThumbsUp, err = remainingReactions(op, n.ID, n.Reactions, &found); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

const issueTextQuery = `query($id: ID!) {
  node(id: $id) {
    __typename
    ... on Issue { id url body createdAt lastEditedAt author ` + actorFields + ` editor ` + actorFields + `
      reactions(content: THUMBS_UP, first: 20, orderBy: {field: CREATED_AT, direction: DESC}) ` + reactionFields + ` }
  }
}`

// IssueText reads the body of an issue as a Comment with ID 0.
func (f *Forge) IssueText(ctx context.Context, r Repo, node string) (Comment, error) {
	op, err := f.client.Read(ctx, r.Installation, "read the issue's text", "in "+r.FullName())
	if err != nil {
		return Comment{}, err
	}
	var data struct {
		Node *commentNode `json:"node"`
	}
	if err := client.IgnoreNotFound(op.GraphQL(issueTextQuery, map[string]any{"id": node}, &data)); err != nil {
		return Comment{}, op.Wrap(err)
	}
	if data.Node == nil || data.Node.ID == "" {
		return Comment{}, op.Deleted()
	}
	v := data.Node.comment()
	var found ReactionPoll
	v.ThumbsUp, err = remainingReactions(op, data.Node.ID, data.Node.Reactions, &found)
	return v, op.Wrap(err)
}

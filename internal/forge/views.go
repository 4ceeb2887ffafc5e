package forge

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge/client"
	"github.com/errand-bot/errand/state"
)

// viewFields leaves the database id out: it does not fit into GraphQL's Int any more. It is in the URL.
const viewFields = `id url body createdAt lastEditedAt isMinimized
      author ` + actorFields + ` editor ` + actorFields + `
      reactions(content: THUMBS_UP, first: 20, orderBy: {field: CREATED_AT, direction: DESC}) ` + reactionFields

// saidFields selects of a comment, in a conversation or in a review thread, what decides whether it says what it said.
const saidFields = `__typename
    ... on IssueComment { id url body createdAt lastEditedAt isMinimized author ` + actorFields + ` editor ` + actorFields + ` }
    ... on PullRequestReviewComment { id url body createdAt lastEditedAt isMinimized author ` + actorFields + ` editor ` + actorFields + ` }`

const saidQuery = `query($id: ID!, $owner: String!, $name: String!, $branch: String!) {
  node(id: $id) { ` + saidFields + ` }
  repository(owner: $owner, name: $name) { id ref(qualifiedName: $branch) { target ` + targetFields + ` } }
}`

// CommentAndHead reads a person's comment, in a conversation or in a review thread, by its GraphQL id, without the reactions to it, and where
// a branch is. The comment is nil if it does not exist any more, head is empty if the branch does not.
func (f *Forge) CommentAndHead(ctx context.Context, r Repo, node, branch string) (said *Comment, head string, err error) {
	op, err := f.client.Read(ctx, r.Installation, "read a comment again", "in "+r.FullName())
	if err != nil {
		return nil, "", err
	}
	var data struct {
		Node       *viewNode `json:"node"`
		Repository *struct {
			Ref *struct {
				Target refTarget `json:"target"`
			} `json:"ref"`
		} `json:"repository"`
	}
	vars := map[string]any{"id": node, "owner": r.Owner, "name": r.Name, "branch": "refs/heads/" + branch}
	if err := client.IgnoreMissing(op.GraphQL(saidQuery, vars, &data), "node"); err != nil {
		return nil, "", op.Wrap(err)
	}
	if data.Repository == nil {
		return nil, "", op.Deleted()
	}
	if ref := data.Repository.Ref; ref != nil {
		head = ref.Target.OID
		f.cache.NoteTree(r, head, ref.Target.Tree.OID)
	}
	if data.Node == nil || data.Node.ID == "" {
		return nil, head, nil
	}
	v := data.Node.view()
	return &v, head, nil
}

const viewsQuery = `query($ids: [ID!]!) {
  nodes(ids: $ids) {
    __typename
    ... on IssueComment { ` + viewFields + ` }
  }
}`

type viewNode struct {
	ID           string       `json:"id"`
	URL          string       `json:"url"`
	Body         string       `json:"body"`
	CreatedAt    time.Time    `json:"createdAt"`
	LastEditedAt *time.Time   `json:"lastEditedAt"`
	IsMinimized  bool         `json:"isMinimized"`
	Author       *actor       `json:"author"`
	Editor       *actor       `json:"editor"`
	Reactions    reactionPage `json:"reactions"`
}

func (n *viewNode) view() Comment {
	v := Comment{
		ID: idOf(n.URL), Node: n.ID, URL: n.URL, Author: n.Author.person(), Body: n.Body, CreatedAt: n.CreatedAt, Minimized: n.IsMinimized,
	}
	if n.LastEditedAt != nil {
		editor := n.Editor.person()
		v.EditedAt, v.Editor = *n.LastEditedAt, &editor
	}
	return v
}

// idOf reads the database id at the end of a comment's address: …#issuecomment-123, …#discussion_r123.
// An address without one is an issue's own text: 0.
func idOf(address string) int64 {
	_, fragment, _ := strings.Cut(address, "#")
	id, err := strconv.ParseInt(strings.TrimLeft(fragment, "abcdefghijklmnopqrstuvwxyz_-"), 10, 64)
	if err != nil {
		return 0
	}
	return id
}

// Comment reads one comment as it is now. A deleted one is ErrNotFound.
func (f *Forge) Comment(ctx context.Context, r Repo, id int64) (Comment, error) {
	op, err := f.client.Read(ctx, r.Installation, "read comment", fmt.Sprintf("%d in %s", id, r.FullName()))
	if err != nil {
		return Comment{}, err
	}
	got, _, err := op.GitHub.Issues.GetComment(op.Ctx, r.Owner, r.Name, id)
	if err != nil {
		return Comment{}, op.Wrap(err)
	}
	list, err := views(op, []string{got.GetNodeID()})
	if err != nil {
		return Comment{}, op.Wrap(err)
	}
	if len(list) == 0 {
		return Comment{}, op.Deleted()
	}
	return list[0], nil
}

// views reads comments by GraphQL ids; those that are gone are left out.
func views(op *client.Operation, ids []string) ([]Comment, error) {
	var data struct {
		Nodes []*viewNode `json:"nodes"`
	}
	if err := client.IgnoreNotFound(op.GraphQL(viewsQuery, map[string]any{"ids": ids}, &data)); err != nil {
		return nil, err
	}
	var out []Comment
	var found ReactionPoll // the costs are of no interest here
	for _, n := range data.Nodes {
		if n == nil || n.ID == "" {
			continue
		}
		v := n.view()
		var err error
		if v.ThumbsUp, err = restOfThumbs(op, n.ID, n.Reactions, &found); err != nil {
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

// IssueText reads an issue's own text as it is now, as a CommentView with ID 0.
func (f *Forge) IssueText(ctx context.Context, r Repo, node string) (Comment, error) {
	op, err := f.client.Read(ctx, r.Installation, "read the issue's text", "in "+r.FullName())
	if err != nil {
		return Comment{}, err
	}
	var data struct {
		Node *viewNode `json:"node"`
	}
	if err := client.IgnoreNotFound(op.GraphQL(issueTextQuery, map[string]any{"id": node}, &data)); err != nil {
		return Comment{}, op.Wrap(err)
	}
	if data.Node == nil || data.Node.ID == "" {
		return Comment{}, op.Deleted()
	}
	v := data.Node.view()
	var found ReactionPoll
	v.ThumbsUp, err = restOfThumbs(op, data.Node.ID, data.Node.Reactions, &found)
	return v, op.Wrap(err)
}

// Issue is an issue, or the issue side of a pull request.
type Issue struct {
	state.Issue
	Number      int
	URL         string
	Assignees   []state.Person
	IsPR        bool
	Locked      bool
	NoRelations bool // GitHub says that it has neither dependencies nor sub-issues; false if it does not say
	CreatedAt   time.Time
	UpdatedAt   time.Time // also by a comment
	ClosedAt    time.Time
}

func issueState(i *github.Issue) Issue {
	out := Issue{
		Issue: state.Issue{
			Node: i.GetNodeID(), Title: i.GetTitle(), Body: i.GetBody(), Author: person(i.User),
			Milestone: i.GetMilestone().GetTitle(), Closed: i.GetState() == "closed",
		},
		Number: i.GetNumber(), URL: i.GetHTMLURL(), IsPR: i.IsPullRequest(), Locked: i.GetLocked(),
		CreatedAt: i.GetCreatedAt().Time, UpdatedAt: i.GetUpdatedAt().Time, ClosedAt: i.GetClosedAt().Time,
	}
	for _, l := range i.Labels {
		out.Labels = append(out.Labels, l.GetName())
	}
	for _, a := range i.Assignees {
		out.Assignees = append(out.Assignees, person(a))
	}
	return out
}

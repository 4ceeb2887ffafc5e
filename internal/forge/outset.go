package forge

import (
	"context"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/forge/client"
)

// IssueSnapshot is all that GraphQL can tell at once of an issue and its repository before work on it begins.
type IssueSnapshot struct {
	DefaultBranch string // empty in an empty repository
	Head          string // its newest commit
	// Config is the file that was asked for as the default branch has it; without one, OrgConfig is
	// that of OWNER/.github, where the App need not be installed. nil: there is none. They are not cut.
	Config, OrgConfig []byte
	Text              Comment    // the issue's own
	Comments          []Comment  // all, oldest first, each read in one piece
	Linked            []LinkedPR // by mention or by a closing keyword, each once
}

const blobFields = `{ __typename ... on Blob { oid text isBinary isTruncated } }`

const commentPageFields = `{ pageInfo { hasNextPage endCursor } nodes { ` + viewFields + ` } }`

const linkedFields = `{ number title url state merged author ` + actorFields + ` repository { nameWithOwner } }`

const outsetQuery = `query($owner: String!, $name: String!, $number: Int!, $file: String!) {
  repository(owner: $owner, name: $name) {
    id
    defaultBranchRef { name target ` + targetFields + ` }
    object(expression: $file) ` + blobFields + `
    issue(number: $number) {
      id url body createdAt lastEditedAt author ` + actorFields + ` editor ` + actorFields + `
      reactions(content: THUMBS_UP, first: 20, orderBy: {field: CREATED_AT, direction: DESC}) ` + reactionFields + `
      comments(first: 100) ` + commentPageFields + `
      closedByPullRequestsReferences(first: 100, includeClosedPrs: true) { pageInfo { hasNextPage endCursor } nodes ` + linkedFields + ` }
      timelineItems(first: 100, itemTypes: [CROSS_REFERENCED_EVENT]) {
        pageInfo { hasNextPage endCursor }
        nodes { __typename ... on CrossReferencedEvent { source { __typename ... on PullRequest ` + linkedFields + ` } } }
      }
    }
  }
  org: repository(owner: $owner, name: ".github") { object(expression: $file) ` + blobFields + ` }
}`

const moreCommentsQuery = `query($id: ID!, $after: String) {
  node(id: $id) { __typename ... on Issue { comments(first: 100, after: $after) ` + commentPageFields + ` } }
}`

type blobNode struct {
	Type        string  `json:"__typename"`
	OID         string  `json:"oid"`
	Text        *string `json:"text"`
	IsTruncated bool    `json:"isTruncated"`
}

type commentPage struct {
	PageInfo pageInfo    `json:"pageInfo"`
	Nodes    []*viewNode `json:"nodes"`
}

type mentionPage struct {
	PageInfo pageInfo `json:"pageInfo"`
	Nodes    []struct {
		Source struct {
			Type string `json:"__typename"`
			linkedNode
		} `json:"source"`
	} `json:"nodes"`
}

type outsetIssue struct {
	viewNode
	Comments   commentPage `json:"comments"`
	Closing    closingPage `json:"closedByPullRequestsReferences"`
	Mentioning mentionPage `json:"timelineItems"`
}

type outsetAnswer struct {
	Repository *struct {
		ID               string `json:"id"`
		DefaultBranchRef *struct {
			Name   string    `json:"name"`
			Target refTarget `json:"target"`
		} `json:"defaultBranchRef"`
		Object *blobNode    `json:"object"`
		Issue  *outsetIssue `json:"issue"`
	} `json:"repository"`
	Org *struct {
		Object *blobNode `json:"object"`
	} `json:"org"`
}

// targetFields selects what refTarget needs.
const targetFields = `{ oid ... on Commit { tree { oid } } }`

type refTarget struct {
	OID  string `json:"oid"`
	Tree struct {
		OID string `json:"oid"`
	} `json:"tree"`
}

// IssueSnapshot reads an issue, its discussion, what is linked to it, the head of the default branch and a
// file of that branch in one request; only what is unusually long takes further ones.
func (f *Forge) IssueSnapshot(ctx context.Context, r Repo, number int, file string) (IssueSnapshot, error) {
	op, err := f.client.Read(ctx, r.Installation, "read the issue's discussion", about(r, number))
	if err != nil {
		return IssueSnapshot{}, err
	}
	var data outsetAnswer
	vars := map[string]any{"owner": r.Owner, "name": r.Name, "number": number, "file": "HEAD:" + file}
	answered := op.GraphQL(outsetQuery, vars, &data)
	if err := client.IgnoreMissing(answered, "org"); err != nil {
		return IssueSnapshot{}, op.Wrap(err)
	}
	if data.Repository == nil || data.Repository.Issue == nil {
		return IssueSnapshot{}, op.Deleted()
	}
	f.cache.NoteRepository(r, data.Repository.ID)
	out := IssueSnapshot{}
	if b := data.Repository.DefaultBranchRef; b != nil {
		out.DefaultBranch, out.Head = b.Name, b.Target.OID
		f.cache.NoteTree(r, b.Target.OID, b.Target.Tree.OID)
	}
	if out.Config, err = f.fileOf(ctx, r, data.Repository.Object, file); err != nil {
		return IssueSnapshot{}, err
	}
	switch {
	case out.Config != nil:
	case data.Org == nil && answered != nil && client.Forbidden(answered): // GraphQL may be stricter than REST about what is public
		if out.OrgConfig, err = f.orgFile(ctx, r, file); err != nil {
			return IssueSnapshot{}, err
		}
	case data.Org != nil:
		if out.OrgConfig, err = f.fileOf(ctx, Repo{Installation: r.Installation, Owner: r.Owner, Name: ".github"}, data.Org.Object, file); err != nil {
			return IssueSnapshot{}, err
		}
	}
	err = discussion(op, data.Repository.Issue, &out)
	if err == nil {
		err = linked(op, r, number, data.Repository.Issue, &out)
	}
	return out, op.Wrap(err)
}

// fileOf is the content of a file that a query found; what the query does not show whole is read.
func (f *Forge) fileOf(ctx context.Context, r Repo, b *blobNode, path string) ([]byte, error) {
	if b == nil || b.Type != "Blob" {
		return nil, nil
	}
	if b.Text != nil && !b.IsTruncated {
		return []byte(*b.Text), nil
	}
	content, _, err := f.File(ctx, r, "", path)
	return content, err
}

// discussion fills in the issue's text and all its comments.
func discussion(op *client.Operation, i *outsetIssue, out *IssueSnapshot) (err error) {
	if out.Text, err = whole(op, &i.viewNode); err != nil {
		return err
	}
	page := i.Comments
	for range client.MaxPages {
		for _, n := range page.Nodes {
			if n == nil || n.ID == "" {
				continue
			}
			v, err := whole(op, n)
			if err != nil {
				return err
			}
			out.Comments = append(out.Comments, v)
		}
		if !page.PageInfo.HasNextPage {
			break
		}
		var data struct {
			Node *struct {
				Comments commentPage `json:"comments"`
			} `json:"node"`
		}
		if err := op.GraphQL(moreCommentsQuery, map[string]any{"id": i.ID, "after": page.PageInfo.EndCursor}, &data); err != nil {
			return err
		}
		if data.Node == nil {
			return op.Deleted()
		}
		page = data.Node.Comments
	}
	return nil
}

// whole is a comment with all its 👍.
func whole(op *client.Operation, n *viewNode) (Comment, error) {
	v := n.view()
	var found ReactionPoll // the costs are of no interest here
	var err error
	v.ThumbsUp, err = restOfThumbs(op, n.ID, n.Reactions, &found)
	return v, err
}

// linked fills in the pull requests; lists of more than a page are read from the start.
func linked(op *client.Operation, r Repo, number int, i *outsetIssue, out *IssueSnapshot) (err error) {
	closing := i.Closing.prs()
	if i.Closing.PageInfo.HasNextPage {
		if closing, err = closingPRs(op, i.ID); err != nil {
			return err
		}
	}
	var mentions []LinkedPR
	for _, n := range i.Mentioning.Nodes {
		if n.Source.Type == "PullRequest" {
			mentions = append(mentions, n.Source.pr())
		}
	}
	if i.Mentioning.PageInfo.HasNextPage {
		if mentions, err = mentioningPRs(op, r, number); err != nil {
			return err
		}
	}
	out.Linked = withMentions(closing, mentions)
	return nil
}

// withMentions joins the two lists.
func withMentions(closing, mentions []LinkedPR) []LinkedPR {
	for _, m := range mentions {
		same := func(o LinkedPR) bool { return o.Number == m.Number && strings.EqualFold(o.Repo, m.Repo) }
		if !slices.ContainsFunc(closing, same) {
			closing = append(closing, m)
		}
	}
	return closing
}

// PlanSnapshot is how a plan stands at one moment: its comment, the 👍 on it, and its issue.
type PlanSnapshot struct {
	Deleted bool // the comment
	// Approval is the comment that gave an approval, nil if it was not asked for or does not exist any more.
	Approval    *Comment
	Comment     Comment
	Title, Body string // of the issue
	Closed      bool   // the issue
	Head        string // newest commit of the branch that was asked for, empty if there is none
}

const standingQuery = `query($id: ID!, $owner: String!, $name: String!, $branch: String!) {` + standingFields + `}`

const standingAndSaidQuery = `query($id: ID!, $said: ID!, $owner: String!, $name: String!, $branch: String!) {` + standingFields + `
  said: node(id: $said) { ` + saidFields + ` }
}`

const standingFields = `
  node(id: $id) {
    __typename
    ... on IssueComment { ` + viewFields + ` issue { title body state } }
  }
  repository(owner: $owner, name: $name) { id ref(qualifiedName: $branch) { target ` + targetFields + ` } }
`

// PlanSnapshot reads the comment of a plan by its GraphQL id, the 👍 on it and its issue in one piece, and
// where a branch is; with said, the GraphQL id of the comment that gave an approval, that comment as well.
func (f *Forge) PlanSnapshot(ctx context.Context, r Repo, comment, said, branch string) (PlanSnapshot, error) {
	op, err := f.client.Read(ctx, r.Installation, "read a plan's comment", "in "+r.FullName())
	if err != nil {
		return PlanSnapshot{}, err
	}
	var data struct {
		Node *struct {
			viewNode
			Issue struct {
				Title string `json:"title"`
				Body  string `json:"body"`
				State string `json:"state"`
			} `json:"issue"`
		} `json:"node"`
		Said       *viewNode `json:"said"`
		Repository *struct {
			ID  string `json:"id"`
			Ref *struct {
				Target refTarget `json:"target"`
			} `json:"ref"`
		} `json:"repository"`
	}
	query, vars := standingQuery, map[string]any{"id": comment, "owner": r.Owner, "name": r.Name, "branch": "refs/heads/" + branch}
	if said != "" {
		query, vars["said"] = standingAndSaidQuery, said
	}
	if err := client.IgnoreNotFound(op.GraphQL(query, vars, &data)); err != nil {
		return PlanSnapshot{}, op.Wrap(err)
	}
	if data.Repository == nil {
		return PlanSnapshot{}, op.Deleted()
	}
	f.cache.NoteRepository(r, data.Repository.ID)
	out := PlanSnapshot{}
	if ref := data.Repository.Ref; ref != nil {
		out.Head = ref.Target.OID
		f.cache.NoteTree(r, ref.Target.OID, ref.Target.Tree.OID)
	}
	if data.Said != nil && data.Said.ID != "" {
		v := data.Said.view()
		out.Approval = &v
	}
	if data.Node == nil || data.Node.ID == "" {
		out.Deleted = true
		return out, nil
	}
	out.Title, out.Body, out.Closed = data.Node.Issue.Title, data.Node.Issue.Body, data.Node.Issue.State == "CLOSED"
	out.Comment, err = whole(op, &data.Node.viewNode)
	return out, op.Wrap(err)
}

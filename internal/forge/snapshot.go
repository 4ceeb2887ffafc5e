package forge

import (
	"context"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/forge/client"
)

// IssueSnapshot is an issue with its discussion and the data of its repository that a task needs at its start.
type IssueSnapshot struct {
	DefaultBranch string // empty in an empty repository
	Head          string // of the default branch
	// Config is the requested file of the default branch. If it is nil, because there is none, OrgConfig is the file of
	// OWNER/.github, where the App need not be installed. Neither is truncated.
	Config, OrgConfig []byte
	Text              Comment    // body of the issue
	Comments          []Comment  // all of them, oldest first
	Linked            []LinkedPR // by mention or closing keyword, without duplicates
}

const blobFields = `{ __typename ... on Blob { oid text isBinary isTruncated } }`

const commentPageFields = `{ pageInfo { hasNextPage endCursor } nodes { ` + commentFields + ` } }`

const linkedFields = `{ number title url state merged author ` + actorFields + ` repository { nameWithOwner } }`

const issueSnapshotQuery = `query($owner: String!, $name: String!, $number: Int!, $file: String!) {
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
	PageInfo pageInfo       `json:"pageInfo"`
	Nodes    []*commentNode `json:"nodes"`
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

type issueNode struct {
	commentNode
	Comments   commentPage `json:"comments"`
	Closing    closingPage `json:"closedByPullRequestsReferences"`
	Mentioning mentionPage `json:"timelineItems"`
}

type issueSnapshotData struct {
	Repository *struct {
		ID               string `json:"id"`
		DefaultBranchRef *struct {
			Name   string    `json:"name"`
			Target refTarget `json:"target"`
		} `json:"defaultBranchRef"`
		Object *blobNode  `json:"object"`
		Issue  *issueNode `json:"issue"`
	} `json:"repository"`
	Org *struct {
		Object *blobNode `json:"object"`
	} `json:"org"`
}

// targetFields selects the fields of refTarget.
const targetFields = `{ oid ... on Commit { tree { oid } } }`

type refTarget struct {
	OID  string `json:"oid"`
	Tree struct {
		OID string `json:"oid"`
	} `json:"tree"`
}

// IssueSnapshot reads an issue, its discussion, linked pull requests, the head of the default branch and a file of that
// branch in one request, and in further requests if there is more than one page.
func (f *Forge) IssueSnapshot(ctx context.Context, r Repo, number int, file string) (IssueSnapshot, error) {
	op, err := f.client.Read(ctx, r.Installation, "read the issue's discussion", onIssue(r, number))
	if err != nil {
		return IssueSnapshot{}, err
	}
	var data issueSnapshotData
	vars := map[string]any{"owner": r.Owner, "name": r.Name, "number": number, "file": "HEAD:" + file}
	queryErr := op.GraphQL(issueSnapshotQuery, vars, &data)
	if err := client.IgnoreMissing(queryErr, "org"); err != nil {
		return IssueSnapshot{}, op.Wrap(err)
	}
	if data.Repository == nil || data.Repository.Issue == nil {
		return IssueSnapshot{}, op.Deleted()
	}
	f.cache.RememberRepository(r, data.Repository.ID)
	out := IssueSnapshot{}
	if b := data.Repository.DefaultBranchRef; b != nil {
		out.DefaultBranch, out.Head = b.Name, b.Target.OID
		f.cache.RememberTree(r, b.Target.OID, b.Target.Tree.OID)
	}
	if out.Config, err = f.fileOf(ctx, r, data.Repository.Object, file); err != nil {
		return IssueSnapshot{}, err
	}
	switch {
	case out.Config != nil:
	case data.Org == nil && queryErr != nil && client.Forbidden(queryErr): // GraphQL may be stricter than REST about what is public
		if out.OrgConfig, err = f.OrgFile(ctx, r, file); err != nil {
			return IssueSnapshot{}, err
		}
	case data.Org != nil:
		if out.OrgConfig, err = f.fileOf(ctx, orgRepo(r), data.Org.Object, file); err != nil {
			return IssueSnapshot{}, err
		}
	}
	err = readDiscussion(op, data.Repository.Issue, &out)
	if err == nil {
		err = readLinkedPRs(op, r, number, data.Repository.Issue, &out)
	}
	return out, op.Wrap(err)
}

// fileOf returns the content of a file from a query. It reads the file if the query did not return all of it.
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

// readDiscussion fills in the issue's body and all its comments.
func readDiscussion(op *client.Operation, i *issueNode, out *IssueSnapshot) (err error) {
	if out.Text, err = withAllReactions(op, &i.commentNode); err != nil {
		return err
	}
	page := i.Comments
	for range client.MaxPages {
		for _, n := range page.Nodes {
			if n == nil || n.ID == "" {
				continue
			}
			v, err := withAllReactions(op, n)
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

// withAllReactions returns a comment with all 👍 on it.
func withAllReactions(op *client.Operation, n *commentNode) (Comment, error) {
	v := n.comment()
	var found ReactionPoll // its costs are not used
	var err error
	v.ThumbsUp, err = remainingReactions(op, n.ID, n.Reactions, &found)
	return v, err
}

// readLinkedPRs fills in the linked pull requests. It reads lists with more than one page from the start.
func readLinkedPRs(op *client.Operation, r Repo, number int, i *issueNode, out *IssueSnapshot) (err error) {
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

// withMentions returns closing and those of mentions that are not in it.
func withMentions(closing, mentions []LinkedPR) []LinkedPR {
	for _, m := range mentions {
		same := func(o LinkedPR) bool { return o.Number == m.Number && strings.EqualFold(o.Repo, m.Repo) }
		if !slices.ContainsFunc(closing, same) {
			closing = append(closing, m)
		}
	}
	return closing
}

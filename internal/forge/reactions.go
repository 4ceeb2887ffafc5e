package forge

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge/client"
	"github.com/errand-bot/errand/internal/trust"
)

// Reaction is the 👍 of a person.
type Reaction = trust.Reaction

// ReactionPoll is the result of PollReactions.
type ReactionPoll struct {
	Reactions map[string][]Reaction // by comment or issue, newest first; without those that have no 👍
	Deleted   []string              // deleted, or not visible to the App
	Cost      int                   // GraphQL points that the poll used
	Remaining int                   // GraphQL points that the installation has left in this hour
}

// maxNodes is the maximum number of IDs in a nodes field.
const maxNodes = 100

// reactionFields selects 👍, newest first, so that many reactions of strangers cannot hide a new one.
const reactionFields = `{ totalCount pageInfo { hasNextPage endCursor } nodes { id createdAt user { databaseId login } } }`

const reactionsQuery = `query($ids: [ID!]!) {
  nodes(ids: $ids) {
    __typename
    ... on IssueComment { id reactions(content: THUMBS_UP, first: 20, orderBy: {field: CREATED_AT, direction: DESC}) ` + reactionFields + ` }
    ... on Issue { id reactions(content: THUMBS_UP, first: 20, orderBy: {field: CREATED_AT, direction: DESC}) ` + reactionFields + ` }
  }
  rateLimit { cost remaining }
}`

const moreReactionsQuery = `query($id: ID!, $after: String) {
  node(id: $id) {
    __typename
    ... on IssueComment { reactions(content: THUMBS_UP, first: 100, after: $after, orderBy: {field: CREATED_AT, direction: DESC}) ` + reactionFields + ` }
    ... on Issue { reactions(content: THUMBS_UP, first: 100, after: $after, orderBy: {field: CREATED_AT, direction: DESC}) ` + reactionFields + ` }
  }
  rateLimit { cost remaining }
}`

type reactionPage struct {
	TotalCount int      `json:"totalCount"`
	PageInfo   pageInfo `json:"pageInfo"`
	Nodes      []struct {
		ID        string    `json:"id"`
		CreatedAt time.Time `json:"createdAt"`
		User      *actor    `json:"user"`
	} `json:"nodes"`
}

func (p reactionPage) reactions() []Reaction {
	var out []Reaction
	for _, n := range p.Nodes {
		if n.User != nil {
			out = append(out, Reaction{Node: n.ID, By: n.User.Person(), At: n.CreatedAt})
		}
	}
	return out
}

// PollReactions reads the 👍 on comments and issues of one installation by GraphQL ID: one request per 100 of them, and
// further ones for those with more than 20 👍.
func (f *Forge) PollReactions(ctx context.Context, installation int64, nodes []string) (ReactionPoll, error) {
	found := ReactionPoll{Reactions: map[string][]Reaction{}}
	op, err := f.client.Read(ctx, installation, "read reactions", fmt.Sprintf("on %d comments", len(nodes)))
	if err != nil {
		return found, err
	}
	for ids := range slices.Chunk(nodes, maxNodes) {
		if err := pollReactions(op, ids, &found); err != nil {
			return found, op.Wrap(err)
		}
	}
	return found, nil
}

func pollReactions(op *client.Operation, ids []string, found *ReactionPoll) error {
	var data struct {
		Nodes []*struct {
			ID        string       `json:"id"`
			Reactions reactionPage `json:"reactions"`
		} `json:"nodes"`
		RateLimit rateCost `json:"rateLimit"`
	}
	if err := client.IgnoreNotFound(op.GraphQL(reactionsQuery, map[string]any{"ids": ids}, &data)); err != nil {
		return err
	}
	found.Cost += data.RateLimit.Cost
	found.Remaining = data.RateLimit.Remaining
	for i, n := range data.Nodes {
		if i >= len(ids) {
			break
		}
		if n == nil || n.ID == "" {
			found.Deleted = append(found.Deleted, ids[i])
			continue
		}
		list, err := remainingReactions(op, n.ID, n.Reactions, found)
		if err != nil {
			return err
		}
		if len(list) > 0 {
			found.Reactions[ids[i]] = list
		}
	}
	return nil
}

// remainingReactions returns the reactions of the page first and all further pages.
func remainingReactions(op *client.Operation, id string, first reactionPage, found *ReactionPoll) ([]Reaction, error) {
	list := first.reactions()
	page := first.PageInfo
	for range client.MaxPages {
		if !page.HasNextPage {
			break
		}
		var data struct {
			Node *struct {
				Reactions reactionPage `json:"reactions"`
			} `json:"node"`
			RateLimit rateCost `json:"rateLimit"`
		}
		if err := client.IgnoreNotFound(op.GraphQL(moreReactionsQuery, map[string]any{"id": id, "after": page.EndCursor}, &data)); err != nil {
			return nil, err
		}
		found.Cost += data.RateLimit.Cost
		found.Remaining = data.RateLimit.Remaining
		if data.Node == nil {
			break
		}
		list = append(list, data.Node.Reactions.reactions()...)
		page = data.Node.Reactions.PageInfo
	}
	return list, nil
}

// TargetKind is the kind of object that a reaction is on.
type TargetKind string

// The objects to which REST can add reactions; submitted reviews are not among them.
const (
	TargetIssue         TargetKind = "issue"          // the body of an issue or a pull request
	TargetComment       TargetKind = "comment"        // in a conversation
	TargetReviewComment TargetKind = "review comment" // in a review thread
)

// Target is an object to react on. ID is the number of an issue, or the database ID of a comment.
type Target struct {
	Kind TargetKind
	ID   int64
}

func (t Target) describe(r Repo) string {
	return fmt.Sprintf("on %s %d of %s", t.Kind, t.ID, r.FullName())
}

// React adds a reaction, such as "eyes" or "+1". It can be repeated: the App has at most one of each.
func (f *Forge) React(ctx context.Context, r Repo, t Target, content string) error {
	ctx = client.WithDefaultPriority(ctx, PriorityReaction)
	op, err := f.client.Write(ctx, r.Installation, "react", t.describe(r))
	if err != nil {
		return err
	}
	api := op.GitHub.Reactions
	switch t.Kind {
	case TargetIssue:
		_, _, err = api.CreateIssueReaction(op.Ctx, r.Owner, r.Name, int(t.ID), content)
	case TargetComment:
		_, _, err = api.CreateIssueCommentReaction(op.Ctx, r.Owner, r.Name, t.ID, content)
	case TargetReviewComment:
		_, _, err = api.CreatePullRequestCommentReaction(op.Ctx, r.Owner, r.Name, t.ID, content)
	default:
		err = fmt.Errorf("react on %q: unknown kind", t.Kind)
	}
	return op.Wrap(err)
}

// Unreact removes the App's reaction. It can be repeated. GitHub removes reactions by their ID, which it returns when the
// reaction is added once more.
func (f *Forge) Unreact(ctx context.Context, r Repo, t Target, content string) error {
	ctx = client.WithDefaultPriority(ctx, PriorityReaction)
	op, err := f.client.Write(ctx, r.Installation, "unreact", t.describe(r))
	if err != nil {
		return err
	}
	api := op.GitHub.Reactions
	var found *github.Reaction
	switch t.Kind {
	case TargetComment:
		if found, _, err = api.CreateIssueCommentReaction(op.Ctx, r.Owner, r.Name, t.ID, content); err == nil {
			_, err = api.DeleteIssueCommentReaction(op.Ctx, r.Owner, r.Name, t.ID, found.GetID())
		}
	case TargetReviewComment:
		if found, _, err = api.CreatePullRequestCommentReaction(op.Ctx, r.Owner, r.Name, t.ID, content); err == nil {
			_, err = api.DeletePullRequestCommentReaction(op.Ctx, r.Owner, r.Name, t.ID, found.GetID())
		}
	default:
		err = fmt.Errorf("remove a reaction on %q: unknown kind", t.Kind)
	}
	return op.Wrap(err)
}

package forge

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/errand-bot/errand/internal/forge/client"
	"github.com/errand-bot/errand/state"
)

// Reaction is one person's 👍. Bots' and deleted accounts' are not reported by GitHub.
type Reaction struct {
	Node string // GraphQL id of the reaction
	By   state.Person
	At   time.Time // whole seconds
}

// ReactionPoll is what a poll found.
type ReactionPoll struct {
	Reactions map[string][]Reaction // per comment or issue, newest first; no entry: no 👍
	Deleted   []string              // deleted, or hidden from us
	Cost      int                   // GraphQL points that this poll used
	Remaining int                   // and that the installation has left in this hour
}

// maxNodes is how many ids GitHub takes in one nodes field.
const maxNodes = 100

// reactionFields selects the 👍 of one thing, newest first, so that strangers' cannot hide a new one.
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
			out = append(out, Reaction{Node: n.ID, By: n.User.person(), At: n.CreatedAt})
		}
	}
	return out
}

// PollReactions reads the 👍 on comments and issues of one installation, by GraphQL ids: one request per
// hundred of them, and further ones for a thing with more than twenty 👍.
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

// remainingReactions follows the pages after first.
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

// TargetKind is what a reaction is on.
type TargetKind string

// The things that REST lets us react on. (A submitted review is not among them.)
const (
	TargetIssue         TargetKind = "issue"          // an issue or a pull request's first text
	TargetComment       TargetKind = "comment"        // in a conversation
	TargetReviewComment TargetKind = "review comment" // in a thread
)

// Target is one thing to react on. ID is the number of an issue, and the database id of a comment.
type Target struct {
	Kind TargetKind
	ID   int64
}

func (t Target) on(r Repo) string { return fmt.Sprintf("on %s %d of %s", t.Kind, t.ID, r.FullName()) }

// React sets our reaction, such as "eyes" or "+1". It may be called twice: there is only one of each.
func (f *Forge) React(ctx context.Context, r Repo, t Target, content string) error {
	ctx = client.WithDefaultPriority(ctx, PriorityReaction)
	op, err := f.client.Write(ctx, r.Installation, "react", t.on(r))
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
		err = fmt.Errorf("react on %q: no such kind of thing", t.Kind)
	}
	return op.Wrap(err)
}

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

const thumbsQuery = `query($ids: [ID!]!) {
  nodes(ids: $ids) {
    __typename
    ... on IssueComment { id reactions(content: THUMBS_UP, first: 20, orderBy: {field: CREATED_AT, direction: DESC}) ` + reactionFields + ` }
    ... on Issue { id reactions(content: THUMBS_UP, first: 20, orderBy: {field: CREATED_AT, direction: DESC}) ` + reactionFields + ` }
  }
  rateLimit { cost remaining }
}`

const moreThumbsQuery = `query($id: ID!, $after: String) {
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

func (p reactionPage) thumbs() []Reaction {
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
		if err := thumbsOf(op, ids, &found); err != nil {
			return found, op.Wrap(err)
		}
	}
	return found, nil
}

func thumbsOf(op *client.Operation, ids []string, found *ReactionPoll) error {
	var data struct {
		Nodes []*struct {
			ID        string       `json:"id"`
			Reactions reactionPage `json:"reactions"`
		} `json:"nodes"`
		RateLimit rateCost `json:"rateLimit"`
	}
	if err := client.IgnoreNotFound(op.GraphQL(thumbsQuery, map[string]any{"ids": ids}, &data)); err != nil {
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
		list, err := restOfThumbs(op, n.ID, n.Reactions, found)
		if err != nil {
			return err
		}
		if len(list) > 0 {
			found.Reactions[ids[i]] = list
		}
	}
	return nil
}

// restOfThumbs follows the pages after first.
func restOfThumbs(op *client.Operation, id string, first reactionPage, found *ReactionPoll) ([]Reaction, error) {
	list := first.thumbs()
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
		if err := client.IgnoreNotFound(op.GraphQL(moreThumbsQuery, map[string]any{"id": id, "after": page.EndCursor}, &data)); err != nil {
			return nil, err
		}
		found.Cost += data.RateLimit.Cost
		found.Remaining = data.RateLimit.Remaining
		if data.Node == nil {
			break
		}
		list = append(list, data.Node.Reactions.thumbs()...)
		page = data.Node.Reactions.PageInfo
	}
	return list, nil
}

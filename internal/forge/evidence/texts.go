package evidence

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"time"

	"github.com/errand-bot/errand/internal/forge/client"
	"github.com/errand-bot/errand/internal/provenance"
)

const (
	textFields = `id url body createdAt lastEditedAt author ` + client.ActorFields + ` editor ` + client.ActorFields
	pageFields = `pageInfo { hasNextPage endCursor }`

	commentsQuery = `query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) { comments(first: 100, after: $after) { ` + pageFields + ` nodes { ` + textFields + ` } } }
  }
}`
	issueQuery = `query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) { issue(number: $number) { title ` + textFields + ` } }
}`
	// The oldest 👍 come first: those of strangers, which are newer, cannot hide an approval.
	commentQuery = `query($id: ID!, $after: String) {
  node(id: $id) {
    __typename
    ... on IssueComment { ` + textFields + `
      userContentEdits(first: 100) { nodes { editedAt editor ` + client.ActorFields + ` } }
      reactions(content: THUMBS_UP, first: 100, after: $after, orderBy: {field: CREATED_AT, direction: ASC}) {
        ` + pageFields + ` nodes { createdAt user { databaseId login } }
      } }
  }
}`
)

// account returns the account of an actor. A nil actor is a deleted account.
func account(a *client.Actor) provenance.Person {
	if a == nil {
		return provenance.Person{}
	}
	p := a.Person()
	return provenance.Person{ID: p.ID, Login: p.Login, Bot: p.Bot}
}

type text struct {
	ID           string        `json:"id"`
	URL          string        `json:"url"`
	Title        string        `json:"title"`
	Body         string        `json:"body"`
	CreatedAt    time.Time     `json:"createdAt"`
	LastEditedAt *time.Time    `json:"lastEditedAt"`
	Author       *client.Actor `json:"author"`
	Editor       *client.Actor `json:"editor"`
	Edits        struct {
		Nodes []struct {
			EditedAt time.Time     `json:"editedAt"`
			Editor   *client.Actor `json:"editor"`
		} `json:"nodes"`
	} `json:"userContentEdits"`
	Reactions struct {
		PageInfo client.PageInfo `json:"pageInfo"`
		Nodes    []struct {
			CreatedAt time.Time     `json:"createdAt"`
			User      *client.Actor `json:"user"`
		} `json:"nodes"`
	} `json:"reactions"`
}

// commentID matches the id of a comment in its address. GraphQL's databaseId is too small for it.
var commentID = regexp.MustCompile(`#issuecomment-([0-9]+)$`)

func (t *text) text() provenance.Text {
	out := provenance.Text{Title: t.Title, Body: t.Body, By: account(t.Author), CreatedAt: t.CreatedAt}
	if m := commentID.FindStringSubmatch(t.URL); m != nil {
		out.ID, _ = strconv.ParseInt(m[1], 10, 64) // digits; one that is too large identifies nothing
	}
	if t.LastEditedAt != nil {
		e := account(t.Editor)
		out.Editor, out.EditedAt = &e, *t.LastEditedAt
	}
	for _, e := range t.Edits.Nodes {
		out.Edits = append(out.Edits, provenance.Action{By: account(e.Editor), At: e.EditedAt})
	}
	for _, n := range t.Reactions.Nodes {
		out.ThumbsUp = append(out.ThumbsUp, provenance.Action{By: account(n.User), At: n.CreatedAt})
	}
	return out
}

// Comments reads the comments by an account.
func (r *Reader) Comments(ctx context.Context, number int, by int64) (list []provenance.Text, complete bool, err error) {
	op, err := r.read(ctx, "read the comments of pull request", number)
	if err != nil {
		return nil, false, err
	}
	vars := map[string]any{"owner": r.repo.Owner, "name": r.repo.Name, "number": number}
	for range maxPages {
		var data struct {
			Repository *struct {
				PullRequest *struct {
					Comments struct {
						PageInfo client.PageInfo `json:"pageInfo"`
						Nodes    []text          `json:"nodes"`
					} `json:"comments"`
				} `json:"pullRequest"`
			} `json:"repository"`
		}
		if err := op.GraphQL(commentsQuery, vars, &data); err != nil {
			return nil, false, op.Wrap(err)
		}
		if data.Repository == nil || data.Repository.PullRequest == nil {
			return nil, false, op.Deleted()
		}
		page := data.Repository.PullRequest.Comments
		for i := range page.Nodes {
			if t := page.Nodes[i].text(); t.By.ID == by {
				list = append(list, t)
			}
		}
		if !page.PageInfo.HasNextPage {
			return list, true, nil
		}
		vars["after"] = page.PageInfo.EndCursor
	}
	return list, false, nil
}

// Issue reads the title and the text of an issue. It returns nil if there is none.
func (r *Reader) Issue(ctx context.Context, number int) (*provenance.Text, error) {
	op, err := r.read(ctx, "read issue", number)
	if err != nil {
		return nil, err
	}
	var data struct {
		Repository *struct {
			Issue *text `json:"issue"`
		} `json:"repository"`
	}
	vars := map[string]any{"owner": r.repo.Owner, "name": r.repo.Name, "number": number}
	if err := client.IgnoreNotFound(op.GraphQL(issueQuery, vars, &data)); err != nil {
		return nil, op.Wrap(err)
	}
	if data.Repository == nil || data.Repository.Issue == nil {
		return nil, nil
	}
	t := data.Repository.Issue.text()
	return &t, nil
}

// Comment reads a comment with its last edits and the 👍 on it. It returns nil if there is none.
func (r *Reader) Comment(ctx context.Context, id int64) (*provenance.Text, error) {
	op, err := r.read(ctx, "read comment", id)
	if err != nil {
		return nil, err
	}
	found, _, err := op.GitHub.Issues.GetComment(op.Ctx, r.repo.Owner, r.repo.Name, id)
	if err != nil {
		if err := op.Wrap(err); !errors.Is(err, client.ErrNotFound) {
			return nil, err
		}
		return nil, nil
	}
	vars := map[string]any{"id": found.GetNodeID()}
	var out *provenance.Text
	for range maxPages {
		var data struct {
			Node *text `json:"node"`
		}
		if err := client.IgnoreNotFound(op.GraphQL(commentQuery, vars, &data)); err != nil {
			return nil, op.Wrap(err)
		}
		if data.Node == nil || data.Node.ID == "" {
			return nil, nil
		}
		t := data.Node.text()
		if out != nil {
			t.ThumbsUp = append(out.ThumbsUp, t.ThumbsUp...)
		}
		out = &t
		if !data.Node.Reactions.PageInfo.HasNextPage {
			break
		}
		vars["after"] = data.Node.Reactions.PageInfo.EndCursor
	}
	return out, nil
}

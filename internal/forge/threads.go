package forge

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/forge/client"
)

// Thread is a review thread of a pull request.
type Thread struct {
	Node     string // GraphQL ID
	TopID    int64  // database ID of its first comment, to which replies are addressed
	Path     string
	Line     int // in the current head, or in the original commit if the head lacks the line; 0 for a whole file
	Hunk     string
	Resolved bool
	Outdated bool
	Comments []Comment // oldest first
}

const threadCommentFields = `{
            pageInfo { hasNextPage endCursor }
            nodes { id state url body diffHunk createdAt lastEditedAt author ` + actorFields + ` editor ` + actorFields + ` }
          }`

const threadsQuery = `query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      reviewThreads(first: 50, after: $after) {
        pageInfo { hasNextPage endCursor }
        nodes {
          id isResolved isOutdated path line originalLine
          comments(first: 50) ` + threadCommentFields + `
        }
      }
    }
  }
}`

const threadCommentsQuery = `query($id: ID!, $after: String) {
  node(id: $id) {
    __typename
    ... on PullRequestReviewThread { comments(first: 100, after: $after) ` + threadCommentFields + ` }
  }
}`

type threadCommentPage struct {
	PageInfo pageInfo `json:"pageInfo"`
	Nodes    []struct {
		commentNode
		DiffHunk string `json:"diffHunk"`
	} `json:"nodes"`
}

type threadNode struct {
	ID           string            `json:"id"`
	IsResolved   bool              `json:"isResolved"`
	IsOutdated   bool              `json:"isOutdated"`
	Path         string            `json:"path"`
	Line         *int              `json:"line"`
	OriginalLine *int              `json:"originalLine"`
	Comments     threadCommentPage `json:"comments"`
}

// Threads returns all threads of a pull request, also resolved ones, with all comments except those of a pending review.
func (f *Forge) Threads(ctx context.Context, r Repo, number int) ([]Thread, error) {
	op, err := f.client.Read(ctx, r.Installation, "read review threads", onIssue(r, number))
	if err != nil {
		return nil, err
	}
	var out []Thread
	var after *string
	for range client.MaxPages {
		var data struct {
			Repository struct {
				PullRequest struct {
					ReviewThreads struct {
						PageInfo pageInfo     `json:"pageInfo"`
						Nodes    []threadNode `json:"nodes"`
					} `json:"reviewThreads"`
				} `json:"pullRequest"`
			} `json:"repository"`
		}
		vars := map[string]any{"owner": r.Owner, "name": r.Name, "number": number, "after": after}
		if err := op.GraphQL(threadsQuery, vars, &data); err != nil {
			return nil, op.Wrap(err)
		}
		page := data.Repository.PullRequest.ReviewThreads
		for i := range page.Nodes {
			t, err := readThread(op, &page.Nodes[i])
			if err != nil {
				return nil, op.Wrap(err)
			}
			if len(t.Comments) > 0 {
				out = append(out, t)
			}
		}
		if !page.PageInfo.HasNextPage {
			break
		}
		after = &page.PageInfo.EndCursor
	}
	return out, nil
}

// readThread returns a thread with its remaining comments.
func readThread(op *client.Operation, n *threadNode) (Thread, error) {
	t := Thread{Node: n.ID, Path: n.Path, Resolved: n.IsResolved, Outdated: n.IsOutdated, Line: lineOf(n.Line, n.OriginalLine)}
	page := n.Comments
	for range client.MaxPages {
		t.add(page)
		if !page.PageInfo.HasNextPage {
			break
		}
		var data struct {
			Node *threadNode `json:"node"`
		}
		if err := op.GraphQL(threadCommentsQuery, map[string]any{"id": n.ID, "after": page.PageInfo.EndCursor}, &data); err != nil {
			return t, err
		}
		if data.Node == nil {
			break
		}
		page = data.Node.Comments
	}
	return t, nil
}

func (t *Thread) add(page threadCommentPage) {
	for _, n := range page.Nodes {
		if n.State == "PENDING" {
			continue
		}
		v := n.comment()
		if len(t.Comments) == 0 {
			t.TopID, t.Hunk = v.ID, n.DiffHunk
		}
		t.Comments = append(t.Comments, v)
	}
}

// FindReplies returns the App's review comments on a pull request that contain a marker, oldest first. All but the
// first are duplicates after unknown outcomes. It reads comments that were created or edited since a time; zero means
// all.
func (f *Forge) FindReplies(ctx context.Context, r Repo, number int, marker string, since time.Time) ([]Comment, error) {
	self, err := f.Self(ctx)
	if err != nil {
		return nil, err
	}
	op, err := f.client.Read(ctx, r.Installation, "look for our answer", onIssue(r, number))
	if err != nil {
		return nil, err
	}
	list, err := client.All(func(o github.ListOptions) ([]*github.PullRequestComment, *github.Response, error) {
		return op.GitHub.PullRequests.ListComments(op.Ctx, r.Owner, r.Name, number, &github.PullRequestListCommentsOptions{
			Sort: "created", Direction: "asc", Since: since, ListOptions: o,
		})
	})
	if err != nil {
		return nil, op.Wrap(err)
	}
	var found []Comment
	for _, c := range list {
		if c.GetUser().GetID() == self.BotID && strings.Contains(c.GetBody(), marker) {
			found = append(found, reviewComment(c))
		}
	}
	return found, nil
}

// DeleteReply deletes a review comment. It succeeds if the comment does not exist.
func (f *Forge) DeleteReply(ctx context.Context, r Repo, id int64) error {
	op, err := f.client.Write(ctx, r.Installation, "delete review comment", fmt.Sprintf("%d in %s", id, r.FullName()))
	if err != nil {
		return err
	}
	_, err = op.GitHub.PullRequests.DeleteComment(op.Ctx, r.Owner, r.Name, id)
	if client.StatusOf(err) == 404 {
		return nil
	}
	return op.Wrap(err)
}

func reviewComment(c *github.PullRequestComment) Comment {
	return Comment{
		ID: c.GetID(), Node: c.GetNodeID(), URL: c.GetHTMLURL(), Author: person(c.User), Body: c.GetBody(),
		CreatedAt: c.GetCreatedAt().Time, EditedAt: editedAt(c.CreatedAt, c.UpdatedAt),
	}
}

package forge

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/forge/client"
)

// OwnReview is a review by the App. While it is pending, only the App sees it and its replies, and GitHub refuses
// another review or reply by the App on the same pull request.
type OwnReview struct {
	Node    string
	Pending bool
	Replies []Comment // oldest first
}

const reviewCommentFields = `{ pageInfo { hasNextPage endCursor } nodes { id url body createdAt author ` + actorFields + ` } }`

const pendingReviewQuery = `query($owner: String!, $name: String!, $number: Int!) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      reviews(first: 10, states: [PENDING]) { nodes { id state author ` + actorFields + ` comments(first: 100) ` + reviewCommentFields + ` } }
    }
  }
}`

const reviewQuery = `query($id: ID!, $after: String) {
  node(id: $id) {
    __typename
    ... on PullRequestReview { id state author ` + actorFields + ` comments(first: 100, after: $after) ` + reviewCommentFields + ` }
  }
}`

type reviewNode struct {
	ID       string      `json:"id"`
	State    string      `json:"state"`
	Author   *actor      `json:"author"`
	Comments commentPage `json:"comments"`
}

// PendingReview returns the App's pending review of a pull request, nil if there is none.
func (f *Forge) PendingReview(ctx context.Context, r Repo, number int) (*OwnReview, error) {
	self, err := f.Self(ctx)
	if err != nil {
		return nil, err
	}
	op, err := f.client.Read(ctx, r.Installation, "look for our pending review", onIssue(r, number))
	if err != nil {
		return nil, err
	}
	var data struct {
		Repository struct {
			PullRequest struct {
				Reviews struct {
					Nodes []reviewNode `json:"nodes"`
				} `json:"reviews"`
			} `json:"pullRequest"`
		} `json:"repository"`
	}
	if err := op.GraphQL(pendingReviewQuery, map[string]any{"owner": r.Owner, "name": r.Name, "number": number}, &data); err != nil {
		return nil, op.Wrap(err)
	}
	for i := range data.Repository.PullRequest.Reviews.Nodes {
		n := &data.Repository.PullRequest.Reviews.Nodes[i]
		if n.State == "PENDING" && n.Author.Person().ID == self.BotID {
			v, err := readReview(op, n)
			return &v, op.Wrap(err)
		}
	}
	return nil, nil
}

// OwnReview reads one of the App's reviews by its GraphQL ID. It returns ErrNotFound if the review does not exist.
func (f *Forge) OwnReview(ctx context.Context, r Repo, node string) (OwnReview, error) {
	op, err := f.client.Read(ctx, r.Installation, "read our review", node)
	if err != nil {
		return OwnReview{}, err
	}
	n, err := reviewPage(op, node, nil)
	if err != nil {
		return OwnReview{}, op.Wrap(err)
	}
	v, err := readReview(op, n)
	return v, op.Wrap(err)
}

// reviewPage reads a review with one page of its comments.
func reviewPage(op *client.Operation, node string, after *string) (*reviewNode, error) {
	var data struct {
		Node *reviewNode `json:"node"`
	}
	if err := op.GraphQL(reviewQuery, map[string]any{"id": node, "after": after}, &data); err != nil {
		return nil, err
	}
	if data.Node == nil || data.Node.ID == "" {
		return nil, op.Deleted()
	}
	return data.Node, nil
}

// readReview returns a review with its remaining comments.
func readReview(op *client.Operation, n *reviewNode) (OwnReview, error) {
	v := OwnReview{Node: n.ID, Pending: n.State == "PENDING"}
	for range client.MaxPages {
		for i := range n.Comments.Nodes {
			v.Replies = append(v.Replies, n.Comments.Nodes[i].comment())
		}
		if !n.Comments.PageInfo.HasNextPage {
			break
		}
		var err error
		if n, err = reviewPage(op, v.Node, &n.Comments.PageInfo.EndCursor); err != nil {
			return v, err
		}
	}
	slices.SortStableFunc(v.Replies, func(a, b Comment) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return v, nil
}

const startReviewMutation = `mutation($pull: ID!) {
  addPullRequestReview(input: {pullRequestId: $pull}) { pullRequestReview { id } }
}`

// StartReview starts a pending review of a pull request, given by its GraphQL ID, and returns the review's. If there is
// one already, which PendingReview did not show yet, it returns a temporary error.
func (f *Forge) StartReview(ctx context.Context, r Repo, pull string) (node string, err error) {
	op, err := f.client.Write(ctx, r.Installation, "start a review", pull)
	if err != nil {
		return "", err
	}
	var data struct {
		Added struct {
			Review struct {
				ID string `json:"id"`
			} `json:"pullRequestReview"`
		} `json:"addPullRequestReview"`
	}
	err = op.Wrap(op.GraphQL(startReviewMutation, map[string]any{"pull": pull}, &data))
	var e *Error
	if errors.As(err, &e) && strings.Contains(e.Reason, "one pending review") {
		e.Class = ClassTemporary
	}
	return data.Added.Review.ID, err
}

const replyMutation = `mutation($review: ID!, $thread: ID!, $body: String!) {
  addPullRequestReviewThreadReply(input: {pullRequestReviewId: $review, pullRequestReviewThreadId: $thread, body: $body}) { comment { id } }
}`

// AddReply adds a reply in a thread to a pending review. Each call adds one: after an unknown outcome, read the review
// again. It returns ErrNotFound if the thread does not exist.
func (f *Forge) AddReply(ctx context.Context, r Repo, review, thread, body string) error {
	op, err := f.client.Write(ctx, r.Installation, "add an answer to our review", thread)
	if err != nil {
		return err
	}
	return op.Wrap(op.GraphQL(replyMutation, map[string]any{"review": review, "thread": thread, "body": body}, nil))
}

const submitReviewMutation = `mutation($review: ID!, $body: String!) {
  submitPullRequestReview(input: {pullRequestReviewId: $review, event: COMMENT, body: $body}) { pullRequestReview { id } }
}`

// SubmitReview submits a pending review with a text, as a comment. After an unknown outcome, read the review again.
func (f *Forge) SubmitReview(ctx context.Context, r Repo, review, body string) error {
	return f.mutate(ctx, r, "submit our review", submitReviewMutation, map[string]any{"review": review, "body": body})
}

const deleteReviewMutation = `mutation($review: ID!) {
  deletePullRequestReview(input: {pullRequestReviewId: $review}) { pullRequestReview { id } }
}`

// DeleteReview deletes a pending review with its replies. It succeeds if the review does not exist.
func (f *Forge) DeleteReview(ctx context.Context, r Repo, review string) error {
	return ignoreNotFound(f.mutate(ctx, r, "delete our pending review", deleteReviewMutation, map[string]any{"review": review}))
}

const deletePendingReplyMutation = `mutation($id: ID!) {
  deletePullRequestReviewComment(input: {id: $id}) { pullRequestReview { id } }
}`

// DeletePendingReply deletes a reply of a pending review, given by its GraphQL ID. It succeeds if the reply does not
// exist.
func (f *Forge) DeletePendingReply(ctx context.Context, r Repo, node string) error {
	return ignoreNotFound(f.mutate(ctx, r, "delete our pending answer", deletePendingReplyMutation, map[string]any{"id": node}))
}

const resolveThreadMutation = `mutation($thread: ID!) {
  resolveReviewThread(input: {threadId: $thread}) { thread { isResolved } }
}`

// ResolveThread resolves a review thread, given by its GraphQL ID. It can be repeated.
func (f *Forge) ResolveThread(ctx context.Context, r Repo, thread string) error {
	return f.mutate(ctx, r, "resolve a review thread", resolveThreadMutation, map[string]any{"thread": thread})
}

// mutate makes a mutation whose answer is of no interest.
func (f *Forge) mutate(ctx context.Context, r Repo, name, query string, vars map[string]any) error {
	op, err := f.client.Write(ctx, r.Installation, name, "in "+r.FullName())
	if err != nil {
		return err
	}
	return op.Wrap(op.GraphQL(query, vars, nil))
}

func ignoreNotFound(err error) error {
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

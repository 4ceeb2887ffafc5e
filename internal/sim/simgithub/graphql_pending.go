package simgithub

import (
	"context"

	"github.com/graph-gophers/graphql-go"
)

// AddPullRequestReview adds a review, which stays pending without an event.
func (*rootR) AddPullRequestReview(ctx context.Context, a struct {
	Input struct {
		ClientMutationId *string //nolint:revive // named by the schema
		PullRequestId    graphql.ID
		CommitOID        *word
		Body             *string
		Event            *string
	}
}) (*result, error) {
	x := from(ctx)
	p, err := target[*Pull](x, a.Input.PullRequestId)
	if err != nil {
		return nil, err
	}
	in := NewReview{Event: valueOf(a.Input.Event), Body: valueOf(a.Input.Body)}
	if a.Input.CommitOID != nil {
		in.CommitID = string(*a.Input.CommitOID)
	}
	v, err := x.reviews().add(p, in)
	return &result{x: x, id: a.Input.ClientMutationId, review: v}, err
}

// SubmitPullRequestReview submits a pending review, or the caller's pending review of a pull request.
func (*rootR) SubmitPullRequestReview(ctx context.Context, a struct {
	Input struct {
		ClientMutationId    *string //nolint:revive // named by the schema
		PullRequestId       *graphql.ID
		PullRequestReviewId *graphql.ID
		Event               string
		Body                *string
	}
}) (*result, error) {
	x := from(ctx)
	var v *Review
	var err error
	switch {
	case a.Input.PullRequestReviewId != nil:
		v, err = target[*Review](x, *a.Input.PullRequestReviewId)
	case a.Input.PullRequestId != nil:
		var p *Pull
		if p, err = target[*Pull](x, *a.Input.PullRequestId); err != nil {
			break
		}
		if v = p.pendingReview(x.login()); v == nil {
			err = errNotFound()
		}
	default:
		err = errUnprocessable("A pull request or a pull request review is required.")
	}
	if err != nil {
		return nil, err
	}
	return &result{x: x, id: a.Input.ClientMutationId, review: v}, x.reviews().submit(v, a.Input.Event, valueOf(a.Input.Body))
}

// DeletePullRequestReview deletes a pending review with its comments.
func (*rootR) DeletePullRequestReview(ctx context.Context, a struct {
	Input struct {
		ClientMutationId    *string //nolint:revive // named by the schema
		PullRequestReviewId graphql.ID
	}
}) (*result, error) {
	x := from(ctx)
	v, err := target[*Review](x, a.Input.PullRequestReviewId)
	if err != nil {
		return nil, err
	}
	return &result{x: x, id: a.Input.ClientMutationId, review: v}, x.reviews().deletePending(v)
}

// DeletePullRequestReviewComment deletes a comment of a review.
func (*rootR) DeletePullRequestReviewComment(ctx context.Context, a struct {
	Input struct {
		ClientMutationId *string //nolint:revive // named by the schema
		Id               graphql.ID
	}
}) (*result, error) {
	x := from(ctx)
	k, err := target[*ReviewComment](x, a.Input.Id)
	if err != nil {
		return nil, err
	}
	v, _ := x.s.nodes[nodeID("PRR", k.ReviewID)].(*Review)
	return &result{x: x, id: a.Input.ClientMutationId, reply: k, review: v}, x.reviews().deleteComment(k)
}

// AddPullRequestReviewThreadReply adds a comment to a thread: to a pending review if one is named, otherwise at once.
func (*rootR) AddPullRequestReviewThreadReply(ctx context.Context, a struct {
	Input struct {
		ClientMutationId          *string //nolint:revive // named by the schema
		PullRequestReviewId       *graphql.ID
		PullRequestReviewThreadId graphql.ID
		Body                      string
	}
}) (*result, error) {
	x := from(ctx)
	t, err := target[*Thread](x, a.Input.PullRequestReviewThreadId)
	if err != nil {
		return nil, err
	}
	var k *ReviewComment
	if a.Input.PullRequestReviewId == nil {
		k, err = x.reviews().reply(t, a.Input.Body)
		return &result{x: x, id: a.Input.ClientMutationId, reply: k}, err
	}
	v, err := target[*Review](x, *a.Input.PullRequestReviewId)
	if err != nil {
		return nil, err
	}
	k, err = x.reviews().replyPending(t, v, a.Input.Body)
	return &result{x: x, id: a.Input.ClientMutationId, reply: k}, err
}

func valueOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

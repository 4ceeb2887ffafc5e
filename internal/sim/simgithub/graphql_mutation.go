package simgithub

import (
	"context"
	"strings"

	"github.com/graph-gophers/graphql-go"

	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

// result is the payload of all mutations. Each payload type uses the fields that it has.
type result struct {
	x       *request
	id      *string
	comment *Comment
	thread  *Thread
	reply   *ReviewComment
	review  *Review
	pull    *Pull
	entry   *QueueEntry
	re      *Reaction
}

// ClientMutationId is the caller's value.
func (r *result) ClientMutationId() *string { return r.id } //nolint:revive // named by the schema

// MinimizedComment is the comment that was folded.
func (r *result) MinimizedComment() *minimizableR { return &minimizableR{newCommentR(r.x, r.comment)} }

// UnminimizedComment is the comment that was unfolded.
func (r *result) UnminimizedComment() *minimizableR {
	return &minimizableR{newCommentR(r.x, r.comment)}
}

// minimizableR is a comment as a Minimizable.
type minimizableR struct{ *commentR }

// ToIssueComment narrows a Minimizable.
func (m *minimizableR) ToIssueComment() (*commentR, bool) { return m.commentR, true }

// Thread is the thread that changed.
func (r *result) Thread() *threadR { return &threadR{r.x, r.thread} }

// Comment is the new reply.
func (r *result) Comment() *reviewCommentR { return newReviewCommentR(r.x, r.reply) }

// PullRequestReview is the review that was added, submitted or deleted, or to which a deleted comment belonged.
func (r *result) PullRequestReview() *reviewR { return &reviewR{r.x, r.review} }

// PullRequestReviewComment is the comment that was deleted.
func (r *result) PullRequestReviewComment() *reviewCommentR { return newReviewCommentR(r.x, r.reply) }

// PullRequest is the pull request that changed.
func (r *result) PullRequest() *pullR { return newPullR(r.x, r.pull) }

// Reaction is the reaction that was added or removed.
func (r *result) Reaction() *reactionR { return &reactionR{r.x, r.re} }

// target returns the object of a mutation.
func target[T any](x *request, id graphql.ID) (T, error) {
	var none T
	n, err := x.node(string(id))
	if err != nil {
		return none, err
	}
	v, ok := n.v.(T)
	if !ok {
		return none, errUnprocessable("'%s' is not the kind of node that this mutation takes", id)
	}
	return v, nil
}

// refUpdate is one change of updateRefs.
type refUpdate struct {
	Name      word
	AfterOid  word
	BeforeOid *word
	Force     bool
}

// UpdateRefs moves all references of a list, or none.
func (*rootR) UpdateRefs(ctx context.Context, a struct {
	Input struct {
		ClientMutationId *string //nolint:revive // named by the schema
		RepositoryId     graphql.ID
		RefUpdates       []refUpdate
	}
}) (*result, error) {
	x := from(ctx)
	r, err := target[*Repo](x, a.Input.RepositoryId)
	if err != nil {
		return nil, err
	}
	var list []git.RefChange
	for _, u := range a.Input.RefUpdates {
		c := git.RefChange{Name: string(u.Name), After: string(u.AfterOid), Force: u.Force}
		if u.BeforeOid != nil {
			c.Before = string(*u.BeforeOid)
		}
		list = append(list, c)
	}
	return &result{x: x, id: a.Input.ClientMutationId}, x.refs().updateAll(r, list)
}

// MinimizeComment folds a comment.
func (*rootR) MinimizeComment(ctx context.Context, a struct {
	Input struct {
		ClientMutationId *string //nolint:revive // named by the schema
		SubjectId        graphql.ID
		Classifier       string
	}
}) (*result, error) {
	x := from(ctx)
	k, err := target[*Comment](x, a.Input.SubjectId)
	if err != nil {
		return nil, err
	}
	reason := strings.ReplaceAll(strings.ToLower(a.Input.Classifier), "_", "-")
	return &result{x: x, id: a.Input.ClientMutationId, comment: k}, x.minimize(k, true, reason)
}

// subject is the input of mutations whose object is called subject.
type subject struct {
	Input struct {
		ClientMutationId *string //nolint:revive // named by the schema
		SubjectId        graphql.ID
	}
}

// UnminimizeComment unfolds a comment.
func (*rootR) UnminimizeComment(ctx context.Context, a subject) (*result, error) {
	x := from(ctx)
	k, err := target[*Comment](x, a.Input.SubjectId)
	if err != nil {
		return nil, err
	}
	return &result{x: x, id: a.Input.ClientMutationId, comment: k}, x.minimize(k, false, "")
}

// threadInput names a thread.
type threadInput struct {
	Input struct {
		ClientMutationId *string //nolint:revive // named by the schema
		ThreadId         graphql.ID
	}
}

func resolveThread(ctx context.Context, a threadInput, resolved bool) (*result, error) {
	x := from(ctx)
	t, err := target[*Thread](x, a.Input.ThreadId)
	if err != nil {
		return nil, err
	}
	return &result{x: x, id: a.Input.ClientMutationId, thread: t}, x.reviews().resolve(t, resolved)
}

// ResolveReviewThread resolves a thread.
func (*rootR) ResolveReviewThread(ctx context.Context, a threadInput) (*result, error) {
	return resolveThread(ctx, a, true)
}

// UnresolveReviewThread unresolves a thread.
func (*rootR) UnresolveReviewThread(ctx context.Context, a threadInput) (*result, error) {
	return resolveThread(ctx, a, false)
}

// pullInput names a pull request.
type pullInput struct {
	Input struct {
		ClientMutationId *string //nolint:revive // named by the schema
		PullRequestId    graphql.ID
	}
}

// UpdatePullRequestBranch adds the newest commits of the base to a pull request.
func (*rootR) UpdatePullRequestBranch(ctx context.Context, a struct {
	Input struct {
		ClientMutationId *string //nolint:revive // named by the schema
		PullRequestId    graphql.ID
		ExpectedHeadOid  *word
		UpdateMethod     *string
	}
}) (*result, error) {
	x := from(ctx)
	p, err := target[*Pull](x, a.Input.PullRequestId)
	if err != nil {
		return nil, err
	}
	in := BranchUpdate{Rebase: a.Input.UpdateMethod != nil && *a.Input.UpdateMethod == "REBASE"}
	if a.Input.ExpectedHeadOid != nil {
		in.Head = string(*a.Input.ExpectedHeadOid)
	}
	return &result{x: x, id: a.Input.ClientMutationId, pull: p}, x.refs().updateBranch(p, in)
}

func setDraft(ctx context.Context, a pullInput, draft bool) (*result, error) {
	x := from(ctx)
	p, err := target[*Pull](x, a.Input.PullRequestId)
	if err != nil {
		return nil, err
	}
	return &result{x: x, id: a.Input.ClientMutationId, pull: p}, x.setDraft(p, draft)
}

// ConvertPullRequestToDraft converts a pull request to a draft.
func (*rootR) ConvertPullRequestToDraft(ctx context.Context, a pullInput) (*result, error) {
	return setDraft(ctx, a, true)
}

// MarkPullRequestReadyForReview marks a draft as ready for review.
func (*rootR) MarkPullRequestReadyForReview(ctx context.Context, a pullInput) (*result, error) {
	return setDraft(ctx, a, false)
}

// reactionInput names a reaction and its subject.
type reactionInput struct {
	Input struct {
		ClientMutationId *string //nolint:revive // named by the schema
		SubjectId        graphql.ID
		Content          string
	}
}

// reactable returns the reactions of a subject that can have some.
func reactable(x *request, id graphql.ID) (*Issue, *[]*Reaction, error) {
	n, err := x.node(string(id))
	if err != nil {
		return nil, nil, err
	}
	switch v := n.v.(type) {
	case *Issue:
		return v, &v.Reactions, nil
	case *Pull:
		return v.issue, &v.issue.Reactions, nil
	case *Comment:
		return v.issue, &v.Reactions, nil
	case *ReviewComment:
		return v.thread.pull.issue, &v.Reactions, nil
	default:
		return nil, nil, errUnprocessable("'%s' cannot be reacted to", id)
	}
}

// AddReaction adds a reaction.
func (*rootR) AddReaction(ctx context.Context, a reactionInput) (*result, error) {
	x := from(ctx)
	i, list, err := reactable(x, a.Input.SubjectId)
	if err != nil {
		return nil, err
	}
	re, _, err := x.react(i, list, reactionContent(a.Input.Content))
	return &result{x: x, id: a.Input.ClientMutationId, re: re}, err
}

// RemoveReaction removes the caller's reaction.
func (*rootR) RemoveReaction(ctx context.Context, a reactionInput) (*result, error) {
	x := from(ctx)
	i, list, err := reactable(x, a.Input.SubjectId)
	if err != nil {
		return nil, err
	}
	content := reactionContent(a.Input.Content)
	re := &Reaction{User: x.login(), Content: content}
	for _, o := range *list {
		if o.User == x.login() && o.Content == content {
			re = o
		}
	}
	return &result{x: x, id: a.Input.ClientMutationId, re: re}, x.unreact(i, list, 0, content)
}

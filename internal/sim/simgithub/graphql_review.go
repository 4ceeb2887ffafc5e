package simgithub

import (
	"cmp"
	"slices"

	"github.com/graph-gophers/graphql-go"
)

// reviewR is a review.
type reviewR struct {
	x *request
	v *Review
}

// ID is the node id.
func (r *reviewR) ID() graphql.ID { return gid(r.v.NodeID) }

// DatabaseId is the numeric id.
func (r *reviewR) DatabaseId() *int32 { return i32(r.v.ID) } //nolint:revive // named by the schema

// Author is the reviewer.
func (r *reviewR) Author() *actorR { return r.x.actor(r.v.Author) }

// Body is the review's own text.
func (r *reviewR) Body() string { return r.v.Body }

// State is the review's result.
func (r *reviewR) State() string { return r.v.State }

// CreatedAt is the time of its creation.
func (r *reviewR) CreatedAt() dateTime { return dateTime{r.v.SubmittedAt} }

// LastEditedAt is null: edits of reviews are not simulated.
func (r *reviewR) LastEditedAt() *dateTime { return nil }

// Editor is null, too.
func (r *reviewR) Editor() *actorR { return nil }

// Reactions is empty: reactions to reviews are not simulated.
func (r *reviewR) Reactions(a reactionArgs) (*reactionsR, error) { return r.x.reactions(nil, a) }

// SubmittedAt is null while pending.
func (r *reviewR) SubmittedAt() *dateTime {
	if r.v.State == ReviewPending {
		return nil
	}
	return when(r.v.SubmittedAt)
}

// URL is the page with its anchor.
func (r *reviewR) URL() word {
	return word(r.x.s.json.issuePage(r.v.pull.issue) + "#pullrequestreview-" + itoa(r.v.ID))
}

// PullRequest is the reviewed pull request.
func (r *reviewR) PullRequest() *pullR { return newPullR(r.x, r.v.pull) }

// Commit is the reviewed head.
func (r *reviewR) Commit() *commitR { return r.x.commit(r.v.pull.issue.repo, r.v.CommitID) }

// Comments lists the review's comments.
func (r *reviewR) Comments(p paging) (*connection[reviewCommentR], error) {
	var all []*reviewCommentR
	for _, t := range r.v.pull.Threads {
		for _, k := range t.Comments {
			if k.ReviewID == r.v.ID {
				all = append(all, newReviewCommentR(r.x, k))
			}
		}
	}
	slices.SortFunc(all, func(a, b *reviewCommentR) int { return cmp.Compare(a.k.ID, b.k.ID) })
	return connect(all, p)
}

// threadR is a conversation at a line.
type threadR struct {
	x *request
	t *Thread
}

// ID is the node id.
func (t *threadR) ID() graphql.ID { return gid(t.t.NodeID) }

// IsResolved reports whether it is resolved.
func (t *threadR) IsResolved() bool { return t.t.Resolved }

// IsOutdated reports whether the line has changed since.
func (t *threadR) IsOutdated() bool { return t.t.Outdated }

// ResolvedBy is the account that resolved it.
func (t *threadR) ResolvedBy() *userR { return t.x.userR(t.t.ResolvedBy) }

// Path is the file.
func (t *threadR) Path() string { return t.t.Path }

// Line is null once outdated.
func (t *threadR) Line() *int32 { return lineNumber(t.t.Line) }

// OriginalLine is the line in the commit that was commented.
func (t *threadR) OriginalLine() *int32 { return lineNumber(t.t.OriginalLine) }

// StartLine begins a range.
func (t *threadR) StartLine() *int32 { return lineNumber(t.t.StartLine) }

// DiffSide is LEFT or RIGHT.
func (t *threadR) DiffSide() string { return t.t.Side }

// ViewerCanResolve reports whether the caller may resolve it.
func (t *threadR) ViewerCanResolve() bool {
	i := t.t.pull.issue
	return !t.t.Resolved && (t.x.login() == i.Author || t.x.need(i.repo, "pull_requests", "write", RoleWrite) == nil)
}

// ViewerCanReply reports whether the caller may reply.
func (t *threadR) ViewerCanReply() bool {
	return t.x.need(t.t.pull.issue.repo, "pull_requests", "write", RoleRead) == nil
}

// PullRequest is the pull request of the thread.
func (t *threadR) PullRequest() *pullR { return newPullR(t.x, t.t.pull) }

// Comments lists the conversation.
func (t *threadR) Comments(p paging) (*connection[reviewCommentR], error) {
	var all []*reviewCommentR
	for _, k := range t.t.visible(t.x.login()) {
		all = append(all, newReviewCommentR(t.x, k))
	}
	return connect(all, p)
}

// reviewCommentR is a comment in a thread.
type reviewCommentR struct {
	edited
	k *ReviewComment
}

func newReviewCommentR(x *request, k *ReviewComment) *reviewCommentR {
	return &reviewCommentR{edited{x, k.Edits}, k}
}

// ID is the node id.
func (c *reviewCommentR) ID() graphql.ID { return gid(c.k.NodeID) }

// DatabaseId is the numeric id.
func (c *reviewCommentR) DatabaseId() *int32 { return i32(c.k.ID) } //nolint:revive // named by the schema

// Author is the account that wrote it.
func (c *reviewCommentR) Author() *actorR { return c.x.actor(c.k.Author) }

// Body is the Markdown text.
func (c *reviewCommentR) Body() string { return c.k.Body }

// IsMinimized reports whether the comment is folded.
func (c *reviewCommentR) IsMinimized() bool { return c.k.Minimized }

// Path is the file.
func (c *reviewCommentR) Path() string { return c.k.thread.Path }

// DiffHunk is the part of the diff above the line.
func (c *reviewCommentR) DiffHunk() string { return c.k.thread.DiffHunk }

// CreatedAt is the time of its creation.
func (c *reviewCommentR) CreatedAt() dateTime { return dateTime{c.k.CreatedAt} }

// UpdatedAt is the time of the last change.
func (c *reviewCommentR) UpdatedAt() dateTime { return dateTime{c.k.UpdatedAt} }

// URL is the page with its anchor.
func (c *reviewCommentR) URL() word {
	return word(c.x.s.json.issuePage(c.k.thread.pull.issue) + "#discussion_r" + itoa(c.k.ID))
}

// State is PENDING or SUBMITTED.
func (c *reviewCommentR) State() string {
	if c.k.thread.pull.IsPending(c.k) {
		return "PENDING"
	}
	return "SUBMITTED"
}

// ReplyTo is the thread's first comment, null for that one itself.
func (c *reviewCommentR) ReplyTo() *reviewCommentR {
	if c.k.InReplyTo == 0 || c.k.thread.Comments[0] == c.k {
		return nil
	}
	return newReviewCommentR(c.x, c.k.thread.Comments[0])
}

// PullRequestReview is the review that it belongs to.
func (c *reviewCommentR) PullRequestReview() *reviewR {
	v, ok := c.x.s.nodes[nodeID("PRR", c.k.ReviewID)].(*Review)
	if !ok {
		return nil
	}
	return &reviewR{c.x, v}
}

// Reactions lists reactions to the comment.
func (c *reviewCommentR) Reactions(a reactionArgs) (*reactionsR, error) {
	return c.x.reactions(c.k.Reactions, a)
}

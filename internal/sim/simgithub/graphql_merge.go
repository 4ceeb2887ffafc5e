package simgithub

import (
	"context"
	"strings"

	"github.com/graph-gophers/graphql-go"
)

// Actor is the caller.
func (r *result) Actor() *actorR { return r.x.actor(r.x.login()) }

// MergeQueueEntry is the entry that was added or removed.
func (r *result) MergeQueueEntry() *queueEntryR { return &queueEntryR{r.x, r.pull, r.entry} }

// mergeInput describes how to merge a pull request, at once or later. The author's address is ignored.
type mergeInput struct {
	Input struct {
		ClientMutationId *string //nolint:revive // named by the schema
		PullRequestId    graphql.ID
		ExpectedHeadOid  *word
		MergeMethod      string
		CommitHeadline   *string
		CommitBody       *string
		AuthorEmail      *string
	}
}

// target returns the pull request of the input, and how to merge it.
func (a mergeInput) target(x *request) (p *Pull, in Merge, err error) {
	if p, err = target[*Pull](x, a.Input.PullRequestId); err != nil {
		return nil, in, err
	}
	in.Method = strings.ToLower(a.Input.MergeMethod)
	if a.Input.ExpectedHeadOid != nil {
		in.SHA = string(*a.Input.ExpectedHeadOid)
	}
	if a.Input.CommitHeadline != nil {
		in.Title = *a.Input.CommitHeadline
	}
	if a.Input.CommitBody != nil {
		in.Message = *a.Input.CommitBody
	}
	return p, in, nil
}

// MergePullRequest merges a pull request.
func (*rootR) MergePullRequest(ctx context.Context, a mergeInput) (*result, error) {
	x := from(ctx)
	p, in, err := a.target(x)
	if err != nil {
		return nil, err
	}
	if err := x.refs().mayWritePull(p.issue.repo); err != nil {
		return nil, err
	}
	return &result{x: x, id: a.Input.ClientMutationId, pull: p}, x.refs().merge(p, in)
}

// EnablePullRequestAutoMerge merges a pull request as soon as nothing is missing.
func (*rootR) EnablePullRequestAutoMerge(ctx context.Context, a mergeInput) (*result, error) {
	x := from(ctx)
	p, in, err := a.target(x)
	if err != nil {
		return nil, err
	}
	return &result{x: x, id: a.Input.ClientMutationId, pull: p}, x.refs().enableAutoMerge(p, in)
}

// DisablePullRequestAutoMerge withdraws EnablePullRequestAutoMerge.
func (*rootR) DisablePullRequestAutoMerge(ctx context.Context, a pullInput) (*result, error) {
	x := from(ctx)
	p, err := target[*Pull](x, a.Input.PullRequestId)
	if err != nil {
		return nil, err
	}
	return &result{x: x, id: a.Input.ClientMutationId, pull: p}, x.refs().disableAutoMerge(p)
}

// EnqueuePullRequest adds a pull request to the merge queue of its base.
func (*rootR) EnqueuePullRequest(ctx context.Context, a struct {
	Input struct {
		ClientMutationId *string //nolint:revive // named by the schema
		PullRequestId    graphql.ID
		ExpectedHeadOid  *word
		Jump             *bool
	}
}) (*result, error) {
	x := from(ctx)
	p, err := target[*Pull](x, a.Input.PullRequestId)
	if err != nil {
		return nil, err
	}
	head := ""
	if a.Input.ExpectedHeadOid != nil {
		head = string(*a.Input.ExpectedHeadOid)
	}
	e, err := x.refs().enqueue(p, head, a.Input.Jump != nil && *a.Input.Jump)
	return &result{x: x, id: a.Input.ClientMutationId, pull: p, entry: e}, err
}

// DequeuePullRequest removes a pull request, which is the input's id, from the merge queue.
func (*rootR) DequeuePullRequest(ctx context.Context, a struct {
	Input struct {
		ClientMutationId *string //nolint:revive // named by the schema
		ID               graphql.ID
	}
}) (*result, error) {
	x := from(ctx)
	p, err := target[*Pull](x, a.Input.ID)
	if err != nil {
		return nil, err
	}
	e, err := x.refs().dequeue(p)
	return &result{x: x, id: a.Input.ClientMutationId, pull: p, entry: e}, err
}

// AutoMergeRequest is how the pull request will be merged, or was; null without auto-merge.
func (p *pullR) AutoMergeRequest() *autoMergeR {
	if p.p.AutoMerge == nil {
		return nil
	}
	return &autoMergeR{p, p.p.AutoMerge}
}

// IsMergeQueueEnabled reports whether the base has a merge queue.
func (p *pullR) IsMergeQueueEnabled() bool { return p.i.repo.MergeQueues[p.p.Base] }

// IsInMergeQueue reports whether it is in the merge queue.
func (p *pullR) IsInMergeQueue() bool { return p.p.Queued != nil }

// MergeQueueEntry is its place in the merge queue, or null.
func (p *pullR) MergeQueueEntry() *queueEntryR {
	if p.p.Queued == nil {
		return nil
	}
	return &queueEntryR{p.x, p.p, p.p.Queued}
}

type autoMergeR struct {
	p *pullR
	a *AutoMerge
}

// EnabledAt is the time of the request.
func (a *autoMergeR) EnabledAt() *dateTime { return when(a.a.EnabledAt) }

// EnabledBy is who will merge.
func (a *autoMergeR) EnabledBy() *actorR { return a.p.x.actor(a.a.EnabledBy) }

// MergeMethod is MERGE, SQUASH or REBASE.
func (a *autoMergeR) MergeMethod() string { return strings.ToUpper(a.a.Merge.Method) }

// CommitHeadline is null for GitHub's default.
func (a *autoMergeR) CommitHeadline() *string { return nullable(a.a.Merge.Title) }

// CommitBody is null for GitHub's default.
func (a *autoMergeR) CommitBody() *string { return nullable(a.a.Merge.Message) }

// PullRequest is the pull request.
func (a *autoMergeR) PullRequest() *pullR { return a.p }

// queueEntryR is an entry of a merge queue, which may have ended.
type queueEntryR struct {
	x *request
	p *Pull
	e *QueueEntry
}

// ID is opaque.
func (e *queueEntryR) ID() graphql.ID { return gid(nodeID("MQE", e.e.ID)) }

// Position is 1 for the entry that is merged first.
func (e *queueEntryR) Position() int32 {
	n := int32(1)
	for _, p := range e.p.issue.repo.queue(e.p.Base) {
		if p.Queued.rank < e.e.rank {
			n++
		}
	}
	return n
}

// State is AWAITING_CHECKS for the first entry, and QUEUED for the others.
func (e *queueEntryR) State() string {
	if e.Position() == 1 {
		return "AWAITING_CHECKS"
	}
	return "QUEUED"
}

// EnqueuedAt is the time at which it was added.
func (e *queueEntryR) EnqueuedAt() dateTime { return dateTime{e.e.EnqueuedAt} }

// Enqueuer is who added it.
func (e *queueEntryR) Enqueuer() *actorR { return e.x.actor(e.e.Enqueuer) }

// Jump reports whether it was added before all others.
func (e *queueEntryR) Jump() bool { return e.e.Jump }

// PullRequest is the pull request.
func (e *queueEntryR) PullRequest() *pullR { return newPullR(e.x, e.p) }

package simgithub

import (
	"slices"
	"strings"

	"github.com/graph-gophers/graphql-go"
)

// pullR is a pull request.
type pullR struct {
	textR
	p *Pull
}

func newPullR(x *request, p *Pull) *pullR { return &pullR{newTextR(x, p.issue), p} }

// ID is the node id.
func (p *pullR) ID() graphql.ID { return gid(p.p.NodeID) }

// DatabaseId is the numeric id.
func (p *pullR) DatabaseId() *int32 { return i32(p.p.ID) } //nolint:revive // named by the schema

// State is OPEN, CLOSED or MERGED.
func (p *pullR) State() string {
	if p.p.Merged {
		return "MERGED"
	}
	return strings.ToUpper(p.i.State)
}

// IsDraft reports whether it is a draft.
func (p *pullR) IsDraft() bool { return p.p.Draft }

// Merged reports whether it was merged.
func (p *pullR) Merged() bool { return p.p.Merged }

// MergedAt is the time of the merge.
func (p *pullR) MergedAt() *dateTime { return when(p.p.MergedAt) }

// MergedBy is the account that merged it.
func (p *pullR) MergedBy() *actorR { return p.x.actor(p.p.MergedBy) }

// MergeCommit is the commit of the merge.
func (p *pullR) MergeCommit() *commitR { return p.x.commit(p.i.repo, p.p.MergeCommit) }

// Mergeable reports whether it can be merged automatically.
func (p *pullR) Mergeable() string {
	ok, _ := p.x.s.pulls.knownMergeability(p.p)
	p.x.ask(p.p)
	switch ok {
	case true:
		return "MERGEABLE"
	case false:
		return "CONFLICTING"
	default:
		return "UNKNOWN"
	}
}

// MergeStateStatus is the detailed state of mergeability.
func (p *pullR) MergeStateStatus() string {
	_, state := p.x.s.pulls.knownMergeability(p.p)
	p.x.ask(p.p)
	return strings.ToUpper(state)
}

// HeadRefName is the branch to be merged.
func (p *pullR) HeadRefName() string { return p.p.Head }

// HeadRefOid is its head.
func (p *pullR) HeadRefOid() word { return word(p.p.HeadSHA) }

// BaseRefName is the branch to merge into.
func (p *pullR) BaseRefName() string { return p.p.Base }

// BaseRefOid is its head when the pull request was opened.
func (p *pullR) BaseRefOid() word { return word(p.p.BaseSHA) }

// reviewArgs selects reviews.
type reviewArgs struct {
	paging
	States *[]string
}

// Reviews lists submitted reviews, and the caller's pending one.
func (p *pullR) Reviews(a reviewArgs) (*connection[reviewR], error) {
	var all []*reviewR
	for _, v := range p.p.Reviews {
		if a.States != nil && !slices.Contains(*a.States, v.State) {
			continue
		}
		if v.State != ReviewPending || v.Author == p.x.login() {
			all = append(all, &reviewR{p.x, v})
		}
	}
	return connect(all, a.paging)
}

// ReviewThreads lists the threads at lines.
func (p *pullR) ReviewThreads(a paging) (*connection[threadR], error) {
	var all []*threadR
	for _, t := range p.p.Threads {
		if len(t.visible(p.x.login())) > 0 {
			all = append(all, &threadR{p.x, t})
		}
	}
	return connect(all, a)
}

// ClosingIssuesReferences lists the issues that merging will close.
func (p *pullR) ClosingIssuesReferences(a paging) (*connection[issueR], error) {
	var all []*issueR
	for _, i := range p.x.s.find.closedBy(p.p) {
		if p.x.sees(i.repo) {
			all = append(all, newIssueR(p.x, i))
		}
	}
	return connect(all, a)
}

package simgithub

import (
	"context"
	"net/http"
	"time"

	"github.com/graph-gophers/graphql-go"
)

// rootR resolves queries and mutations.
type rootR struct{}

// Node returns an object by its node id. Hidden objects do not exist.
func (*rootR) Node(ctx context.Context, a struct{ ID graphql.ID }) (*nodeR, error) {
	return from(ctx).node(string(a.ID))
}

// Nodes returns several objects. A missing one is null and has an entry in errors.
func (*rootR) Nodes(ctx context.Context, a struct{ IDs []graphql.ID }) ([]*nodeR, error) {
	if len(a.IDs) > 100 {
		return nil, &Error{Status: http.StatusUnprocessableEntity,
			Message: "You may not provide more than 100 node ids; you provided " + itoa(int64(len(a.IDs))) + "."}
	}
	x := from(ctx)
	out := make([]*nodeR, len(a.IDs))
	for n, id := range a.IDs {
		found, err := x.node(string(id))
		if err != nil {
			x.note(err, "nodes", n)
			continue
		}
		out[n] = found
	}
	return out, nil
}

// Repository finds a repository by name.
func (*rootR) Repository(ctx context.Context, a struct {
	Owner, Name   string
	FollowRenames bool
}) (*repositoryR, error) {
	x := from(ctx)
	r, err := x.repo(a.Owner + "/" + a.Name)
	if err != nil {
		return nil, &Error{Status: http.StatusNotFound,
			Message: "Could not resolve to a Repository with the name '" + a.Owner + "/" + a.Name + "'."}
	}
	return &repositoryR{x, r}, nil
}

// User finds an account by login.
func (*rootR) User(ctx context.Context, a struct{ Login string }) (*userR, error) {
	u := from(ctx).userR(a.Login)
	if u == nil {
		return nil, &Error{Status: http.StatusNotFound, Message: "Could not resolve to a User with the login of '" + a.Login + "'."}
	}
	return u, nil
}

// Viewer is the caller.
func (*rootR) Viewer(ctx context.Context) *userR {
	x := from(ctx)
	return x.userR(x.login())
}

// RateLimit is the state of the hourly limit.
func (*rootR) RateLimit(ctx context.Context, _ struct{ DryRun bool }) *rateLimitR {
	x := from(ctx)
	return &rateLimitR{b: *x.quota().bucket("graphql"), limit: x.s.cfg.RateLimit}
}

type rateLimitR struct {
	b     bucket
	limit int
}

// Cost is the number of points of this query.
func (r *rateLimitR) Cost() int32 { return 1 }

// Limit is the number of points per hour.
func (r *rateLimitR) Limit() int32 { return int32(r.limit) }

// NodeCount is not simulated.
func (r *rateLimitR) NodeCount() int32 { return 1 }

// Remaining is the number of points left.
func (r *rateLimitR) Remaining() int32 { return int32(r.limit - r.b.used) }

// Used is the number of points used.
func (r *rateLimitR) Used() int32 { return int32(r.b.used) }

// ResetAt is the end of the hour.
func (r *rateLimitR) ResetAt() dateTime { return dateTime{r.b.reset.Truncate(time.Second)} }

// node resolves a node id for the caller.
func (r *request) node(id string) (*nodeR, error) {
	missing := &Error{Status: http.StatusNotFound, Message: "Could not resolve to a node with the global id of '" + id + "'."}
	v, ok := r.s.nodes[id]
	if !ok {
		return nil, missing
	}
	if !isVisible(v, r.login()) {
		return nil, missing
	}
	repo, perm := owner(v)
	if repo != nil {
		if !r.sees(repo) {
			return nil, missing
		}
		if err := r.need(repo, perm, "read", RoleRead); err != nil {
			return nil, err
		}
	}
	return &nodeR{r, v}, nil
}

// isVisible reports whether an account sees an object. Pending reviews and their comments exist only for their author.
func isVisible(v any, login string) bool {
	switch t := v.(type) {
	case *Review:
		return t.State != ReviewPending || t.Author == login
	case *Thread:
		return len(t.visible(login)) > 0
	case *ReviewComment:
		return t.thread.sees(login, t)
	default:
		return true
	}
}

// owner returns the repository of an object and the permission that reading it needs, or nil for accounts.
func owner(v any) (*Repo, string) {
	switch t := v.(type) {
	case *Repo:
		return t, "metadata"
	case *Issue:
		return t.repo, "issues|pull_requests"
	case *Comment:
		return t.issue.repo, "issues|pull_requests"
	case *Pull:
		return t.issue.repo, "pull_requests"
	case *Review:
		return t.pull.issue.repo, "pull_requests"
	case *Thread:
		return t.pull.issue.repo, "pull_requests"
	case *ReviewComment:
		return t.thread.pull.issue.repo, "pull_requests"
	default:
		return nil, ""
	}
}

// nodeR is an object with a node id.
type nodeR struct {
	x *request
	v any
}

// ID is the node id.
func (n *nodeR) ID() graphql.ID {
	switch t := n.v.(type) {
	case *Repo:
		return gid(t.NodeID)
	case *Issue:
		return gid(t.NodeID)
	case *Comment:
		return gid(t.NodeID)
	case *Pull:
		return gid(t.NodeID)
	case *Review:
		return gid(t.NodeID)
	case *Thread:
		return gid(t.NodeID)
	case *ReviewComment:
		return gid(t.NodeID)
	case *User:
		return gid(t.NodeID)
	default:
		return ""
	}
}

// ToRepository narrows a node.
func (n *nodeR) ToRepository() (*repositoryR, bool) {
	v, ok := n.v.(*Repo)
	return &repositoryR{n.x, v}, ok
}

// ToIssue narrows a node.
func (n *nodeR) ToIssue() (*issueR, bool) {
	v, ok := n.v.(*Issue)
	if !ok {
		return nil, false
	}
	return newIssueR(n.x, v), true
}

// ToIssueComment narrows a node.
func (n *nodeR) ToIssueComment() (*commentR, bool) {
	v, ok := n.v.(*Comment)
	if !ok {
		return nil, false
	}
	return newCommentR(n.x, v), true
}

// ToPullRequest narrows a node.
func (n *nodeR) ToPullRequest() (*pullR, bool) {
	v, ok := n.v.(*Pull)
	if !ok {
		return nil, false
	}
	return newPullR(n.x, v), true
}

// ToPullRequestReview narrows a node.
func (n *nodeR) ToPullRequestReview() (*reviewR, bool) {
	v, ok := n.v.(*Review)
	return &reviewR{n.x, v}, ok
}

// ToPullRequestReviewThread narrows a node.
func (n *nodeR) ToPullRequestReviewThread() (*threadR, bool) {
	v, ok := n.v.(*Thread)
	return &threadR{n.x, v}, ok
}

// ToPullRequestReviewComment narrows a node.
func (n *nodeR) ToPullRequestReviewComment() (*reviewCommentR, bool) {
	v, ok := n.v.(*ReviewComment)
	if !ok {
		return nil, false
	}
	return newReviewCommentR(n.x, v), true
}

// ToUser narrows a node.
func (n *nodeR) ToUser() (*userR, bool) { return n.account(TypeUser) }

// ToBot narrows a node.
func (n *nodeR) ToBot() (*userR, bool) { return n.account(TypeBot) }

// ToOrganization narrows a node.
func (n *nodeR) ToOrganization() (*userR, bool) { return n.account(TypeOrg) }

func (n *nodeR) account(kind string) (*userR, bool) {
	v, ok := n.v.(*User)
	if !ok || v.Type != kind {
		return nil, false
	}
	return &userR{n.x, v}, true
}

// ToReaction is never reached: reactions have no node of their own here.
func (n *nodeR) ToReaction() (*reactionR, bool) { return nil, false }

// ToRef is never reached: references are found by name.
func (n *nodeR) ToRef() (*refR, bool) { return nil, false }

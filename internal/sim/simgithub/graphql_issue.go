package simgithub

import (
	"strings"

	"github.com/graph-gophers/graphql-go"
)

// textR has the fields that issues and pull requests share.
type textR struct {
	edited
	i *Issue
}

func newTextR(x *request, i *Issue) textR { return textR{edited{x, i.Edits}, i} }

// Number is the number in the repository.
func (t *textR) Number() int32 { return int32(t.i.Number) }

// Title is the title.
func (t *textR) Title() string { return t.i.Title }

// Body is the Markdown text.
func (t *textR) Body() string { return t.i.Body }

// Author is the account that opened it.
func (t *textR) Author() *actorR { return t.x.actor(t.i.Author) }

// CreatedAt is the time of its creation.
func (t *textR) CreatedAt() dateTime { return dateTime{t.i.CreatedAt} }

// UpdatedAt is the time of the last change.
func (t *textR) UpdatedAt() dateTime { return dateTime{t.i.UpdatedAt} }

// ClosedAt is null while it is open.
func (t *textR) ClosedAt() *dateTime { return when(t.i.ClosedAt) }

// Locked reports whether the conversation is locked.
func (t *textR) Locked() bool { return t.i.Locked }

// URL is the page.
func (t *textR) URL() word { return word(t.x.s.json.issuePage(t.i)) }

// Repository is the repository that contains it.
func (t *textR) Repository() *repositoryR { return &repositoryR{t.x, t.i.repo} }

// UserContentEdits lists the edits of the body, newest first.
func (t *textR) UserContentEdits(p paging) (*connection[editR], error) {
	return t.x.edits(t.i.Edits, p)
}

// Reactions lists reactions to the text itself.
func (t *textR) Reactions(a reactionArgs) (*reactionsR, error) {
	return t.x.reactions(t.i.Reactions, a)
}

// Labels lists labels.
func (t *textR) Labels(p paging) (*connection[labelR], error) {
	var all []*labelR
	for _, l := range t.i.repo.Labels {
		for _, n := range t.i.Labels {
			if n == l.Name {
				all = append(all, &labelR{l})
			}
		}
	}
	return connect(all, p)
}

// Assignees lists the assigned accounts.
func (t *textR) Assignees(p paging) (*connection[userR], error) {
	var all []*userR
	for _, login := range t.i.Assignees {
		if u := t.x.userR(login); u != nil {
			all = append(all, u)
		}
	}
	return connect(all, p)
}

// Comments lists the conversation.
func (t *textR) Comments(p paging) (*connection[commentR], error) {
	var all []*commentR
	for _, k := range t.i.Comments {
		all = append(all, newCommentR(t.x, k))
	}
	return connect(all, p)
}

// labelR is a label.
type labelR struct{ l Label }

// ID is the node id.
func (l *labelR) ID() graphql.ID { return gid(l.l.NodeID) }

// Name is the label's text.
func (l *labelR) Name() string { return l.l.Name }

// Color is six hexadecimal digits.
func (l *labelR) Color() string { return l.l.Color }

// issueR is an issue.
type issueR struct{ textR }

func newIssueR(x *request, i *Issue) *issueR { return &issueR{newTextR(x, i)} }

// ID is the node id.
func (i *issueR) ID() graphql.ID { return gid(i.i.NodeID) }

// DatabaseId is the numeric id.
func (i *issueR) DatabaseId() *int32 { return i32(i.i.ID) } //nolint:revive // named by the schema

// State is OPEN or CLOSED.
func (i *issueR) State() string { return strings.ToUpper(i.i.State) }

// StateReason is null for an issue that was never closed.
func (i *issueR) StateReason() *string { return nullable(strings.ToUpper(i.i.StateReason)) }

// Parent is the issue of which this is a sub-issue.
func (i *issueR) Parent() *issueR {
	p, ok := i.x.s.find.issue(i.i.Parent)
	if !ok || !i.x.sees(p.repo) {
		return nil
	}
	return newIssueR(i.x, p)
}

// SubIssues lists the sub-issues.
func (i *issueR) SubIssues(p paging) (*connection[issueR], error) {
	var all []*issueR
	for _, id := range i.i.SubIssues {
		if c, ok := i.x.s.find.issue(id); ok && i.x.sees(c.repo) {
			all = append(all, newIssueR(i.x, c))
		}
	}
	return connect(all, p)
}

// ClosedByPullRequestsReferences lists the pull requests whose text closes this issue.
func (i *issueR) ClosedByPullRequestsReferences(a struct {
	First            *int32
	After            *string
	Last             *int32
	Before           *string
	IncludeClosedPrs bool
}) (*connection[pullR], error) {
	var all []*pullR
	for _, o := range i.i.repo.IssuesByNumber() {
		if o.Pull == nil || o.State != "open" && !a.IncludeClosedPrs {
			continue
		}
		for _, c := range i.x.s.find.closedBy(o.Pull) {
			if c == i.i {
				all = append(all, newPullR(i.x, o.Pull))
			}
		}
	}
	return connect(all, paging{a.First, a.After, a.Last, a.Before})
}

// commentR is a comment of a conversation.
type commentR struct {
	edited
	k *Comment
}

func newCommentR(x *request, k *Comment) *commentR { return &commentR{edited{x, k.Edits}, k} }

// ID is the node id.
func (c *commentR) ID() graphql.ID { return gid(c.k.NodeID) }

// DatabaseId is the numeric id.
func (c *commentR) DatabaseId() *int32 { return i32(c.k.ID) } //nolint:revive // named by the schema

// Author is the account that wrote it.
func (c *commentR) Author() *actorR { return c.x.actor(c.k.Author) }

// Body is the Markdown text.
func (c *commentR) Body() string { return c.k.Body }

// CreatedAt is the time of its creation.
func (c *commentR) CreatedAt() dateTime { return dateTime{c.k.CreatedAt} }

// UpdatedAt is the time of the last change.
func (c *commentR) UpdatedAt() dateTime { return dateTime{c.k.UpdatedAt} }

// UserContentEdits lists the edits, newest first.
func (c *commentR) UserContentEdits(p paging) (*connection[editR], error) {
	return c.x.edits(c.k.Edits, p)
}

// IsMinimized reports whether the comment is folded.
func (c *commentR) IsMinimized() bool { return c.k.Minimized }

// MinimizedReason is the reason for folding.
func (c *commentR) MinimizedReason() *string { return nullable(c.k.MinimizedReason) }

// Issue is the issue of the comment; for a pull request, its issue side.
func (c *commentR) Issue() *issueR { return newIssueR(c.x, c.k.issue) }

// PullRequest is null for a comment on an issue.
func (c *commentR) PullRequest() *pullR {
	if c.k.issue.Pull == nil {
		return nil
	}
	return newPullR(c.x, c.k.issue.Pull)
}

// URL is the page with its anchor.
func (c *commentR) URL() word { return word(c.x.s.json.commentPage(c.k)) }

// Reactions lists reactions to the comment.
func (c *commentR) Reactions(a reactionArgs) (*reactionsR, error) {
	return c.x.reactions(c.k.Reactions, a)
}

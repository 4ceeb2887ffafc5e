package simgithub

import (
	"slices"

	"github.com/graph-gophers/graphql-go"
)

// TimelineItems lists the history of an issue, oldest first. Only references by other issues and
// pull requests are simulated; a query for others is an error.
func (i *issueR) TimelineItems(a struct {
	First     *int32
	After     *string
	Last      *int32
	Before    *string
	ItemTypes *[]string
}) (*connection[timelineItemR], error) {
	var all []*timelineItemR
	if a.ItemTypes == nil || slices.Contains(*a.ItemTypes, "CROSS_REFERENCED_EVENT") {
		for _, e := range i.i.Events {
			from, ok := i.x.s.find.issue(e.Source)
			if e.Event == "cross-referenced" && ok && i.x.sees(from.repo) {
				all = append(all, &timelineItemR{&crossReferencedR{i.x, e, from, i.i}})
			}
		}
	}
	return connect(all, paging{a.First, a.After, a.Last, a.Before})
}

// timelineItemR is one entry of the history.
type timelineItemR struct{ reference *crossReferencedR }

// ToCrossReferencedEvent narrows it.
func (t *timelineItemR) ToCrossReferencedEvent() (*crossReferencedR, bool) { return t.reference, true }

// crossReferencedR is a reference to the issue in another text.
type crossReferencedR struct {
	x        *request
	e        *Event
	from, to *Issue
}

// ID is opaque.
func (c *crossReferencedR) ID() graphql.ID { return gid(nodeID("CRE", c.e.ID)) }

// Actor is the author of the text.
func (c *crossReferencedR) Actor() *actorR { return c.x.actor(c.e.Actor) }

// CreatedAt is the time of the reference.
func (c *crossReferencedR) CreatedAt() dateTime { return dateTime{c.e.CreatedAt} }

// ReferencedAt is the same time.
func (c *crossReferencedR) ReferencedAt() dateTime { return dateTime{c.e.CreatedAt} }

// IsCrossRepository reports whether the text is in another repository.
func (c *crossReferencedR) IsCrossRepository() bool { return c.from.repo != c.to.repo }

// WillCloseTarget reports whether the text closes the issue.
func (c *crossReferencedR) WillCloseTarget() bool {
	return c.from.Pull != nil && slices.Contains(c.x.s.find.closedBy(c.from.Pull), c.to)
}

// Source is the issue or pull request of the text.
func (c *crossReferencedR) Source() *subjectR { return &subjectR{c.x, c.from} }

// Target is the referenced issue.
func (c *crossReferencedR) Target() *subjectR { return &subjectR{c.x, c.to} }

// subjectR is an issue or a pull request.
type subjectR struct {
	x *request
	i *Issue
}

// ToIssue narrows it.
func (s *subjectR) ToIssue() (*issueR, bool) { return newIssueR(s.x, s.i), s.i.Pull == nil }

// ToPullRequest narrows it.
func (s *subjectR) ToPullRequest() (*pullR, bool) {
	if s.i.Pull == nil {
		return nil, false
	}
	return newPullR(s.x, s.i.Pull), true
}

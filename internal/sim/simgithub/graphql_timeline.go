package simgithub

import (
	"slices"

	"github.com/graph-gophers/graphql-go"
)

// TimelineItems lists what happened to an issue, oldest first. Only references by other issues and
// pull requests are modelled: they are all that is listed, and all that may be asked for.
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

// timelineItemR is one thing that happened.
type timelineItemR struct{ reference *crossReferencedR }

// ToCrossReferencedEvent narrows it.
func (t *timelineItemR) ToCrossReferencedEvent() (*crossReferencedR, bool) { return t.reference, true }

// crossReferencedR says that another text names the issue.
type crossReferencedR struct {
	x        *request
	e        *Event
	from, to *Issue
}

// ID is opaque.
func (c *crossReferencedR) ID() graphql.ID { return gid(nodeID("CRE", c.e.ID)) }

// Actor is who wrote the text.
func (c *crossReferencedR) Actor() *actorR { return c.x.actor(c.e.Actor) }

// CreatedAt is when.
func (c *crossReferencedR) CreatedAt() dateTime { return dateTime{c.e.CreatedAt} }

// ReferencedAt is when, too.
func (c *crossReferencedR) ReferencedAt() dateTime { return dateTime{c.e.CreatedAt} }

// IsCrossRepository tells whether the text stands elsewhere.
func (c *crossReferencedR) IsCrossRepository() bool { return c.from.repo != c.to.repo }

// WillCloseTarget tells whether the text says that it closes the issue.
func (c *crossReferencedR) WillCloseTarget() bool {
	return c.from.Pull != nil && slices.Contains(c.x.s.find.closedBy(c.from.Pull), c.to)
}

// Source is what the text belongs to.
func (c *crossReferencedR) Source() *subjectR { return &subjectR{c.x, c.from} }

// Target is the issue.
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

package web

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// itemView is one entry of a conversation. Exactly one of the pointers is set.
type itemView struct {
	Text   *textView   // a comment
	Event  *eventView  // something that happened
	Review *reviewView // a review with its threads
	Commit *simgithub.CommitView

	at time.Time
	id int64
}

// eventView is one line of the history: actor, action and object.
type eventView struct {
	Actor string
	Words string
	Label *simgithub.Label
	Login string
	Link  *linkView
	SHA   string
	After string // words after the object
	At    time.Time
}

// items returns the conversation and history of an issue or pull request, oldest first.
func (g *viewer) items(i *simgithub.Issue, commits []simgithub.CommitView) []itemView {
	var list []itemView
	for _, k := range i.Comments {
		t := g.comment(k)
		list = append(list, itemView{Text: &t, at: k.CreatedAt, id: k.ID})
	}
	for _, e := range i.Events {
		if i.Pull != nil && i.Pull.Merged && e.Event == "closed" && !e.CreatedAt.Before(i.Pull.MergedAt) {
			continue // the merge event implies it
		}
		if ev := g.event(e); ev != nil {
			list = append(list, itemView{Event: ev, at: e.CreatedAt, id: e.ID})
		}
	}
	if i.Pull != nil {
		for _, rv := range g.reviews(i) {
			list = append(list, itemView{Review: &rv, at: rv.At, id: rv.ID})
		}
		for _, c := range commits {
			list = append(list, itemView{Commit: &c, at: c.At})
		}
	}
	slices.SortStableFunc(list, func(a, b itemView) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.id, b.id)) })
	return list
}

// event describes an entry of the history. It returns nil for entries that are not shown.
func (g *viewer) event(e *simgithub.Event) *eventView {
	out := &eventView{Actor: e.Actor, At: e.CreatedAt, Words: eventWords(e)}
	switch e.Event {
	case "labeled", "unlabeled":
		out.Label = &simgithub.Label{Name: e.Label, Color: "ededed"}
		for _, l := range g.r.Labels {
			if l.Name == e.Label {
				out.Label = &l
			}
		}
	case "assigned", "unassigned":
		if out.Login = e.Assignee; e.Assignee == e.Actor {
			out.Login, out.Words = "", map[bool]string{true: "took this on", false: "gave this up"}[e.Event == "assigned"]
		}
	case "review_requested", "review_request_removed":
		out.Login = e.Reviewer
	case "cross-referenced":
		from, ok := g.issueByID(e.Source)
		if !ok {
			return nil
		}
		l := linkTo(from)
		out.Link = &l
	case "closed", "merged", "reopened":
		out.SHA = e.CommitID
		if out.SHA != "" && e.Event == "closed" {
			out.Words = "closed this with"
		}
	case "":
		return nil
	}
	return out
}

// eventWords returns the sentence about an event, up to its object.
func eventWords(e *simgithub.Event) string {
	words := map[string]string{
		"labeled": "added the label", "unlabeled": "removed the label", "assigned": "assigned", "unassigned": "unassigned",
		"closed": "closed this", "reopened": "reopened this", "locked": "locked the conversation", "unlocked": "unlocked the conversation",
		"merged": "merged this with", "cross-referenced": "mentioned this in", "review_requested": "asked for a review by",
		"review_request_removed": "took back the review request to", "review_dismissed": "dismissed a review",
		"ready_for_review": "marked this as ready for review", "convert_to_draft": "made this a draft",
		"comment_deleted": "deleted a comment", "blocked_by_added": "marked this as blocked", "blocked_by_removed": "marked this as not blocked any more",
		"sub_issue_added": "added a sub-issue", "sub_issue_removed": "removed a sub-issue", "head_ref_deleted": "deleted the branch", "head_ref_force_pushed": "force-pushed the branch",
	}
	switch {
	case e.Event == "renamed":
		return fmt.Sprintf("changed the title from “%s” to “%s”", e.RenameFrom, e.RenameTo)
	case e.Event == "locked" && e.LockReason != "":
		return "locked the conversation as " + e.LockReason
	case words[e.Event] != "":
		return words[e.Event]
	default:
		return e.Event
	}
}

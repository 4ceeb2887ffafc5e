package web

import (
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// reviewerView is the state of one reviewer.
type reviewerView struct {
	Login string
	State string // approved, changes requested, commented, asked
}

// reviewView is a review with the threads that it started.
type reviewView struct {
	ID         int64
	At         time.Time
	Author     string
	Words      string
	State      string
	Text       *textView // nil without a body
	Threads    []threadView
	MayDismiss bool
}

// threadView is a conversation at a line.
type threadView struct {
	ID         int64
	Path       string
	Where      string // such as "line 12"
	Hunk       []diffLine
	Resolved   bool
	ResolvedBy string
	Outdated   bool
	Comments   []textView
	MayReply   bool
	MayResolve bool

	line int
	left bool
}

// reviewers returns the last result of each reviewer, and the requested reviewers without one.
func reviewers(i *simgithub.Issue) (out []reviewerView) {
	p := i.Pull
	state := map[string]string{}
	var order []string
	for _, v := range p.Reviews {
		if v.State == simgithub.ReviewPending || v.Author == i.Author {
			continue
		}
		if _, known := state[v.Author]; !known {
			order = append(order, v.Author)
		}
		if v.State != simgithub.ReviewCommented || state[v.Author] == "" {
			state[v.Author] = strings.ToLower(strings.ReplaceAll(v.State, "_", " "))
		}
	}
	for _, login := range order {
		out = append(out, reviewerView{login, state[login]})
	}
	for _, login := range p.RequestedReviewers {
		out = append(out, reviewerView{login, "asked"})
	}
	return out
}

// reviews returns the submitted reviews. It leaves out a review that only wraps a reply in a thread, because the reply
// is shown in its thread.
func (g *viewer) reviews(i *simgithub.Issue) (out []reviewView) {
	p, threads := i.Pull, g.threads(i)
	for _, v := range p.Reviews {
		if v.State == simgithub.ReviewPending {
			continue
		}
		rv := reviewView{
			ID: v.ID, At: v.SubmittedAt, Author: v.Author, State: v.State, Words: reviewWords(v.State),
			MayDismiss: g.may(simgithub.RoleWrite) && (v.State == simgithub.ReviewApproved || v.State == simgithub.ReviewChangesRequested),
		}
		if v.Body != "" {
			t := g.text(textView{Kind: textReview, ID: v.ID, Anchor: "pullrequestreview-" + itoa(v.ID), Author: v.Author, Source: v.Body, At: v.SubmittedAt})
			t.MayEdit, t.MayDelete, t.MayReact = false, false, false
			rv.Text = &t
		}
		for n, t := range p.Threads {
			if len(t.Comments) > 0 && t.Comments[0].ReviewID == v.ID {
				rv.Threads = append(rv.Threads, threads[n])
			}
		}
		if rv.Text != nil || len(rv.Threads) > 0 || v.State != simgithub.ReviewCommented {
			out = append(out, rv)
		}
	}
	return out
}

func reviewWords(state string) string {
	return map[string]string{
		simgithub.ReviewApproved: "approved these changes", simgithub.ReviewChangesRequested: "requested changes", simgithub.ReviewCommented: "reviewed",
		simgithub.ReviewDismissed: "reviewed (dismissed since)",
	}[state]
}

// threads returns all threads, in the order of p.Threads.
func (g *viewer) threads(i *simgithub.Issue) (out []threadView) {
	p, own := i.Pull, g.known() && g.p.Login() == i.Author
	for _, t := range p.Threads {
		tv := threadView{
			ID: t.ID, Path: t.Path, Resolved: t.Resolved, ResolvedBy: t.ResolvedBy, Outdated: t.Outdated, Hunk: hunkTail(t.DiffHunk, 4),
			MayReply: g.mayTalk(i), MayResolve: own || g.may(simgithub.RoleWrite), line: t.Line, left: t.Side == "LEFT",
		}
		switch {
		case t.Line > 0:
			tv.Where = "line " + itoa(int64(t.Line))
		case t.Outdated:
			tv.Where = "line " + itoa(int64(t.OriginalLine)) + " of an older version"
		default:
			tv.Where = "the whole file"
		}
		for _, k := range t.Comments {
			c := g.text(textView{Kind: textLine, ID: k.ID, Anchor: "discussion_r" + itoa(k.ID), Author: k.Author, Source: k.Body, At: k.CreatedAt})
			c.Edits, c.Reactions = slices.Clone(k.Edits), g.reactions(k.Reactions)
			tv.Comments = append(tv.Comments, c)
		}
		out = append(out, tv)
	}
	return out
}

package web

import (
	"net/http"
	"slices"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// issueView is the page of an issue, and the conversation of a pull request.
type issueView struct {
	Full      string
	Number    int
	Title     string
	State     string // Open, Closed, Merged, Draft
	Closed    bool
	Locked    bool
	Author    string
	Body      textView
	Items     []itemView
	Side      sideView
	MayTalk   bool
	MayTriage bool
	MayState  bool // close and reopen
	MayEdit   bool // title and body
	Talkers   int
	Pull      *pullHead // nil for an issue
}

// sideView is the column next to the conversation.
type sideView struct {
	Assignees  []string
	Assignable []string // not assigned yet
	Labels     []simgithub.Label
	Unused     []simgithub.Label // labels of the repository that the issue does not have
	Type       string
	Milestone  string
	BlockedBy  []linkView
	SubIssues  []linkView
	Linked     []linkView
	People     []string // participants
}

// linkView is an issue or pull request in a list.
type linkView struct {
	Number int
	Title  string
	State  string
	Pull   bool
}

func (w *site) issuePage(v *visit) error {
	out, err := w.readIssue(v)
	if err != nil {
		return err
	}
	if out.Pull != nil {
		http.Redirect(v.w, v.r, "/"+out.Full+"/pull/"+itoa(int64(out.Number)), http.StatusFound)
		return nil
	}
	return v.render("issue", out.Title+" · issue #"+itoa(int64(out.Number)), out)
}

// readIssue returns the view of an issue or pull request.
func (w *site) readIssue(v *visit) (*issueView, error) {
	r, err := v.p.Repo(v.full())
	if err != nil {
		return nil, err
	}
	i, ok := r.Issues[v.n()]
	if !ok {
		return nil, notFound()
	}
	g := w.viewer(v, r)
	own := v.p.Login() == i.Author
	out := &issueView{
		Full: r.FullName(), Number: i.Number, Title: i.Title, State: stateWord(i), Closed: i.State == "closed",
		Locked: i.Locked, Author: i.Author, Body: g.body(i), MayTalk: g.mayTalk(i), MayTriage: g.may(simgithub.RoleTriage),
		MayState: (own || g.may(simgithub.RoleTriage)) && (i.Pull == nil || !i.Pull.Merged), MayEdit: own || g.may(simgithub.RoleWrite),
		Side: g.side(i), Talkers: len(i.Comments),
	}
	var view simgithub.PullView
	if i.Pull != nil {
		if view, err = v.p.PullView(v.full(), i.Number); err != nil {
			return nil, err
		}
		out.Pull = w.pullHead(g, i, view)
	}
	out.Items = g.items(i, view.Commits)
	return out, nil
}

// stateWord returns the state of an issue or pull request in a word or two.
func stateWord(i *simgithub.Issue) string {
	switch {
	case i.Pull != nil && i.Pull.Merged:
		return "Merged"
	case i.State == "closed" && i.StateReason == "not_planned":
		return "Not planned"
	case i.State == "closed":
		return "Closed"
	case i.Pull != nil && i.Pull.Draft:
		return "Draft"
	default:
		return "Open"
	}
}

func linkTo(i *simgithub.Issue) linkView {
	return linkView{Number: i.Number, Title: i.Title, State: stateWord(i), Pull: i.Pull != nil}
}

func (g *viewer) side(i *simgithub.Issue) sideView {
	s := sideView{Assignees: slices.Clone(i.Assignees), Type: i.Type, Milestone: i.Milestone}
	for _, login := range g.p.Assignable(g.r.FullName(), i.Number) {
		if !slices.Contains(i.Assignees, login) {
			s.Assignable = append(s.Assignable, login)
		}
	}
	for _, l := range g.r.Labels {
		if slices.Contains(i.Labels, l.Name) {
			s.Labels = append(s.Labels, l)
		} else {
			s.Unused = append(s.Unused, l)
		}
	}
	for _, id := range i.BlockedBy {
		if other, ok := g.issueByID(id); ok {
			s.BlockedBy = append(s.BlockedBy, linkTo(other))
		}
	}
	for _, id := range i.SubIssues {
		if other, ok := g.issueByID(id); ok {
			s.SubIssues = append(s.SubIssues, linkTo(other))
		}
	}
	for _, other := range g.r.IssuesByNumber() {
		if other.Pull != nil && slices.Contains(g.closes(other), i.Number) {
			s.Linked = append(s.Linked, linkTo(other))
		}
	}
	if i.Pull != nil {
		for _, n := range g.closes(i) {
			if other, ok := g.r.Issues[n]; ok {
				s.Linked = append(s.Linked, linkTo(other))
			}
		}
	}
	s.People = tookPart(i)
	return s
}

// tookPart returns the authors of everything that is public, in the order of their first texts.
func tookPart(i *simgithub.Issue) []string {
	list := []string{i.Author}
	add := func(login string) {
		if !slices.Contains(list, login) {
			list = append(list, login)
		}
	}
	for _, k := range i.Comments {
		add(k.Author)
	}
	if i.Pull != nil {
		for _, v := range i.Pull.Reviews {
			if v.State != simgithub.ReviewPending {
				add(v.Author)
			}
		}
	}
	return list
}

package web

import (
	"html/template"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// Kinds of texts, as forms name them.
const (
	textIssue  = "issue"  // body of an issue or pull request
	textTalk   = "talk"   // comment of the conversation
	textReview = "review" // body of a review
	textLine   = "line"   // comment of a thread
)

// textView is a text with its author.
type textView struct {
	Kind      string
	ID        int64
	Anchor    string
	Author    string
	Badge     string // App, Owner, Member…; often empty
	At        time.Time
	HTML      template.HTML
	Source    string
	Hash      string           // of Source: forms contain it, so that no change in between is overwritten
	Edits     []simgithub.Edit // oldest first
	Reactions []reactionView
	MayReact  bool
	MayEdit   bool
	MayDelete bool
	Minimized string // reason why it is folded, or empty
	MayFold   bool
}

// Editor returns the last editor, or an empty string.
func (t textView) Editor() string {
	if len(t.Edits) == 0 {
		return ""
	}
	return t.Edits[len(t.Edits)-1].Editor
}

// Form returns the id of the form of its boxes.
func (t textView) Form() string { return "tick-" + t.Anchor }

// Last returns the time of the last edit.
func (t textView) Last() time.Time {
	if len(t.Edits) == 0 {
		return time.Time{}
	}
	return t.Edits[len(t.Edits)-1].At
}

// reactionView is one kind of reaction under a text.
type reactionView struct {
	Content, Emoji, Name string
	Who                  []string
	Mine                 bool
}

// Label returns the name of the reaction and the accounts that added it.
func (r reactionView) Label() string {
	label := r.Name
	if len(r.Who) > 0 {
		label += ", given by " + strings.Join(r.Who, ", ")
	}
	return label
}

// viewer creates the views of one repository for one person.
type viewer struct {
	p    simgithub.Person
	r    *simgithub.Repo
	md   *markdown
	in   scope
	role simgithub.Role
	bots map[string]bool // logins of bots
}

func (w *site) viewer(visit *visit, r *simgithub.Repo) *viewer {
	v := &viewer{
		p: visit.p, r: r, md: w.md, role: simgithub.RoleNone, bots: map[string]bool{},
		in: scope{full: r.FullName(), issues: map[int]bool{}, people: map[string]bool{}},
	}
	v.in.commit = func(name string) string { return r.Git.Resolve(name) }
	for n, i := range r.Issues {
		v.in.issues[n] = i.Pull != nil
	}
	for _, u := range w.s.Users() {
		v.in.people[u.Login], v.bots[u.Login] = true, u.Type == simgithub.TypeBot
	}
	if v.in.people[v.p.Login()] {
		v.role = r.RoleOf(v.p.Login())
	}
	return v
}

// may reports whether the person has a role or a higher one.
func (v *viewer) may(role simgithub.Role) bool {
	return v.known() && v.role.Rank() >= role.Rank() && !v.r.Archived
}

// known reports whether the person has an account.
func (v *viewer) known() bool { return v.in.people[v.p.Login()] }

// mayTalk reports whether the person may comment.
func (v *viewer) mayTalk(i *simgithub.Issue) bool {
	return v.may(simgithub.RoleRead) && (!i.Locked || v.may(simgithub.RoleWrite))
}

// issueByID returns an issue of the repository.
func (v *viewer) issueByID(id int64) (*simgithub.Issue, bool) {
	for _, i := range v.r.Issues {
		if i.ID == id {
			return i, true
		}
	}
	return nil, false
}

// closes returns the issues that merging a pull request will close.
func (v *viewer) closes(pull *simgithub.Issue) []int {
	list, err := v.p.Closes(v.r.FullName(), pull.Number)
	if err != nil {
		return nil // it was deleted in between
	}
	return list
}

// text completes a view of which kind, id, anchor, author, time and source are set.
func (v *viewer) text(t textView) textView {
	own := v.known() && v.p.Login() == t.Author
	t.Badge, t.Hash = v.badge(t.Author), digest(t.Source)
	t.MayReact, t.MayEdit = v.may(simgithub.RoleRead), own || v.may(simgithub.RoleWrite)
	t.MayDelete = t.MayEdit
	box := boxes(fixedBoxes)
	if t.MayEdit && (t.Kind == textIssue || t.Kind == textTalk) {
		box = tickBoxes(t.Form())
	}
	t.HTML = v.md.render(t.Source, v.in, box)
	return t
}

func (v *viewer) comment(k *simgithub.Comment) textView {
	t := v.text(textView{Kind: textTalk, ID: k.ID, Anchor: "issuecomment-" + itoa(k.ID), Author: k.Author, Source: k.Body, At: k.CreatedAt})
	t.Edits, t.Reactions, t.MayFold = slices.Clone(k.Edits), v.reactions(k.Reactions), t.MayEdit
	if k.Minimized {
		t.Minimized = k.MinimizedReason
	}
	return t
}

func (v *viewer) body(i *simgithub.Issue) textView {
	t := v.text(textView{Kind: textIssue, ID: i.ID, Anchor: "issue-" + itoa(int64(i.Number)), Author: i.Author, Source: i.Body, At: i.CreatedAt})
	t.Edits, t.Reactions, t.MayDelete = slices.Clone(i.Edits), v.reactions(i.Reactions), false
	return t
}

func (v *viewer) badge(login string) string {
	switch {
	case v.bots[login]:
		return "bot"
	case login == v.r.Owner:
		return "owner"
	}
	if role, ok := v.r.Collaborators[login]; ok {
		return string(role)
	}
	return ""
}

// reactions returns all kinds of reactions with the accounts that added them.
func (v *viewer) reactions(list []*simgithub.Reaction) []reactionView {
	out := []reactionView{
		{Content: "+1", Emoji: "👍", Name: "Thumbs up"}, {Content: "-1", Emoji: "👎", Name: "Thumbs down"},
		{Content: "laugh", Emoji: "😄", Name: "Laugh"}, {Content: "hooray", Emoji: "🎉", Name: "Hooray"},
		{Content: "confused", Emoji: "😕", Name: "Confused"}, {Content: "heart", Emoji: "❤️", Name: "Heart"},
		{Content: "rocket", Emoji: "🚀", Name: "Rocket"}, {Content: "eyes", Emoji: "👀", Name: "Eyes"},
	}
	for n := range out {
		for _, re := range list {
			if re.Content == out[n].Content {
				out[n].Who = append(out[n].Who, re.User)
				out[n].Mine = out[n].Mine || re.User == v.p.Login()
			}
		}
	}
	return out
}

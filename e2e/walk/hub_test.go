package walk

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
)

// The repository of a walk, and errand's names there.
const (
	repoID       = 10
	owner        = "acme"
	repoName     = "slug"
	installation = 7
	slug         = "errand"
	botID        = 900
	botLogin     = "errand[bot]"
	assignee     = "errand-bot" // the machine user whose assignment starts a task
	assigneeID   = 901
	label        = "errand"
	mainBranch   = "main"
)

// hub is the current state of GitHub. Times are full seconds, as on GitHub.
type hub struct {
	w        *world
	repo     int64 // its id
	people   []*account
	issues   map[int]*issue // including pull requests
	last     int            // number of the newest issue or pull request
	ids      int64
	branches map[string]string // head by name
	deleted  []string          // names and heads of deleted branches
	commits  map[string]*commit
	config   string // .errand.yml of the default branch
	hooks    []*hook
	failed   []*hook // for the sweep: no attempt has succeeded
	guids    int
}

// account is a person or a bot.
type account struct {
	state.Person
	may  state.Permission
	lost time.Time // when write access was last revoked
	won  time.Time // when it was last granted
	held bool      // ever had it
}

func (a *account) canWrite() bool { return a.may.CanWrite() }

// mightSince reports whether the person had write access at some moment since a time.
func (a *account) mightSince(then time.Time) bool {
	return a.canWrite() || a.held && !a.lost.Before(then)
}

type issue struct {
	number   int
	node     string
	author   *account
	created  time.Time
	texts    []text // versions, newest last
	closed   bool
	closedAt time.Time
	labels   []string
	assigned bool
	events   []fact
	comments []*comment
	thumbs   []thumb
	eyes     time.Time // errand's 👀
	hidden   []span    // from the sweeps
	pull     *pull
	touched  time.Time // when the pull request was last reopened
}

// text is one version of an issue's text.
type text struct {
	title, body string
	by          *account
	at          time.Time
}

func (i *issue) text() text { return i.texts[len(i.texts)-1] }

// fact is an issue event: assigned, labeled, renamed.
type fact struct {
	what, about string
	by          *account
	at          time.Time
}

type comment struct {
	id      int64
	node    string
	on      *issue
	author  *account // nil: errand
	bodies  []body   // versions, newest last
	created time.Time
	thumbs  []thumb
	eyes    bool
	gone    bool
	removed bool // by errand
	// undeletable means that GitHub permanently refused errand's deletion.
	undeletable bool
	failed      int   // number of errand's reactions that GitHub did not answer, or refused
	denied      bool  // errand has stopped retrying the reaction
	reviewed    int64 // the thread it belongs to, 0 for the conversation
}

// body is one version of a comment; by is nil if errand wrote it.
type body struct {
	text string
	by   *account
	at   time.Time
}

func (c *comment) body() string { return c.bodies[len(c.bodies)-1].text }

type thumb struct {
	node string
	by   *account
	at   time.Time
}

type pull struct {
	head, base string
	title      string
	open       bool
	merged     bool
	closedHead string // the head when it was closed
	unknown    bool   // merged for the store although closed by a person: continuing opens another one
	mergedBy   *account
	threads    []*thread
	reviews    []forge.Review
	own        []*ownReview
	ours       bool
}

type thread struct {
	top      int64
	comments []*comment
	resolved bool
}

type commit struct {
	parent   string
	conflict bool   // rebasing onto it fails
	merged   string // the commit of the base that it merges
	clash    bool   // of the base: it conflicts with every branch without it
	own      bool   // it is by errand, or by GitHub in errand's name
}

func newHub(w *world) *hub {
	h := &hub{w: w, repo: repoID, issues: map[int]*issue{}, branches: map[string]string{}, commits: map[string]*commit{}, ids: 1000}
	for i, p := range []struct {
		login string
		may   state.Permission
	}{{"ada", state.PermissionAdmin}, {"bob", state.PermissionWrite}, {"rob", state.PermissionRead}, {"eve", state.PermissionNone}, {"dependabot[bot]", state.PermissionWrite}} {
		h.people = append(h.people, &account{Person: state.Person{ID: int64(i + 1), Login: p.login, Bot: strings.HasSuffix(p.login, "[bot]")}, may: p.may, held: p.may.CanWrite()})
	}
	h.branches[mainBranch] = h.newCommit("")
	return h
}

func (h *hub) id() int64 { h.ids++; return h.ids }

// clock returns GitHub's time.
func (h *hub) clock() time.Time { return h.w.now.Truncate(time.Second) }

// sha returns a new unique ID in git's form.
func (h *hub) sha() string { return fmt.Sprintf("%040x", 0xabc0000000+h.id()) }

func (h *hub) newCommit(parent string) string {
	id := h.sha()
	h.commits[id] = &commit{parent: parent}
	return id
}

func (h *hub) person(login string) *account {
	i := slices.IndexFunc(h.people, func(a *account) bool { return strings.EqualFold(a.Login, login) })
	if i < 0 {
		return nil
	}
	return h.people[i]
}

// writers returns the people with write access.
func (h *hub) writers() []*account {
	return slices.DeleteFunc(slices.Clone(h.people), func(a *account) bool { return a.Bot || !a.canWrite() })
}

// permit changes a person's permission.
func (h *hub) permit(a *account, may state.Permission) {
	if a.canWrite() && !may.CanWrite() {
		a.lost = h.w.now
	}
	if !a.canWrite() && may.CanWrite() {
		a.won = h.w.now
	}
	a.may, a.held = may, a.held || may.CanWrite()
}

// find returns the comment with an ID or node ID, or nil.
func (h *hub) find(match func(*comment) bool) *comment {
	for n := 1; n <= h.last; n++ {
		i := h.issues[n]
		for _, c := range i.comments {
			if !c.gone && match(c) {
				return c
			}
		}
		if i.pull == nil {
			continue
		}
		for _, th := range i.pull.threads {
			for _, c := range th.comments {
				if !c.gone && match(c) {
					return c
				}
			}
		}
	}
	return nil
}

func (h *hub) byID(id int64) *comment {
	return h.find(func(c *comment) bool { return c.id == id })
}

func (h *hub) newComment(on *issue, by *account, words string) *comment {
	c := &comment{id: h.id(), on: on, author: by, created: h.clock()}
	c.node = fmt.Sprintf("C_%d", c.id)
	c.bodies = []body{{words, by, h.clock()}}
	return c
}

// view returns a comment as errand reads it.
func (c *comment) view() forge.Comment {
	v := forge.Comment{ID: c.id, Node: c.node, URL: c.url(), Author: c.by(), Body: c.body(), CreatedAt: c.created, ThumbsUp: views(c.thumbs)}
	if n := len(c.bodies); n > 1 {
		last := c.bodies[n-1]
		editor := personOf(last.by)
		v.EditedAt, v.Editor = last.at, &editor
	}
	return v
}

func (c *comment) by() state.Person { return personOf(c.author) }

// personOf returns an account as GitHub shows it; nil stands for errand.
func personOf(a *account) state.Person {
	if a == nil {
		return state.Person{ID: botID, Login: botLogin, Bot: true}
	}
	return a.Person
}

func (c *comment) url() string {
	return fmt.Sprintf("https://github.test/%s/%s/issues/%d#issuecomment-%d", owner, repoName, c.on.number, c.id)
}

// views returns reactions, newest first.
func views(list []thumb) []forge.Reaction {
	var out []forge.Reaction
	for _, t := range slices.Backward(list) {
		out = append(out, forge.Reaction{Node: t.node, By: t.by.Person, At: t.at})
	}
	return out
}

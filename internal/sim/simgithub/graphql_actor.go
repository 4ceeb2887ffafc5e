package simgithub

import (
	"slices"

	"github.com/graph-gophers/graphql-go"
)

// userR is an account.
type userR struct {
	x *request
	u *User
}

// userR returns an account, or nil for an empty login.
func (r *request) userR(login string) *userR {
	u, ok := r.s.users[login]
	if !ok {
		return nil
	}
	return &userR{r, u}
}

// ID is the node id.
func (u *userR) ID() graphql.ID { return gid(u.u.NodeID) }

// DatabaseId is the numeric id.
func (u *userR) DatabaseId() *int32 { return i32(u.u.ID) } //nolint:revive // named by the schema

// Login is without "[bot]" for bots, as in GitHub's GraphQL.
func (u *userR) Login() string {
	if u.u.Type == TypeBot {
		return trimBot(u.u.Login)
	}
	return u.u.Login
}

func trimBot(login string) string {
	const suffix = "[bot]"
	if n := len(login) - len(suffix); n > 0 && login[n:] == suffix {
		return login[:n]
	}
	return login
}

// Name is always null: names are not simulated.
func (u *userR) Name() *string { return nil }

// URL is the page.
func (u *userR) URL() word { return word(u.x.s.json.html("/%s", u.u.Login)) }

// actorR is an account as an Actor.
type actorR struct{ userR }

// actor returns an account as an actor, or nil for an empty login.
func (r *request) actor(login string) *actorR {
	u, ok := r.s.users[login]
	if !ok {
		return nil
	}
	return &actorR{userR{r, u}}
}

// ToUser narrows an actor.
func (a *actorR) ToUser() (*userR, bool) { return &a.userR, a.u.Type == TypeUser }

// ToBot narrows an actor.
func (a *actorR) ToBot() (*userR, bool) { return &a.userR, a.u.Type == TypeBot }

// ToOrganization narrows an actor.
func (a *actorR) ToOrganization() (*userR, bool) { return &a.userR, a.u.Type == TypeOrg }

// reactionR is a reaction.
type reactionR struct {
	x  *request
	re *Reaction
}

// ID is the node id.
func (r *reactionR) ID() graphql.ID { return gid(r.re.NodeID) }

// DatabaseId is the numeric id.
func (r *reactionR) DatabaseId() *int32 { return i32(r.re.ID) } //nolint:revive // named by the schema

// Content is GraphQL's word for the reaction.
func (r *reactionR) Content() string { return reactionWord(r.re.Content) }

// CreatedAt is the time of the reaction.
func (r *reactionR) CreatedAt() dateTime { return dateTime{r.re.CreatedAt} }

// User is null for bots, as on GitHub.
func (r *reactionR) User() *userR {
	u := r.x.userR(r.re.User)
	if u == nil || u.u.Type != TypeUser {
		return nil
	}
	return u
}

// reactionWord and reactionContent convert between the names of REST and of GraphQL.
func reactionWord(content string) string {
	return [...]string{"THUMBS_UP", "THUMBS_DOWN", "LAUGH", "HOORAY", "CONFUSED", "HEART", "ROCKET", "EYES"}[slices.Index(reactionContents(), content)]
}

func reactionContent(wordOf string) string {
	for _, c := range reactionContents() {
		if reactionWord(c) == wordOf {
			return c
		}
	}
	return ""
}

// reactionArgs are the arguments of a reactions connection.
type reactionArgs struct {
	First   *int32
	After   *string
	Last    *int32
	Before  *string
	Content *string
	OrderBy *struct{ Field, Direction string }
}

// reactionsR is a page of reactions.
type reactionsR struct {
	*connection[reactionR]
	mine bool
}

// ViewerHasReacted reports whether the caller is among them.
func (r *reactionsR) ViewerHasReacted() bool { return r.mine }

func (r *request) reactions(list []*Reaction, a reactionArgs) (*reactionsR, error) {
	var all []*reactionR
	mine := false
	for _, re := range list {
		if a.Content == nil || reactionWord(re.Content) == *a.Content {
			all = append(all, &reactionR{r, re})
			mine = mine || re.User == r.login()
		}
	}
	if a.OrderBy != nil && a.OrderBy.Direction == "DESC" {
		slices.Reverse(all)
	}
	c, err := connect(all, paging{a.First, a.After, a.Last, a.Before})
	if err != nil {
		return nil, err
	}
	return &reactionsR{c, mine}, nil
}

// editR is an edit of a text.
type editR struct {
	x *request
	e Edit
}

// EditedAt is the time of the edit.
func (e *editR) EditedAt() dateTime { return dateTime{e.e.At} }

// Editor is the author of the edit.
func (e *editR) Editor() *actorR { return e.x.actor(e.e.Editor) }

// DeletedAt is null: deleting history is not simulated.
func (e *editR) DeletedAt() *dateTime { return nil }

func (r *request) edits(list []Edit, p paging) (*connection[editR], error) {
	var all []*editR
	for _, e := range slices.Backward(list) {
		all = append(all, &editR{r, e})
	}
	return connect(all, p)
}

// edited has the fields that every editable text has.
type edited struct {
	x     *request
	edits []Edit
}

// LastEditedAt is null for a text that was never edited.
func (e edited) LastEditedAt() *dateTime {
	last, _ := lastEdit(e.edits)
	return when(last.At)
}

// Editor is the author of the last edit.
func (e edited) Editor() *actorR {
	last, ok := lastEdit(e.edits)
	if !ok {
		return nil
	}
	return e.x.actor(last.Editor)
}

// IncludesCreatedEdit reports whether the history contains the creation.
func (e edited) IncludesCreatedEdit() bool { return len(e.edits) > 0 }

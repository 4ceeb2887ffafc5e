package login

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/errand-bot/errand/state"
)

// grants is GitHub with a person's permissions, which every account of the person reads anew.
type grants map[int64]map[int64]state.Permission

type fakeAccount struct {
	grants  grants
	id      int64
	expires time.Time
}

func (a *fakeAccount) Check(context.Context) (state.Person, bool, error) {
	return state.Person{ID: a.id, Login: "somebody"}, true, nil
}

func (a *fakeAccount) Repositories(context.Context) (map[int64]state.Permission, bool, error) {
	return maps.Clone(a.grants[a.id]), true, nil
}

func (a *fakeAccount) Expires() time.Time { return a.expires }

// TestSessionsShareTheirAccess: the sessions of a person have one list of repositories in memory, but never an older one than GitHub's, nor
// another person's; it is forgotten after the sessions.
func TestSessionsShareTheirAccess(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	o, err := newOperators(Config{GitHub: &GitHub{}, Now: func() time.Time { return now }}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := newPeople(func() time.Time { return now }, o)
	g := grants{}
	for id := range int64(2) {
		g[id+1] = map[int64]state.Permission{}
		for repo := range int64(1000) {
			g[id+1][repo] = state.PermissionWrite
		}
	}
	var cookies []string
	for _, id := range []int64{1, 1, 2} {
		cookie, err := p.begin(t.Context(), &fakeAccount{grants: g, id: id, expires: now.Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		cookies = append(cookies, cookie)
	}
	ask := func(cookie string) *access {
		t.Helper()
		a, err := p.ask(t.Context(), p.find(cookie))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	first, second, other := ask(cookies[0]), ask(cookies[1]), ask(cookies[2])
	if first != second || first == other || other.person.ID != 2 {
		t.Errorf("got %p and %p for one person, %p for another", first, second, other)
	}
	g[1][7] = state.PermissionRead
	now = now.Add(freshFor)
	if a := ask(cookies[0]); a == first || a.repos[7] != state.PermissionRead || a != ask(cookies[1]) || first.repos[7] != state.PermissionWrite {
		t.Errorf("after a change: %p with %q, before %p", a, a.repos[7], first)
	}
	g[1][7] = state.PermissionWrite
	delete(g[1], 8)
	now = now.Add(freshFor)
	if a := ask(cookies[1]); len(a.repos) != 999 || a != ask(cookies[0]) {
		t.Errorf("after a withdrawal: %d repositories", len(a.repos))
	}
	p.end(cookies[0])
	p.end(cookies[1])
	if _, err := p.begin(t.Context(), &fakeAccount{grants: g, id: 2, expires: now.Add(time.Hour)}); err != nil || len(p.latest) != 1 {
		t.Errorf("%v; %d people are remembered, want the one who is there", err, len(p.latest))
	}
	if p.endAll(); len(p.latest) != 0 {
		t.Error("people are remembered after everybody was logged out")
	}
}

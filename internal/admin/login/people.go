package login

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/errand-bot/errand/state"
)

const (
	// freshFor is how long GitHub's answer about a person is used: who loses access there loses it here within this time.
	freshFor = time.Minute
	// failedFor is the pause after GitHub could not be asked about a person.
	failedFor = 5 * time.Second
	readTime  = 30 * time.Second // timeout for asking GitHub about a person

	maxPeople   = 10_000 // sessions of people
	maxOfPerson = 20     // sessions of one person; a further one ends the oldest
)

// Account is a person who has signed in with GitHub. Its token never leaves it.
type Account interface {
	// Check reads whose account it is, and returns false if GitHub no longer accepts its token.
	Check(ctx context.Context) (state.Person, bool, error)
	// Repositories returns the person's permission in each repository that the App and the person can read, by the repository's
	// ID, and whether the list is complete.
	Repositories(ctx context.Context) (map[int64]state.Permission, bool, error)
	Expires() time.Time
}

// errSignedOut means that GitHub no longer accepts the token of a session.
var errSignedOut = errors.New("GitHub no longer accepts this sign-in")

// access is what GitHub said last about a person. It never changes.
type access struct {
	person   state.Person
	operator bool
	doubt    string                     // why it is unknown whether a person is in a team of operators; empty if it is known
	repos    map[int64]state.Permission // not read for operators
	complete bool
}

// equals reports whether GitHub said the same.
func (a *access) equals(b *access) bool {
	return a.person == b.person && a.operator == b.operator && a.doubt == b.doubt && a.complete == b.complete && maps.Equal(a.repos, b.repos)
}

// personSession is one session of a person, in one browser.
type personSession struct {
	account Account
	id      int64 // of the person on GitHub
	begun   time.Time
	expires time.Time

	mu     sync.Mutex // held while GitHub is asked
	access *access
	read   time.Time
	teams  membership
	err    error // of the last question
	failed time.Time
}

// people keeps the sessions of people in memory, by the hash of their cookie. A restart ends them, and browsers sign in again.
type people struct {
	now       func() time.Time
	operators *operators

	mu       sync.Mutex
	sessions map[[sha256.Size]byte]*personSession
	// latest is the newest access of each person, by the ID of the account. The sessions of a person share it as long as GitHub says
	// the same, because it may list thousands of repositories.
	latest map[int64]*access
	ends   int // how often everybody was logged out
}

func newPeople(now func() time.Time, o *operators) *people {
	return &people{now: now, operators: o, sessions: map[[sha256.Size]byte]*personSession{}, latest: map[int64]*access{}}
}

// begin starts a session and returns its cookie. It asks GitHub, so that no session exists without an account. If everybody is logged
// out meanwhile, it returns errSignedOut.
func (p *people) begin(ctx context.Context, a Account) (cookie string, err error) {
	s := &personSession{account: a, begun: p.now(), expires: a.Expires()}
	p.mu.Lock()
	ends := p.ends
	p.mu.Unlock()
	now, err := p.ask(ctx, s)
	if err != nil {
		return "", err
	}
	s.id = now.person.ID
	cookie = rand.Text() + rand.Text()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ends != ends {
		return "", errSignedOut
	}
	p.makeRoom(s.id)
	p.sessions[sha256.Sum256([]byte(cookie))] = s
	return cookie, nil
}

// makeRoom forgets expired sessions, and the oldest ones of this person or of everybody if there are too many.
func (p *people) makeRoom(person int64) {
	maps.DeleteFunc(p.sessions, func(_ [sha256.Size]byte, s *personSession) bool { return !p.now().Before(s.expires) })
	oldest := func(of func(*personSession) bool, most int) {
		var first [sha256.Size]byte
		var begun time.Time
		n := 0
		for key, s := range p.sessions {
			if !of(s) {
				continue
			}
			if n++; n == 1 || s.begun.Before(begun) {
				first, begun = key, s.begun
			}
		}
		if n >= most {
			delete(p.sessions, first)
		}
	}
	oldest(func(s *personSession) bool { return s.id == person }, maxOfPerson)
	oldest(func(*personSession) bool { return true }, maxPeople)
	p.forget(person)
}

// forget forgets what people without a session may see, except one person.
func (p *people) forget(except int64) {
	present := map[int64]bool{except: true}
	for _, s := range p.sessions {
		present[s.id] = true
	}
	maps.DeleteFunc(p.latest, func(id int64, _ *access) bool { return !present[id] })
}

// shared returns the access of another session of the person if it is the same, so that it is in memory once.
func (p *people) shared(a *access) *access {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old := p.latest[a.person.ID]; old != nil && old.equals(a) {
		return old
	}
	p.latest[a.person.ID] = a
	return a
}

// find returns the session of a cookie, or nil if there is none.
func (p *people) find(cookie string) *personSession {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.sessions[sha256.Sum256([]byte(cookie))]
	if s == nil || !p.now().Before(s.expires) {
		return nil
	}
	return s
}

// end ends a session.
func (p *people) end(cookie string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sessions, sha256.Sum256([]byte(cookie)))
	p.forget(0)
}

// endAll ends all sessions, and sign-ins under way, and returns the number of sessions.
func (p *people) endAll() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.sessions)
	clear(p.sessions)
	clear(p.latest)
	p.ends++
	return n
}

// ask returns what the person may see, from GitHub unless it has said so lately. It fails while GitHub cannot be asked: nobody sees
// more than GitHub grants. The error is errSignedOut if the session has ended.
func (p *people) ask(ctx context.Context, s *personSession) (*access, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.access != nil && p.now().Sub(s.read) < freshFor:
		return s.access, nil
	case s.err != nil && (errors.Is(s.err, errSignedOut) || p.now().Sub(s.failed) < failedFor):
		return nil, s.err
	}
	begun := p.now()
	// Further requests wait for the answer, so it is also read to its end if this browser leaves.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readTime)
	defer cancel()
	a, err := p.readAccess(ctx, s)
	if err != nil {
		s.access, s.err, s.failed = nil, err, p.now()
		return nil, err
	}
	a = p.shared(a)
	s.access, s.err, s.read = a, nil, begun
	return a, nil
}

// readAccess asks GitHub.
func (p *people) readAccess(ctx context.Context, s *personSession) (*access, error) {
	who, valid, err := s.account.Check(ctx)
	switch {
	case err != nil:
		return nil, err
	case !valid, s.id != 0 && who.ID != s.id:
		return nil, errSignedOut
	}
	a := &access{person: who, complete: true}
	if a.operator, err = p.operators.includes(ctx, who); err == nil && !a.operator {
		a.operator, a.doubt = p.operators.includesByTeam(ctx, &s.teams, who)
	}
	if err != nil || a.operator {
		return a, err
	}
	a.repos, a.complete, err = s.account.Repositories(ctx)
	return a, err
}

// person returns the caller of a request with the cookie of a person's session. It returns false if there is no such session, and an
// error if GitHub could not be asked.
func (g *Guard) person(r *http.Request) (caller, bool, error) {
	c, err := r.Cookie(g.personCookie())
	if g.people == nil || err != nil {
		return caller{}, false, nil
	}
	s := g.people.find(c.Value)
	if s == nil {
		return caller{}, false, nil
	}
	a, err := g.people.ask(r.Context(), s)
	if errors.Is(err, errSignedOut) {
		g.people.end(c.Value)
		return caller{}, false, nil
	}
	if err != nil {
		return caller{}, false, err
	}
	who := caller{
		name: fmt.Sprintf("@%s (GitHub ID %d)", a.person.Login, a.person.ID), form: g.formToken(c.Value), operator: a.operator, access: a,
	}
	return who, true, nil
}

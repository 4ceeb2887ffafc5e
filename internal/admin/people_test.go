package admin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/admin/login"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
	"github.com/errand-bot/errand/state/store"
	"github.com/errand-bot/errand/state/vm"
)

// gitHub signs people in: the code of a person is their login. A code works once, with the verifier of its flow.
type gitHub struct {
	now func() time.Time

	mu        sync.Mutex
	people    map[string]state.Person
	repos     map[int64]map[int64]state.Permission // by the ID of the person
	revoked   map[int64]bool
	down      bool
	hang      bool              // a code is never exchanged
	verifiers map[string]string // by state
	used      map[string]bool
	lists     int    // how often repositories were listed
	codes     int    // how often a code was exchanged
	checking  func() // called when an account is checked; may be nil
}

func (g *gitHub) do(f func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

func (g *gitHub) authorizeURL(_ context.Context, st, verifier string) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.verifiers[st] = verifier
	return "https://git.example/login/oauth/authorize?state=" + url.QueryEscape(st), nil
}

// signIn accepts a code LOGIN-STATE.
func (g *gitHub) signIn(ctx context.Context, code, verifier string) (login.Account, error) {
	g.mu.Lock()
	g.codes++
	hang := g.hang
	g.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	name, st, _ := strings.Cut(code, "-")
	p, ok := g.people[name]
	if !ok || g.used[code] || g.verifiers[st] != verifier {
		return nil, errors.New("bad_verification_code")
	}
	g.used[code] = true
	return &account{g: g, id: p.ID, expires: g.now().Add(8 * time.Hour)}, nil
}

type account struct {
	g       *gitHub
	id      int64
	expires time.Time
}

func (a *account) Expires() time.Time { return a.expires }

func (a *account) Check(context.Context) (state.Person, bool, error) {
	a.g.mu.Lock()
	checking := a.g.checking
	a.g.mu.Unlock()
	if checking != nil {
		checking()
	}
	a.g.mu.Lock()
	defer a.g.mu.Unlock()
	if a.g.down {
		return state.Person{}, false, errors.New("502 from GitHub with the secret ghu_1")
	}
	for _, p := range a.g.people {
		if p.ID == a.id {
			return p, !a.g.revoked[a.id], nil
		}
	}
	return state.Person{}, false, nil
}

func (a *account) Repositories(context.Context) (map[int64]state.Permission, bool, error) {
	a.g.mu.Lock()
	defer a.g.mu.Unlock()
	a.g.lists++
	return maps.Clone(a.g.repos[a.id]), a.id != 9, nil
}

// peopled is a world where people sign in: olga (an operator), wes (write), rita (read) and otto (nothing) in acme/shop, repository
// 7. Nobody but olga sees acme/vault, repository 8.
type peopled struct {
	*world
	hub    *gitHub
	public string
	pages  *admin.Pages
	acted  []string
	base   admin.Config // for another errand with the same store
	broken atomic.Bool  // nothing can be stored about sessions
}

// brittle is a store that may be unable to write.
type brittle struct {
	login.Facts
	broken *atomic.Bool
}

func (b *brittle) SetFact(ctx context.Context, name string, value []byte) error {
	if b.broken.Load() {
		return errBroken
	}
	return b.Facts.SetFact(ctx, name, value)
}

func newPeopled(t *testing.T, change func(*admin.Config)) *peopled {
	t.Helper()
	p := &peopled{}
	srv := httptest.NewUnstartedServer(nil)
	p.public = "http://" + srv.Listener.Addr().String()
	p.world = newWorld(t, func(c *admin.Config) {
		s := c.Store.(*store.Store)
		p.hub = &gitHub{
			now: c.Now, verifiers: map[string]string{}, used: map[string]bool{}, revoked: map[int64]bool{},
			people: map[string]state.Person{
				"olga": {ID: 1, Login: "Olga"}, "wes": {ID: 2, Login: "wes"}, "rita": {ID: 3, Login: "rita"}, "otto": {ID: 4, Login: "otto"},
			},
			repos: map[int64]map[int64]state.Permission{2: {7: state.PermissionWrite}, 3: {7: state.PermissionRead}},
		}
		c.GitHub = &login.GitHub{PublicURL: p.public, Operators: []string{"olga"}, AuthorizeURL: p.hub.authorizeURL, SignIn: p.hub.signIn}
		c.Audit, c.VMs, c.VMCaps, c.Pauses = s.Audit, s.VMs, vm.Caps{VMs: 17171717}, pausesIn(s, new([]string))
		c.Spent = func(context.Context) (day, month state.Money, err error) {
			return state.Money{MicroUSD: 123_450_000}, state.Money{}, nil
		}
		c.Adopt = func(context.Context, string, int) (string, error) { return "@ada", nil }
		c.Preview = func(context.Context, string, int) (admin.Preview, error) { return admin.Preview{}, nil }
		c.Begin = func(_ context.Context, repo string, issue int, text string, a store.Action) (store.Action, error) {
			p.acted = append(p.acted, fmt.Sprintf("%s#%d run by %s", repo, issue, a.By))
			a.Result = "started with the text " + text
			return a, s.Audit.Add(context.Background(), a)
		}
		c.Doctor = func(context.Context) any { return map[string]string{"vault": "checked"} }
		c.Destroy = func(context.Context, state.TaskKey, bool, store.Action) (admin.Destroyed, error) {
			return admin.Destroyed{}, nil
		}
		c.Purge = func(context.Context, state.TaskKey, store.Action) (store.Purged, error) { return store.Purged{}, nil }
		c.Backup = func(context.Context) (admin.BackupCopy, error) { return nil, admin.Refusal("another backup is made") }
		c.Unstarted = func() []admin.Unstarted {
			return []admin.Unstarted{{Repo: "acme/vault", Issue: 5, Title: "vault of old"}}
		}
		c.Act = func(_ context.Context, task *state.Task, by state.Person, o state.Order, a store.Action) (store.Action, error) {
			p.acted = append(p.acted, fmt.Sprintf("%s %s by %s, %s", task.Key, o.Verb, a.By, by.Login))
			a.Result = "done"
			return a, nil
		}
		c.Facts = &brittle{Facts: c.Facts, broken: &p.broken}
		if change != nil {
			change(c)
		}
		p.base = *c
	})
	p.base.Patience = time.Minute
	pages, err := admin.New(p.base)
	if err != nil {
		t.Fatal(err)
	}
	p.pages, srv.Config.Handler = pages, pages
	srv.Start()
	t.Cleanup(srv.Close)
	p.url = p.public
	return p
}

// vault starts a task in acme/vault, with a VM and an action of an operator. Shop has a task with a run.
func (p *peopled) vault() {
	p.t.Helper()
	run := p.launch(1)
	p.write(run.ID).say(said("rounding"))
	key := state.TaskKey{Repo: 8, Issue: 1}
	_, err := p.store.Apply(p.t.Context(), event.Event{
		Task: key, By: writer, Permission: state.PermissionWrite, Via: "assigned", At: p.now(),
		Repo:    &state.Repo{ID: 8, Owner: "acme", Name: "vault", DefaultBranch: "main", URL: "https://git.example/acme/vault", Private: true},
		Payload: event.Triggered{Issue: &state.Issue{Node: "I_2", Title: "The vault is open", Body: "It is.", Author: writer}},
	}, store.Ack{})
	if err != nil {
		p.t.Fatal(err)
	}
	for name, task := range map[string]state.TaskKey{"vm-shop": {Repo: 7, Issue: 1}, "vm-vault": key, "vm-bake-vault": {}} {
		if _, err := p.store.VMs.Intend(p.t.Context(), vm.Intent{Name: name, Task: task, Repo: task.Repo, Owner: name, Gen: 1, Provider: "hetzner"}, vm.Caps{}); err != nil {
			p.t.Fatal(err)
		}
	}
	pause := store.Action{ID: "4", At: p.now(), By: "token", From: "203.0.113.9", Subject: "acme/vault", Command: "pause"}
	if _, err := p.store.Pauses.Set(p.t.Context(), state.Pause{Repo: 8, Name: "acme/vault", By: "token"}, pause); err != nil {
		p.t.Fatal(err)
	}
	for id, a := range map[string]store.Action{
		"1": {Task: state.TaskKey{Repo: 7, Issue: 1}, Subject: "acme/shop#1", Command: "stop"}, "2": {Task: key, Subject: "acme/vault#1", Command: "stop"},
		"3": {Subject: "acme/vault#5", Command: "adopt"},
	} {
		a.ID, a.At, a.By, a.From, a.Result = id, p.now(), "token", "203.0.113.9", "stopped"
		if err := p.store.Audit.Add(p.t.Context(), a); err != nil {
			p.t.Fatal(err)
		}
	}
}

// browser is a client with cookies that follows no redirect.
type browser struct {
	t    *testing.T
	base string
	jar  map[string]string
}

func (p *peopled) browser() *browser { return &browser{t: p.t, base: p.url, jar: map[string]string{}} }

// get requests a path or an address.
func (b *browser) get(path string) *http.Response { return b.send(http.MethodGet, path, nil, nil) }

func (b *browser) send(method, path string, form url.Values, headers map[string]string) *http.Response {
	b.t.Helper()
	h := map[string]string{"Accept": "text/html"}
	maps.Copy(h, headers)
	var cookies []string
	for name, value := range b.jar {
		cookies = append(cookies, name+"="+value)
	}
	h["Cookie"] = strings.Join(cookies, "; ")
	if !strings.HasPrefix(path, "http") {
		path = b.base + path
	}
	resp := do(b.t, method, path, form.Encode(), h)
	b.t.Cleanup(func() { _ = resp.Body.Close() })
	for _, c := range resp.Cookies() {
		if b.jar[c.Name] = c.Value; c.MaxAge < 0 {
			delete(b.jar, c.Name)
		}
	}
	return resp
}

// page returns status and body of a path.
func (b *browser) page(path string) (int, string) {
	b.t.Helper()
	resp := b.get(path)
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// start starts a sign-in and returns the state that GitHub sends back.
func (b *browser) start(next string) string {
	b.t.Helper()
	resp := b.get("/login/github?" + url.Values{"next": {next}}.Encode())
	to, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || resp.StatusCode != http.StatusSeeOther || to.Host != "git.example" {
		b.t.Fatalf("start: status %d, to %s", resp.StatusCode, resp.Header.Get("Location"))
	}
	return to.Query().Get("state")
}

// callback returns as GitHub does.
func (b *browser) callback(q url.Values) *http.Response {
	b.t.Helper()
	return b.get("/login/github/callback?" + q.Encode())
}

// signIn signs a person in and returns the page that follows.
func (b *browser) signIn(person, next string) string {
	b.t.Helper()
	st := b.start(next)
	resp := b.callback(url.Values{"code": {person + "-" + st}, "state": {st}})
	if resp.StatusCode != http.StatusSeeOther || b.jar["errand_session"] == "" {
		text, _ := io.ReadAll(resp.Body)
		b.t.Fatalf("sign-in of %s: status %d: %s", person, resp.StatusCode, text)
	}
	return resp.Header.Get("Location")
}

// as returns the browser of a person who has signed in.
func (p *peopled) as(person string) *browser {
	p.t.Helper()
	b := p.browser()
	b.signIn(person, "/status")
	return b
}

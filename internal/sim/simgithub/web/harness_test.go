package web_test

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/sim/simgithub/web"
)

// appKey is created once, because that takes longer than most tests.
var appKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

const repo = "octo/calc"

// world is a simulated GitHub with pages, one repository and an App that receives webhooks.
type world struct {
	t     *testing.T
	sim   *simgithub.Sim
	url   string
	owner simgithub.Person
	inbox *inbox
}

// newSim returns a simulator with pages.
func newSim(t *testing.T) *simgithub.Sim {
	t.Helper()
	sim, err := simgithub.New(simgithub.Config{Dir: t.TempDir(), Key: must(appKey()), HookTimeout: 2 * time.Second, Pages: web.Handler})
	check(t, err)
	t.Cleanup(func() { check(t, sim.Close()) })
	return sim
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, sim: newSim(t), inbox: newInbox(t)}
	w.owner = w.sim.As("octo")
	var err error
	w.url, err = w.sim.Start("127.0.0.1:0")
	check(t, err)
	w.sim.SetWebhook(w.inbox.server.URL, "s3cret")
	_, err = w.sim.SeedRepo(simgithub.RepoSeed{
		Owner: "octo", Name: "calc",
		Files: map[string]string{"README.md": "# calc\n", "calc.go": "package calc\n\nfunc Add(a, b int) int {\n\treturn a - b\n}\n"},
		Collaborators: map[string]simgithub.Role{
			"alice": simgithub.RoleWrite, "tina": simgithub.RoleTriage, "rob": simgithub.RoleRead,
		},
	})
	check(t, err)
	return w
}

// issue opens an issue as the owner.
func (w *world) issue(title string) *simgithub.Issue {
	w.t.Helper()
	i, err := w.owner.OpenIssue(repo, simgithub.NewIssue{Title: title, Body: "It is broken."})
	check(w.t, err)
	return i
}

// pull creates a branch with one commit and opens a pull request for it, as a person.
func (w *world) pull(as, branch string, files map[string]string, body string) *simgithub.Issue {
	w.t.Helper()
	p := w.sim.As(as)
	_, err := p.PushCommit(repo, simgithub.Commit{Branch: branch, Message: "Change " + branch, Files: files})
	check(w.t, err)
	i, err := p.OpenPull(repo, simgithub.NewPull{Title: "Pull " + branch, Head: branch, Body: body})
	check(w.t, err)
	return i
}

// settled waits for all webhooks and returns "event.action" of those since the last call.
func (w *world) settled() []string {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	check(w.t, w.sim.WaitHooks(ctx))
	return w.inbox.take()
}

// inbox is the App's webhook endpoint.
type inbox struct {
	server *httptest.Server
	mu     sync.Mutex
	got    []hook
	status int
}

type hook struct {
	header http.Header
	body   []byte
	valid  bool
}

func (h hook) name() string {
	var p struct{ Action string }
	_ = json.Unmarshal(h.body, &p)
	return strings.TrimSuffix(h.header.Get("X-GitHub-Event")+"."+p.Action, ".")
}

func newInbox(t *testing.T) *inbox {
	in := &inbox{status: http.StatusOK}
	in.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mac := hmac.New(sha256.New, []byte("s3cret"))
		mac.Write(body)
		valid := r.Header.Get("X-Hub-Signature-256") == "sha256="+hex.EncodeToString(mac.Sum(nil))
		in.mu.Lock()
		defer in.mu.Unlock()
		in.got = append(in.got, hook{r.Header.Clone(), body, valid})
		w.WriteHeader(in.status)
	}))
	t.Cleanup(in.server.Close)
	return in
}

func (in *inbox) answer(status int) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.status = status
}

func (in *inbox) take() []string {
	in.mu.Lock()
	defer in.mu.Unlock()
	var names []string
	for _, h := range in.got {
		names = append(names, h.name())
	}
	in.got = nil
	return names
}

// last returns the newest webhook of a name.
func (in *inbox) last(name string) (hook, bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for n := len(in.got) - 1; n >= 0; n-- {
		if in.got[n].name() == name {
			return in.got[n], true
		}
	}
	return hook{}, false
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Package simgithubtest provides a simulated GitHub for the simulator's own tests: one repository, a few people, and an
// App whose webhooks are received.
//
// Start here: [New].
package simgithubtest

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// Repo is the repository of a [World].
const Repo = "octo/calc"

// World is a simulator with one repository, one installation and an App that receives webhooks.
type World struct {
	T     *testing.T
	Sim   *simgithub.Sim
	URL   string
	Owner simgithub.Person
	Inbox *Inbox
}

// NewSim returns a simulator that ends with the test. It sets the key, the folder and, if cfg has none, a
// short timeout of webhooks.
func NewSim(t *testing.T, cfg simgithub.Config) *simgithub.Sim {
	t.Helper()
	cfg.Dir, cfg.Key, cfg.HookTimeout = t.TempDir(), rsatest.Key(), cmp.Or(cfg.HookTimeout, 2*time.Second)
	sim, err := simgithub.New(cfg)
	Check(t, err)
	t.Cleanup(func() { Check(t, sim.Close()) })
	return sim
}

// New starts a World.
func New(t *testing.T, cfg simgithub.Config) *World {
	t.Helper()
	sim := NewSim(t, cfg)
	w := &World{T: t, Sim: sim, Owner: sim.As("octo"), Inbox: newInbox(t)}
	var err error
	w.URL, err = sim.Start("127.0.0.1:0")
	Check(t, err)
	sim.SetWebhook(w.Inbox.URL(), secret)
	_, err = sim.SeedRepo(simgithub.RepoSeed{
		Owner: "octo", Name: "calc",
		Files: map[string]string{"README.md": "# calc\n", "calc.go": "package calc\n\nfunc Add(a, b int) int {\n\treturn a - b\n}\n"},
		Collaborators: map[string]simgithub.Role{
			"alice": simgithub.RoleWrite, "tina": simgithub.RoleTriage, "rob": simgithub.RoleRead,
		},
	})
	Check(t, err)
	return w
}

// Issue opens an issue as the owner.
func (w *World) Issue(title string) *simgithub.Issue {
	w.T.Helper()
	i, err := w.Owner.OpenIssue(Repo, simgithub.NewIssue{Title: title, Body: "It is broken."})
	Check(w.T, err)
	return i
}

// Pull creates a branch with one commit and opens a pull request for it, as a person.
func (w *World) Pull(as, branch string, files map[string]string, body string) *simgithub.Issue {
	w.T.Helper()
	p := w.Sim.As(as)
	_, err := p.PushCommit(Repo, simgithub.Commit{Branch: branch, Message: "Change " + branch, Files: files})
	Check(w.T, err)
	i, err := p.OpenPull(Repo, simgithub.NewPull{Title: "Pull " + branch, Head: branch, Body: body})
	Check(w.T, err)
	return i
}

// Settled waits for all webhooks and returns "event.action" of those since the last call.
func (w *World) Settled() []string {
	w.T.Helper()
	ctx, cancel := context.WithTimeout(w.T.Context(), time.Minute)
	defer cancel()
	Check(w.T, w.Sim.WaitHooks(ctx))
	return w.Inbox.Take()
}

// Check ends the test if there is an error.
func Check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

package forgetest

import (
	"net/http"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/rsatest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// World is a simulated GitHub with one repository, octo/app, and a Forge for its App.
type World struct {
	*simgithub.Sim
	Forge *forge.Forge
	Repo  forge.Repo
}

// FullName is the name of the repository of a World.
const FullName = "octo/app"

// NewWorld makes octo/app with the collaborators wendy (write), rita (read) and tom (triage).
func NewWorld(t *testing.T, change ...func(*forge.Config)) *World {
	t.Helper()
	sim, err := simgithub.New(simgithub.Config{Dir: t.TempDir(), Key: rsatest.Key()})
	if err != nil {
		t.Fatal(err)
	}
	base, err := sim.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := sim.Close(); err != nil {
			t.Error(err)
		}
	})
	repo, err := sim.SeedRepo(simgithub.RepoSeed{
		Owner: "octo", Name: "app",
		Files: map[string]string{
			"README.md": "# app\n", "old.txt": "old\n", "dir/a.txt": "a\n", "dir/b.txt": "b\n", ".github/PULL_REQUEST_TEMPLATE.md": "## Why\n",
		},
		Collaborators: map[string]simgithub.Role{
			"wendy": simgithub.RoleWrite, "rita": simgithub.RoleRead, "tom": simgithub.RoleTriage, "mia": simgithub.RoleMaintain,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	installation, err := sim.Install(FullName)
	if err != nil {
		t.Fatal(err)
	}
	app := sim.App()
	change = append([]func(*forge.Config){func(c *forge.Config) {
		c.AppID, c.PrivateKey, c.Transport, c.Timeout = app.ID, app.PEM, transport, time.Minute
	}}, change...)
	return &World{
		Sim: sim, Forge: New(t, base, change...),
		Repo: forge.Repo{Installation: installation, Owner: "octo", Name: "app", ID: repo.ID},
	}
}

// OpenIssue opens an issue as rita.
func (w *World) OpenIssue(t *testing.T, title string) *simgithub.Issue {
	t.Helper()
	return Must(w.As("rita").OpenIssue(FullName, simgithub.NewIssue{Title: title, Body: "It breaks."}))(t)
}

// Inject makes the simulator fail as described.
func (w *World) Inject(t *testing.T, fault simgithub.Fault) {
	t.Helper()
	if err := w.Fault(fault); err != nil {
		t.Fatal(err)
	}
}

// Neighbors adds to octo/app another repository of its owner and one of another owner, whose installation has a token
// of its own.
func (w *World) Neighbors(t *testing.T) (beside, elsewhere forge.Repo) {
	t.Helper()
	add := func(owner, name string) forge.Repo {
		r := Must(w.SeedRepo(simgithub.RepoSeed{Owner: owner, Name: name, Files: map[string]string{"README.md": "# " + name + "\n"},
			Collaborators: map[string]simgithub.Role{"wendy": simgithub.RoleRead, "rita": simgithub.RoleWrite}}))(t)
		return forge.Repo{Installation: Must(w.Install(owner + "/" + name))(t), Owner: owner, Name: name, ID: r.ID}
	}
	return add("octo", "beside"), add("initech", "app")
}

// Another returns a new Forge for the same App.
func (w *World) Another(t *testing.T) *forge.Forge {
	t.Helper()
	app := w.App()
	return New(t, w.BaseURL(), func(c *forge.Config) { c.AppID, c.PrivateKey = app.ID, app.PEM })
}

// Must returns the value of a call that may not fail here.
func Must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

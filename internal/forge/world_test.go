package forge_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// world is a whole GitHub with one repository, octo/app, and a forge that is its App.
type world struct {
	*simgithub.Sim
	f    *forge.Forge
	repo forge.Repo
}

const fullName = "octo/app"

// newWorld makes octo/app with the collaborators wendy (write), rita (read) and tom (triage).
func newWorld(t *testing.T, change ...func(*forge.Config)) *world {
	t.Helper()
	sim, err := simgithub.New(simgithub.Config{Dir: t.TempDir()})
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
		Files: map[string]string{"README.md": "# app\n", "old.txt": "old\n", "dir/a.txt": "a\n", "dir/b.txt": "b\n", ".github/PULL_REQUEST_TEMPLATE.md": "## Why\n"},
		Collaborators: map[string]simgithub.Role{
			"wendy": simgithub.RoleWrite, "rita": simgithub.RoleRead, "tom": simgithub.RoleTriage, "mia": simgithub.RoleMaintain,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	installation, err := sim.Install(fullName)
	if err != nil {
		t.Fatal(err)
	}
	app := sim.App()
	change = append([]func(*forge.Config){func(c *forge.Config) {
		c.AppID, c.PrivateKey, c.Transport, c.Timeout = app.ID, app.PEM, transport, time.Minute
	}}, change...)
	return &world{
		Sim: sim, f: newForge(t, base, change...),
		repo: forge.Repo{Installation: installation, Owner: "octo", Name: "app", ID: repo.ID},
	}
}

// issue opens an issue as rita.
func (w *world) issue(t *testing.T, title string) *simgithub.Issue {
	t.Helper()
	return must(w.As("rita").OpenIssue(fullName, simgithub.NewIssue{Title: title, Body: "It breaks."}))(t)
}

func (w *world) fault(t *testing.T, fault simgithub.Fault) {
	t.Helper()
	if err := w.Fault(fault); err != nil {
		t.Fatal(err)
	}
}

// must returns the value of a call that may not fail here.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

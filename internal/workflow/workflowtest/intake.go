package workflowtest

import (
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
)

// Elsewhere creates another repository in addition to acme/slug, with a number of issues.
func (w *World) Elsewhere(owner string, issues int) error {
	_, err := w.SeedRepo(
		simgithub.RepoSeed{
			Owner:         owner,
			Name:          "other",
			Files:         map[string]string{"README.md": "# other\n"},
			Collaborators: map[string]simgithub.Role{"zoe": simgithub.RoleAdmin},
		},
	)
	err = FirstError(err, Err(w.Install(owner+"/other")))
	for range issues {
		err = FirstError(err, Err(w.As("zoe").OpenIssue(owner+"/other", simgithub.NewIssue{Title: "Elsewhere"})))
	}
	return err
}

// Queries counts the requests to GraphQL.
func (w *World) Queries() (n int) {
	list, _ := w.Calls()
	for _, c := range list {
		if strings.HasSuffix(c.Route, "/graphql") {
			n += c.Count
		}
	}
	return n
}

// WriteSettings commits a `.errand.yml` to the default branch.
func (w *World) WriteSettings(text string) {
	w.T.Helper()
	w.Push("ada", "main", map[string]string{".errand.yml": text})
}

// WriteOrgSettings commits a `.errand.yml` to the organization's `.github` repository.
func (w *World) WriteOrgSettings(text string) {
	w.T.Helper()
	_, err := w.SeedRepo(simgithub.RepoSeed{Owner: "acme", Name: ".github", Files: map[string]string{".errand.yml": text}})
	Check(w.T, err)
	_, err = w.Install("acme/.github")
	Check(w.T, err)
}

// Vetted returns GitHub's answer about a person's permission with the given age.
func (w *World) Vetted(login string, p state.Permission, ago time.Duration, hash string) *state.Vetted {
	return &state.Vetted{By: w.Person(login), Permission: p, At: time.Now().Add(-ago), Hash: hash, Base: w.Head("main")}
}

// PermissionReads returns the number of permission requests to GitHub while f ran.
func (w *World) PermissionReads(f func()) int {
	w.T.Helper()
	return w.CallsTo("/collaborators/{login}/permission", f)
}

// CallsTo returns the number of calls of routes that contain part while f ran.
func (w *World) CallsTo(part string, f func()) int {
	w.T.Helper()
	read := func() (n int) {
		routes, _ := w.Calls()
		for _, c := range routes {
			if strings.Contains(c.Route, part) {
				n += c.Count
			}
		}
		return n
	}
	before := read()
	f()
	return read() - before
}

package forge_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/forgetest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
)

// teamWorld is a World in which the App is installed on the organization acme, with the teams ops and, below it, night.
func teamWorld(t *testing.T) *forgetest.World {
	t.Helper()
	w := forgetest.NewWorld(t)
	org := w.AddOrg("acme")
	forgetest.Must(w.SeedRepo(simgithub.RepoSeed{Owner: "acme", Name: "shop", Files: map[string]string{"README.md": "# shop\n"}}))(t)
	err := errors.Join(w.AddTeam(org.Login, "ops", ""), w.AddTeam("acme", "night", "ops"), w.AddTeam("acme", "sales", ""))
	for login, where := range map[string][2]string{"ada": {"ops", "active"}, "grace_acme": {"night", "active"}, "bo": {"ops", "pending"}, "eve": {"sales", "active"}} {
		w.AddUser(login)
		err = errors.Join(err, w.SetTeamMember("acme", where[0], login, where[1]))
	}
	if err != nil {
		t.Fatal(err)
	}
	grantMembers(w, "read")
	return w
}

func grantMembers(w *forgetest.World, level string) {
	grantMembersSilently(w, level)
	w.Forge.InvalidateTokens() // as after the webhook
}

// grantMembersSilently changes the permission, and the webhook is lost.
func grantMembersSilently(w *forgetest.World, level string) {
	all := w.App().Permissions
	all["members"] = level
	w.GrantPermissions("acme", all)
}

func TestIsTeamMember(t *testing.T) {
	t.Parallel()
	w := teamWorld(t)
	org, _ := w.User("acme")
	for name, c := range map[string]struct {
		login, org, team string
		want             bool
	}{
		"a member":                    {"ada", "acme", "ops", true},
		"other cases":                 {"ADA", "Acme", "Ops", true},
		"a member of a child team":    {"grace_acme", "acme", "ops", true},
		"a member of the parent only": {"ada", "acme", "night", false},
		"an invitation":               {"bo", "acme", "ops", false},
		"a member of another team":    {"eve", "acme", "ops", false},
		"somebody with write access":  {"wendy", "acme", "ops", false},
		"an unknown account":          {"nobody", "acme", "ops", false},
		"an unknown team":             {"ada", "acme", "opps", false},
		"a login that is a path":      {"../../sales/memberships/eve", "acme", "ops", false},
		"no login":                    {"", "acme", "ops", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, id, err := w.Forge.IsTeamMember(t.Context(), c.org, c.team, state.Person{ID: 1, Login: c.login})
			if got != c.want || id != org.ID || err != nil {
				t.Errorf("got %t of organization %d (%v), want %t", got, id, err, c.want)
			}
		})
	}
	for _, in := range forgetest.Must(w.Forge.Installations(t.Context()))(t) {
		for team, want := range map[string]bool{"ops": true, "opps": false} {
			got, err := w.Forge.TeamExists(t.Context(), in.ID, "acme", team)
			if there := in.Account.Login == "acme"; there != (err == nil) || got != (there && want) {
				t.Errorf("the team %s exists, for the installation on %s: %t (%v)", team, in.Account.Login, got, err)
			}
		}
	}
}

// TestUnclearTeamMembership: while GitHub does not say whether somebody is a member, the answer is an error whose reason names neither the
// organization nor the team. A permission that is granted later is noticed at once.
func TestUnclearTeamMembership(t *testing.T) {
	t.Parallel()
	for reason, c := range map[string]struct {
		harm, undo func(w *forgetest.World)
		org        string
	}{
		"The App lacks the permission `members: read` in the team's organization.": {
			func(w *forgetest.World) { grantMembers(w, "none") }, func(w *forgetest.World) { grantMembersSilently(w, "read") }, "acme"},
		"The App is not installed on the team's organization.":            {func(*forgetest.World) {}, nil, "initech"},
		"The App is not installed on the team's organization. ":           {func(*forgetest.World) {}, nil, "octo"}, // a person
		"The App's installation on the team's organization is suspended.": {func(w *forgetest.World) { w.Suspend("acme", true) }, func(w *forgetest.World) { w.Suspend("acme", false) }, "acme"},
		"GitHub failed with an internal error (502).": {func(w *forgetest.World) {
			if err := w.Fault(simgithub.Fault{Path: "/memberships/", Status: http.StatusBadGateway, Body: "{}"}); err != nil {
				panic(err)
			}
		}, func(w *forgetest.World) { w.ClearFaults() }, "acme"},
		"GitHub does not allow it: Resource not accessible by integration.": {func(w *forgetest.World) {
			forgetest.Must(w.Forge.Installations(t.Context()))(t) // so that the permission is known
			grantMembersSilently(w, "none")
		}, func(w *forgetest.World) { grantMembers(w, "read") }, "acme"},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			w := teamWorld(t)
			c.harm(w)
			who := state.Person{ID: 1, Login: "ada"}
			in, _, err := w.Forge.IsTeamMember(t.Context(), c.org, "ops", who)
			got, hint := forge.Explain(err)
			if in || err == nil || got != strings.TrimSpace(reason) || strings.Contains(got, c.org) {
				t.Errorf("got %t, %v: %q %q", in, err, got, hint)
			}
			if c.undo == nil {
				return
			}
			c.undo(w)
			if in, _, err := w.Forge.IsTeamMember(t.Context(), c.org, "ops", who); !in {
				t.Errorf("afterwards: %v", err)
			}
		})
	}
}

package simgithub_test

import (
	"testing"

	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// TestTeamMembership: the App reads who is a member of a team, with the permission for members in the team's own organization only. Names
// have no case, and the members of child teams count.
func TestTeamMembership(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	for _, org := range []string{"acme", "rival"} {
		w.Sim.AddOrg(org)
		_, err := w.Sim.SeedRepo(simgithub.RepoSeed{Owner: org, Name: "shop", Files: map[string]string{"README.md": "# shop\n"}})
		check(t, err)
	}
	for _, login := range []string{"ada", "Grace", "bo", "former", "eve"} {
		w.Sim.AddUser(login)
	}
	check(t, w.Sim.AddTeam("acme", "ops", ""))
	check(t, w.Sim.AddTeam("acme", "night", "ops"))
	check(t, w.Sim.AddTeam("acme", "sales", ""))
	for login, where := range map[string][2]string{"ada": {"ops", "active"}, "Grace": {"night", "active"}, "bo": {"ops", "pending"}, "eve": {"sales", "active"}, "former": {"ops", "active"}} {
		check(t, w.Sim.SetTeamMember("acme", where[0], login, where[1]))
	}
	check(t, w.Sim.SetTeamMember("acme", "ops", "former", ""))
	client := func(org string) *github.Client {
		in, _, err := w.app.Apps.FindOrganizationInstallation(ctx, org)
		check(t, err)
		tok, _, err := w.app.Apps.CreateInstallationToken(ctx, in.GetID(), nil)
		check(t, err)
		return w.client(nil).WithAuthToken(tok.GetToken())
	}
	if _, _, err := client("acme").Teams.GetTeamMembershipBySlug(ctx, "acme", "ops", "ada"); status(err) != 403 {
		t.Errorf("without the permission: %v", err)
	}
	more := permissions()
	more["members"] = "read"
	w.Sim.GrantPermissions("acme", more)
	w.Sim.GrantPermissions("rival", more)
	acme := client("ACME")
	for login, want := range map[string]string{"ada": "active", "ADA": "active", "grace": "active", "bo": "pending", "eve": "", "former": "", "nobody": ""} {
		m, _, err := acme.Teams.GetTeamMembershipBySlug(ctx, "Acme", "Ops", login)
		if m.GetState() != want || (want == "") != (status(err) == 404) {
			t.Errorf("%s: got %q (%v), want %q", login, m.GetState(), err, want)
		}
	}
	team, _, err := acme.Teams.GetTeamBySlug(ctx, "acme", "night")
	check(t, err)
	if team.GetParent().GetSlug() != "ops" || team.GetMembersCount() != 1 || team.GetOrganization().GetLogin() != "acme" {
		t.Errorf("got team %v", team)
	}
	if _, _, err := acme.Teams.GetTeamBySlug(ctx, "acme", "opps"); status(err) != 404 {
		t.Errorf("a team that does not exist: %v", err)
	}
	if _, _, err := client("rival").Teams.GetTeamMembershipBySlug(ctx, "acme", "ops", "ada"); status(err) != 403 {
		t.Errorf("with another installation's token: %v", err)
	}
	if _, _, err := w.human("eve").Teams.GetTeamBySlug(ctx, "acme", "ops"); err != nil {
		t.Errorf("as a member of the organization: %v", err)
	}
	if _, _, err := w.human("bo").Teams.GetTeamBySlug(ctx, "acme", "ops"); status(err) != 404 {
		t.Errorf("as somebody who was only invited: %v", err)
	}
	if _, _, err := w.app.Teams.GetTeamBySlug(ctx, "acme", "ops"); status(err) != 401 {
		t.Errorf("as the App itself: %v", err)
	}
	for name, err := range map[string]error{
		"a person's team": w.Sim.AddTeam("octo", "ops", ""), "a team twice": w.Sim.AddTeam("acme", "OPS", ""), "no such parent": w.Sim.AddTeam("acme", "x", "none"),
		"a member of no team": w.Sim.SetTeamMember("acme", "none", "ada", "active"), "an unknown state": w.Sim.SetTeamMember("acme", "ops", "ada", "admin"),
		"an organization as member": w.Sim.SetTeamMember("acme", "ops", "rival", "active"),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

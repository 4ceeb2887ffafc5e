package main

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/errand-bot/errand/internal/doctor"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// teamFaults are about teams of operators. Each is a failure: with it, members of the teams are not operators.
func teamFaults() []planted {
	return []planted{
		{"no permission for teams", true, func(c *clinic) { c.team("globex/ops") }, []problem{
			{"github.operators", doctor.Failed, "The App does not request the permission members: read"},
			{"github.operators", doctor.Failed, "The installation on globex does not grant members: read"},
		}},
		{"a permission for teams that was not accepted", false, func(c *clinic) { c.team("globex/ops"); c.requestMembers() },
			[]problem{{"github.operators", doctor.Failed, "The installation on globex does not grant members: read"}}},
		{"a team elsewhere", false, func(c *clinic) { c.requestMembers(); c.team("globex/ops, initech/ops") },
			[]problem{{"github.operators", doctor.Failed, "The App is not installed on initech"}}},
		{"a misspelled team", true, func(c *clinic) { c.requestMembers(); c.team("globex/opps") },
			[]problem{{"github.operators", doctor.Failed, "There is no team globex/opps, or the App does not see it."}}},
	}
}

// teamInstructions are what the advice about teams says.
func teamInstructions() []instruction {
	return []instruction{
		{`Look for its name in the list at \S+/orgs/globex/teams`, func(c *clinic, _ []string) { c.config["admin"] = strings.Replace(c.config["admin"], "opps", "ops", 1) }},
		{`Open \S+/settings/apps/errand/permissions, choose Read-only for Members`, func(c *clinic, _ []string) { c.requestMembers() }},
		{`Open \S+/settings/installations/\d+, accept it, and save`, func(c *clinic, _ []string) {
			c.webhook(http.StatusOK, func() { c.github.GrantPermissions("globex", c.github.App().Permissions) })
		}},
		{`Open \S+/github-apps/errand/installations/new and install it there`, func(c *clinic, _ []string) { c.organization("initech") }},
	}
}

// team lists teams as operators. The App is installed on globex, which has the team ops.
func (c *clinic) team(list string) {
	c.t.Helper()
	c.organization("globex")
	c.write("client", "client-secret-for-tests", 0o600)
	c.config["github"] = strings.Replace(c.config["github"], "{", fmt.Sprintf("{client_secret: 'file:%s', ", c.path("client")), 1)
	c.config["admin"] = fmt.Sprintf("{token: 'file:%s', sign_in: true, operators: [%s]}", c.path("admin"), list)
	if c.proxied.Load() != nil {
		c.restart()
	}
}

// organization creates an organization with a repository, the App, and the team ops.
func (c *clinic) organization(name string) {
	c.t.Helper()
	c.github.AddOrg(name)
	if err := c.github.AddTeam(name, "ops", ""); err != nil {
		c.t.Fatal(err)
	}
	c.webhook(http.StatusOK, func() {
		if _, err := c.github.SeedRepo(simgithub.RepoSeed{Owner: name, Name: "shop", Files: map[string]string{"README.md": "x"}, Collaborators: map[string]simgithub.Role{"worker": simgithub.RoleTriage}}); err != nil {
			c.t.Fatal(err)
		}
	})
}

// requestMembers has the App request members: read.
func (c *clinic) requestMembers() {
	all := c.github.App().Permissions
	all["members"] = "read"
	c.github.ChangeApp(all, c.original.Events)
}

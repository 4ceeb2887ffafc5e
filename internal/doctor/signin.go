package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/oauth"
	"github.com/errand-bot/errand/internal/words"
)

// SignIn is the part of the configuration that concerns sign-ins with GitHub.
type SignIn struct {
	On        bool // admin.sign_in
	Secret    bool // github.client_secret is set
	Operators int  // number of accounts in admin.operators
	// Teams are those in admin.operators.
	Teams []config.Team
	// OrganizationPages is the address below which GitHub has the pages of organizations.
	OrganizationPages string
}

// operators returns how many there are, in words.
func (s SignIn) operators() string {
	text := words.Many(s.Operators, "operator")
	if len(s.Teams) > 0 {
		text += " and " + words.Many(len(s.Teams), "team") + " of operators"
	}
	return text
}

// teams checks whether errand can ask GitHub who is a member of the teams in admin.operators. Installations are all of the App.
func (c *githubCheck) teams(ctx context.Context, installations []forge.Installation) {
	if !c.SignIn.On || len(c.SignIn.Teams) == 0 {
		return
	}
	own := forge.Installation{Permissions: c.app.Permissions}
	if lacks := own.MissingPermissions(forge.TeamPermission()); slices.ContainsFunc(lacks, isForTeams) {
		c.add(Finding{
			Check: "github.operators", Status: Failed, Found: "The App does not request the permission members: read, which the teams in admin.operators need.", Meaning: noTeam,
			Fix: fmt.Sprintf("Open %s/permissions, choose Read-only for Members under “Organization permissions”, and save. Then an owner of the organization accepts it.", c.app.SettingsURL),
		})
	}
	for _, t := range c.SignIn.Teams {
		i := slices.IndexFunc(installations, func(in forge.Installation) bool { return strings.EqualFold(in.Account.Login, t.Organization) })
		if i < 0 {
			c.add(Finding{
				Check: "github.operators", Status: Failed, Found: fmt.Sprintf("The App is not installed on %s, so errand cannot read who is in %s.", t.Organization, t), Meaning: noTeam,
				Fix: fmt.Sprintf("Open %s%s/installations/new and install it there, or remove the team from admin.operators and restart errand.", c.AppURL, c.app.Slug),
			})
			continue
		}
		c.team(ctx, installations[i], t)
	}
}

const noTeam = "The members of the team are no operators; the listed accounts and the admin token work."

func isForTeams(m forge.MissingPermission) bool { return m.AppPermission == forge.TeamPermission() }

// team checks one team. What else is wrong with its installation has been named before.
func (c *githubCheck) team(ctx context.Context, in forge.Installation, t config.Team) {
	f := Finding{Check: "github.operators", Status: Failed, Meaning: noTeam}
	switch {
	case in.Suspended:
		return
	case slices.ContainsFunc(in.MissingPermissions(forge.TeamPermission()), isForTeams):
		f.Found = fmt.Sprintf("The installation on %s does not grant members: read, which errand needs to read who is in %s.", in.Account.Login, t)
		f.Fix = "Open " + in.URL + ", accept it, and save."
	case t.OrganizationID != 0 && t.OrganizationID != in.Account.ID:
		f.Found = fmt.Sprintf("%s belongs to another organization than the one in admin.operators: its ID is %d, not %d.", t, in.Account.ID, t.OrganizationID)
		f.Fix = "Correct admin.operators, and restart errand."
	default:
		there, err := c.api.TeamExists(ctx, in.ID, t.Organization, t.Slug)
		if err != nil {
			c.unreadable(f.Check, err)
			return
		}
		if there {
			f = Finding{Check: f.Check, Status: OK, Found: fmt.Sprintf("errand can read who is in %s.", t)}
			break
		}
		f.Found = fmt.Sprintf("There is no team %s, or the App does not see it.", t)
		f.Fix = fmt.Sprintf("Look for its name in the list at %s%s/teams: it is the last part of the address of the team's page. Correct admin.operators, and restart errand.",
			c.SignIn.OrganizationPages, t.Organization)
	}
	c.add(f)
}

// signIn checks whether people can sign in with GitHub. GitHub tells no App its callback URLs, and accepts a client secret only together
// with somebody's code, so both are tried by the first person.
func (c *githubCheck) signIn() {
	f := Finding{Check: "github.sign_in", Status: OK}
	switch {
	case c.app.ClientID == "" && c.SignIn.On:
		f.Status, f.Found = Failed, "GitHub does not name the App's client ID."
		f.Meaning = "Nobody can sign in with GitHub; the admin token works."
		f.Fix = "Update the GitHub Enterprise Server, or remove admin.sign_in."
	case c.SignIn.On:
		f.Found = fmt.Sprintf("People can sign in with GitHub, %s; the secret is set. GitHub does not say whether %s is a callback URL of the App: compare it at %s.",
			c.SignIn.operators(), oauth.CallbackURL(c.PublicURL), c.app.SettingsURL)
	case c.SignIn.Secret:
		f.Status, f.Found = Note, "github.client_secret is set, but people cannot sign in with GitHub."
		f.Fix = "Set admin.sign_in: true, or ignore this: the pages then need the admin token."
	default:
		f.Found = "People cannot sign in with GitHub (admin.sign_in); the pages need the admin token, or a connection to admin.listen."
	}
	c.add(f)
}

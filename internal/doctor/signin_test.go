package doctor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/doctor"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
)

// TestSignIn: the doctor says whether people can sign in, and what is missing.
func TestSignIn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cfg    doctor.SignIn
		client string
		status doctor.Status
		found  string
	}{
		"on":                   {doctor.SignIn{On: true, Secret: true, Operators: 2}, "Iv1", doctor.OK, "2 operators"},
		"with teams":           {doctor.SignIn{On: true, Secret: true, Teams: make([]config.Team, 2)}, "Iv1", doctor.OK, "0 operators and 2 teams of operators; the secret is set"},
		"its callback":         {doctor.SignIn{On: true, Secret: true}, "Iv1", doctor.OK, "https://errand.example.org/login/github/callback"},
		"on without an ID":     {doctor.SignIn{On: true, Secret: true}, "", doctor.Failed, "client ID"},
		"off with a secret":    {doctor.SignIn{Secret: true}, "Iv1", doctor.Note, "github.client_secret is set"},
		"off without a secret": {doctor.SignIn{}, "Iv1", doctor.OK, "admin token"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &hub{app: forge.App{ID: 7, ClientID: c.client, Permissions: granted(), Events: forge.Events()}}
			cfg := doctor.GitHubConfig{AppID: 7, PublicURL: "https://errand.example.org", Version: "devel", Now: time.Now, SignIn: c.cfg}
			got := findings(t, doctor.GitHubCheck(h, cfg), "github.sign_in")
			if len(got) != 1 || got[0].Status != c.status || !strings.Contains(got[0].Found, c.found) || (got[0].Fix == "") != (c.status == doctor.OK) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// TestTeams: the doctor says for each team of operators whether errand can ask GitHub who is in it.
func TestTeams(t *testing.T) {
	t.Parallel()
	with := func(members string) map[string]string {
		all := granted()
		all["members"] = members
		return all
	}
	acme := forge.Installation{ID: 1, Account: state.Person{ID: 70, Login: "Acme"}, Permissions: with("read"), URL: "https://github.com/x/1"}
	change := func(f func(in *forge.Installation)) []forge.Installation {
		in := acme
		f(&in)
		return []forge.Installation{{ID: 2, Account: state.Person{ID: 71, Login: "other"}, Permissions: granted()}, in}
	}
	ops := config.Team{Organization: "acme", Slug: "ops"}
	for name, c := range map[string]struct {
		app   map[string]string
		list  []forge.Installation
		teams []config.Team
		want  []string // status and a part of the finding, and of the advice
	}{
		"no team":            {granted(), change(func(*forge.Installation) {}), nil, nil},
		"a team":             {with("read"), change(func(*forge.Installation) {}), []config.Team{ops}, []string{"ok: errand can read who is in acme/ops.: "}},
		"more than required": {with("write"), change(func(in *forge.Installation) { in.Permissions = with("write") }), []config.Team{ops}, []string{"ok: errand can read who is in acme/ops.: "}},
		"its organization by ID": {with("read"), change(func(*forge.Installation) {}), []config.Team{{Organization: "acme", OrganizationID: 70, Slug: "ops"}},
			[]string{"ok: errand can read who is in acme/ops.: "}},
		"another organization": {with("read"), change(func(*forge.Installation) {}), []config.Team{{Organization: "acme", OrganizationID: 7, Slug: "ops"}},
			[]string{"failed: its ID is 70, not 7.: Correct admin.operators"}},
		"not requested": {granted(), change(func(in *forge.Installation) { in.Permissions = granted() }), []config.Team{ops}, []string{
			"failed: The App does not request the permission members: read: choose Read-only for Members under “Organization permissions”",
			"failed: The installation on Acme does not grant members: read: Open https://github.com/x/1, accept it",
		}},
		"suspended":     {with("read"), change(func(in *forge.Installation) { in.Suspended = true }), []config.Team{ops}, nil}, // github.installations says so
		"not installed": {with("read"), change(func(*forge.Installation) {}), []config.Team{{Organization: "acne", Slug: "ops"}}, []string{"failed: The App is not installed on acne: https://github.com/apps/errand/installations/new"}},
		"misspelled":    {with("read"), change(func(*forge.Installation) {}), []config.Team{ops, {Organization: "acme", Slug: "opps"}}, []string{"failed: There is no team acme/opps: https://github.com/orgs/acme/teams", "ok: acme/ops: "}},
		"unanswered":    {with("read"), change(func(*forge.Installation) {}), []config.Team{{Organization: "acme", Slug: "broken"}}, []string{"skipped: could not be checked: "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &hub{app: forge.App{ID: 7, ClientID: "Iv1", Slug: "errand", Permissions: c.app, Events: forge.Events()}, list: c.list}
			got := findings(t, doctor.GitHubCheck(h, doctor.GitHubConfig{
				AppID: 7, AppURL: "https://github.com/apps/", Version: "devel", Now: time.Now,
				SignIn: doctor.SignIn{On: true, Secret: true, Operators: 1, Teams: c.teams, OrganizationPages: "https://github.com/orgs/"},
			}), "github.operators")
			if len(got) != len(c.want) {
				t.Fatalf("got %+v, want %q", got, c.want)
			}
			for i, f := range got {
				parts := strings.Split(c.want[i], ": ")
				status, found, fix := parts[0], strings.Join(parts[1:len(parts)-1], ": "), parts[len(parts)-1]
				if string(f.Status) != status || !strings.Contains(f.Found, found) || !strings.Contains(f.Fix, fix) || status == "failed" && f.Meaning == "" {
					t.Errorf("got %+v, want %q", f, c.want[i])
				}
			}
		})
	}
}

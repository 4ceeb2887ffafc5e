package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/config"
)

// TestSignInNeeds: people can sign in only with everything that this needs, and a mistake is named with its line.
func TestSignInNeeds(t *testing.T) {
	t.Parallel()
	const public = "public_url: https://errand.example.org\n"
	github := strings.Replace(minimalConfig, "webhook_secret: env:HOOK", "webhook_secret: env:HOOK\n  client_secret: env:MODEL", 1)
	on := func(more string) string { return github + "  sign_in: true\n" + more }
	for name, c := range map[string]struct{ text, want string }{
		"everything":              {on("  operators: [ada, Grace-Hopper:583231, emu_corp]\n" + public), ""},
		"an address for tests":    {on("public_url: http://127.0.0.1:8080\n"), ""},
		"a secret alone":          {github, ""},
		"no secret":               {minimalConfig + "  sign_in: true\n" + public, "github.client_secret: admin.sign_in needs it"},
		"no address":              {on(""), "public_url: admin.sign_in needs the address"},
		"an address without TLS":  {on("public_url: http://errand.example.org\n"), "public_url: admin.sign_in needs the address at which people open the pages, with https"},
		"pages somewhere else":    {on("  listen: 127.0.0.1:9\n" + public), "admin.listen: people sign in at public_url"},
		"no token":                {strings.Replace(on("  listen: 127.0.0.1:9\n"+public), "  token: env:TOKEN\n", "", 1), "admin.token: admin.sign_in needs a token"},
		"operators alone":         {github + "  operators: [ada]\n", "admin.operators: they cannot sign in without admin.sign_in: true"},
		"an operator with markup": {on("  operators: ['<b>']\n" + public), `admin.operators[0]: "<b>": write a login on GitHub, LOGIN:ID, or a team as ORG/TEAM`},
		"an empty operator":       {on("  operators: ['']\n" + public), "admin.operators[0]"},
		"an ID of 0":              {on("  operators: ['ada:0']\n" + public), "admin.operators[0]"},
		"an ID without a login":   {on("  operators: [':7']\n" + public), "admin.operators[0]"},
		"teams":                   {on("  operators: [ada, acme/core, '@Acme-Inc:583231/night_shift', acme]\n" + public), ""},
		"teams alone":             {github + "  operators: [acme/core]\n", "admin.operators: they cannot sign in without admin.sign_in: true"},
		"a team without quotes":   {on("  operators: [@acme/core]\n" + public), "line 10: '@' is a reserved character: put the value in quotes"},
		"a team without a name":   {on("  operators: [acme/]\n" + public), `admin.operators[0]: "acme/": write a team as ORG/TEAM`},
		"a team of nobody":        {on("  operators: [ada, /core]\n" + public), `admin.operators[1]: "/core": write a team`},
		"a team by its full name": {on("  operators: ['@acme/Core Team']\n" + public), `admin.operators[0]: "@acme/Core Team": write a team as ORG/TEAM`},
		"a team by its address":   {on("  operators: ['https://github.com/orgs/acme/teams/core']\n" + public), "write a team as ORG/TEAM"},
		"a path as a team":        {on("  operators: [acme/../../user]\n" + public), "write a team as ORG/TEAM"},
		"an organization":         {on("  operators: ['@acme']\n" + public), `"@acme": write a team as ORG/TEAM`},
		"a team with an ID of 0":  {on("  operators: ['acme:0/core']\n" + public), "write a team as ORG/TEAM"},
		"a team twice":            {on("  operators: [acme/core, ada, '@ACME:7/Core']\n" + public), `admin.operators[2]: "@ACME:7/Core": this team is listed twice`},
		"a crowd of teams":        {on("  operators: [o/1, o/2, o/3, o/4, o/5, o/6, o/7, o/8, o/9, o/10, o/11]\n" + public), "admin.operators: write at most 10 teams"},
		"an operator twice":       {on("  operators: [ada, bo, Ada]\n" + public), `admin.operators[2]: "Ada": this login is listed twice`},
		"two IDs for a login":     {on("  operators: ['ada:7', 'ADA:8']\n" + public), "admin.operators[1]"},
		"a list of huge logins":   {on("  operators: [" + strings.Repeat("a", 5000) + "]\n" + public), "admin.operators[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := config.Parse([]byte(c.text), env(t))
			switch {
			case c.want == "" && err != nil:
				t.Errorf("got %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 2000):
				t.Errorf("got %v, want %q", err, c.want)
			}
			if c.want == "" && !strings.Contains(strings.Join(got.Secrets(), " "), "model-key-1") {
				t.Error("the client secret is not redacted")
			}
		})
	}
}

// TestTeamsOfOperators: an entry with a slash is a team, and all others are accounts.
func TestTeamsOfOperators(t *testing.T) {
	t.Parallel()
	a := config.Admin{Operators: []string{"ada", "acme/core", "Bo:7", "@Acme-Inc:583231/night_shift", "acme"}}
	want := []config.Team{{Organization: "acme", Slug: "core"}, {Organization: "Acme-Inc", OrganizationID: 583231, Slug: "night_shift"}}
	if diff := cmp.Diff(want, a.Teams()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"ada", "Bo:7", "acme"}, a.Accounts()); diff != "" {
		t.Error(diff)
	}
}

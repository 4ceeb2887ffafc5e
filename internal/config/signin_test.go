package config_test

import (
	"strings"
	"testing"

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
		"an operator with markup": {on("  operators: ['<b>']\n" + public), `admin.operators[0]: "<b>": write a login on GitHub, or LOGIN:ID`},
		"an empty operator":       {on("  operators: ['']\n" + public), "admin.operators[0]"},
		"an ID of 0":              {on("  operators: ['ada:0']\n" + public), "admin.operators[0]"},
		"an ID without a login":   {on("  operators: [':7']\n" + public), "admin.operators[0]"},
		"a team":                  {on("  operators: [acme/core]\n" + public), "admin.operators[0]"},
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

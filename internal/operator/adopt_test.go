package operator

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/cli/clitest"
)

// TestAdopt: the command asks the running errand for each issue, continues after a refusal, and says how to reach errand.
func TestAdopt(t *testing.T) {
	t.Parallel()
	errand := clitest.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodPost || r.Header.Get("Authorization") != "Bearer admin-token-for-tests":
			http.Error(w, "wrong token", http.StatusUnauthorized)
		case r.URL.Path == "/tasks/acme/shop/4/adopt":
			_, _ = w.Write([]byte("acme/shop#4, labeled by @ada\n"))
		case r.URL.Path == "/tasks/acme/shop/5/adopt":
			http.Error(w, "acme/shop#5 is closed", http.StatusConflict)
		case r.URL.Path == "/tasks/acme/shop/6/adopt":
			http.Error(w, "try again", http.StatusBadGateway)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(errand.Close)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, c := range map[string]struct {
		listen, admin, token string
		args                 []string
		code                 int
		out, err             string
	}{
		"one":             {args: []string{"acme/shop#4"}, out: "started: acme/shop#4, labeled by @ada\n"},
		"a refusal":       {args: []string{"acme/shop#5", "acme/shop#6", "acme/shop#4"}, code: cli.ExitFailed, out: "started: acme/shop#4", err: "acme/shop#5: not started: acme/shop#5 is closed\nacme/shop#6: not started: try again\nerrand: 2 of 3 were not started"},
		"JSON":            {args: []string{"acme/shop#4", "--json"}, out: `{"subject":"acme/shop#4","refused":false,"result":"acme/shop#4, labeled by @ada"}`},
		"own address":     {admin: "admin", listen: "127.0.0.1:1", args: []string{"acme/shop#4"}, out: "started: "},
		"another version": {args: []string{"acme/shop#9"}, code: cli.ExitFailed, err: "answered 404"},
		"wrong token":     {token: "another-token-for-tests", args: []string{"acme/shop#4"}, code: cli.ExitFailed, err: "the token is wrong (401)\nadmin.token has to be"},
		"not running":     {listen: strings.TrimPrefix(gone.URL, "http://"), args: []string{"acme/shop#4"}, code: cli.ExitFailed, err: "Start it with `errand serve`"},
		"no issue":        {code: cli.ExitUsage, err: "adopt takes issues, as OWNER/REPO#N"},
		"no number":       {args: []string{"acme/shop#4", "acme/shop"}, code: cli.ExitUsage, err: `but got "acme/shop"`},
		"a path":          {args: []string{"acme/..#4"}, code: cli.ExitFailed, err: "answered"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := clitest.Secrets(t)
			if c.token != "" {
				env["ERRAND_ADMIN_TOKEN"] = c.token
			}
			address := strings.TrimPrefix(errand.URL, "http://")
			if c.listen == "" {
				c.listen = address
			}
			admin := "{token: env:ERRAND_ADMIN_TOKEN}"
			if c.admin != "" {
				admin = fmt.Sprintf("{token: env:ERRAND_ADMIN_TOKEN, listen: %q}", address)
			}
			file := filepath.Join(t.TempDir(), "config.yml")
			text := fmt.Sprintf("listen: %s\ngithub: {app_id: 1, private_key: env:ERRAND_PRIVATE_KEY, webhook_secret: env:ERRAND_WEBHOOK_SECRET}\n"+
				"admin: %s\nmodels: {anthropic: {url: \"http://127.0.0.1:1\", key: env:ANTHROPIC_API_KEY}}\nlocal: {kind: plain}\n", c.listen, admin)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			code, out, errs := call(t, env, append([]string{"adopt", "-c", file}, c.args...)...)
			if code != c.code || !strings.Contains(out, c.out) || !strings.Contains(errs, c.err) {
				t.Errorf("got code %d, output %q, errors %q; want %d, %q, %q", code, out, errs, c.code, c.out, c.err)
			}
		})
	}
}

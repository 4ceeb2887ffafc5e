package operator

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/cli/clitest"
)

// TestDestroy: the command names each task to errand, passes --force on, goes on after a refusal, and does nothing without a
// confirmation.
func TestDestroy(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args     []string
		code     int
		sent     string
		out, err string
	}{
		"a task":             {args: []string{"acme/shop#4", "--yes"}, sent: "4", out: "acme/shop#4: the VM is being deleted\n"},
		"by force":           {args: []string{"acme/shop#4", "--yes", "--force"}, sent: "4 by force", out: "acme/shop#4: the VM is being deleted\n"},
		"JSON":               {args: []string{"acme/shop#4", "--yes", "--json"}, sent: "4", out: `"vm": "errand-x-g1"`},
		"one is in use":      {args: []string{"acme/shop#5", "acme/shop#4", "--yes"}, code: cli.ExitFailed, sent: "5, 4", out: "acme/shop#4: the VM", err: "acme/shop#5: refused: the task needs its VM now\nerrand: 1 of 2 were refused"},
		"no task":            {args: []string{"acme/shop#6", "--yes"}, code: cli.ExitFailed, sent: "6", err: "refused: errand has no task"},
		"another version":    {args: []string{"acme/shop#7", "--yes"}, code: cli.ExitFailed, sent: "7", err: "answered 404"},
		"not confirmed":      {args: []string{"acme/shop#4"}, code: cli.ExitUsage, err: "repeat the command with --yes"},
		"nothing":            {args: []string{"--yes"}, code: cli.ExitUsage, err: "destroy takes a task"},
		"a repository alone": {args: []string{"acme/shop", "--yes"}, code: cli.ExitUsage, err: "OWNER/REPO#N"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent []string
			errand := clitest.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				number := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/tasks/acme/shop/"), "/actions/destroy")
				order := number
				if r.PostFormValue("force") != "" {
					order += " by force"
				}
				sent = append(sent, order)
				switch number {
				case "4":
					_, _ = fmt.Fprint(w, `{"task": "acme/shop#4", "vm": "errand-x-g1", "result": "the VM is being deleted"}`)
				case "5":
					http.Error(w, "the task needs its VM now", http.StatusConflict)
				case "6":
					http.Error(w, "errand has no task for this issue.", http.StatusNotFound)
				default:
					http.NotFound(w, r)
				}
			}))
			t.Cleanup(errand.Close)
			file := filepath.Join(t.TempDir(), "config.yml")
			text := fmt.Sprintf("listen: %s\ngithub: {app_id: 1, private_key: env:ERRAND_PRIVATE_KEY, webhook_secret: env:ERRAND_WEBHOOK_SECRET}\n"+
				"admin: {token: env:ERRAND_ADMIN_TOKEN}\nmodels: {anthropic: {url: \"http://127.0.0.1:1\", key: env:ANTHROPIC_API_KEY}}\nlocal: {kind: plain}\n", strings.TrimPrefix(errand.URL, "http://"))
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			code, out, errs := call(t, clitest.Secrets(t), append(append([]string{"destroy"}, c.args...), "-c", file)...)
			if got := strings.Join(sent, ", "); code != c.code || got != c.sent || !strings.Contains(out, c.out) || !strings.Contains(errs, c.err) {
				t.Errorf("got code %d, requests %q, output %q, errors %q; want %d, %q, %q, %q", code, got, out, errs, c.code, c.sent, c.out, c.err)
			}
		})
	}
}

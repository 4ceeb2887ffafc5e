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

// TestPurge: the command asks errand to purge each task, reports the deleted items and the places that may still have texts, and does nothing without
// a confirmation.
func TestPurge(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args     []string
		code     int
		sent     string
		out, err []string
	}{
		"a task": {args: []string{"acme/shop#4", "--yes"}, sent: "4", out: []string{
			"acme/shop#4: purged\n", "6 files, 1 failed webhook, 2 unposted comments", "rewritten: 300 KiB, before 2048 KiB",
			"2 backups may have the texts, the newest of 2026-11-20 03:15 UTC, until they are deleted: those in /srv/backups by errand after about 2026-12-04, the others by you", "/srv/before-restore-x", "GitHub",
		}},
		"again, without backups": {args: []string{"acme/shop#5", "--yes"}, sent: "5", out: []string{"acme/shop#5: purged again\n", "errand has made none since the task began"}},
		"JSON":                   {args: []string{"acme/shop#4", "--yes", "--json"}, sent: "4", out: []string{`"backups": 2`}},
		"two, one is open": {
			args: []string{"acme/shop#6", "acme/shop#5", "--yes"}, code: cli.ExitFailed, sent: "6 5", out: []string{"acme/shop#5: purged again"},
			err: []string{"acme/shop#6: not purged: the task has not ended", "1 of 2 were not purged"},
		},
		"no task":       {args: []string{"acme/shop#7", "--yes"}, code: cli.ExitFailed, sent: "7", err: []string{"not purged: errand has no task"}},
		"a full disk":   {args: []string{"acme/shop#8", "acme/shop#4", "--yes"}, code: cli.ExitFailed, sent: "8", err: []string{"not complete: no space left; free"}},
		"an older one":  {args: []string{"acme/shop#9", "--yes"}, code: cli.ExitFailed, sent: "9", err: []string{"answered 404"}},
		"not confirmed": {args: []string{"acme/shop#4"}, code: cli.ExitUsage, err: []string{"repeat the command with --yes"}},
		"nothing":       {args: []string{"--yes"}, code: cli.ExitUsage, err: []string{"purge takes a task"}},
		"a path":        {args: []string{"acme/../x#4", "--yes"}, code: cli.ExitUsage, err: []string{"OWNER/REPO#N"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var sent []string
			errand := clitest.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				number := strings.TrimSuffix(strings.TrimPrefix(r.URL.Path, "/tasks/acme/shop/"), "/actions/purge")
				sent = append(sent, number)
				if r.Method != http.MethodPost || len(r.PostFormValue("id")) < 16 || r.Header.Get("Authorization") != "Bearer admin-token-for-tests" {
					http.Error(w, "bad request", http.StatusBadRequest)
					return
				}
				switch number {
				case "4":
					_, _ = fmt.Fprint(w, `{"task": "acme/shop#4", "at": "2026-11-21T12:00:00Z", "files": 6, "webhooks": 1, "unposted": 2, "store_before": 2097152, "store_after": 307200,
						"backups": 2, "last_backup": "2026-11-20T03:15:00Z", "copies": ["/srv/before-restore-x"]}`)
				case "5":
					_, _ = fmt.Fprint(w, `{"task": "acme/shop#5", "again": true}`)
				case "6":
					http.Error(w, "the task has not ended", http.StatusConflict)
				case "7":
					http.Error(w, "errand has no task for this issue.", http.StatusNotFound)
				case "8":
					http.Error(w, "The purge is not complete: no space left; free space", http.StatusInternalServerError)
				default:
					http.NotFound(w, r)
				}
			}))
			t.Cleanup(errand.Close)
			file := filepath.Join(t.TempDir(), "config.yml")
			text := fmt.Sprintf("listen: %s\ngithub: {app_id: 1, private_key: env:ERRAND_PRIVATE_KEY, webhook_secret: env:ERRAND_WEBHOOK_SECRET}\n"+
				"admin: {token: env:ERRAND_ADMIN_TOKEN}\nmodels: {anthropic: {url: \"http://127.0.0.1:1\", key: env:ANTHROPIC_API_KEY}}\nlocal: {kind: plain}\nbackup: {folder: /srv/backups, every: 24h, keep: 14}\n", strings.TrimPrefix(errand.URL, "http://"))
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			code, out, errs := call(t, clitest.Secrets(t), append(append([]string{"purge"}, c.args...), "-c", file)...)
			if got := strings.Join(sent, " "); code != c.code || got != c.sent {
				t.Errorf("got code %d, requests for %q; want %d, %q", code, got, c.code, c.sent)
			}
			for _, want := range c.out {
				if !strings.Contains(out, want) {
					t.Errorf("got output %q, want %q in it", out, want)
				}
			}
			for _, want := range c.err {
				if !strings.Contains(errs, want) {
					t.Errorf("got errors %q, want %q in them", errs, want)
				}
			}
		})
	}
}

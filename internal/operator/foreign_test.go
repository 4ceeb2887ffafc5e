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

// TestAnswersOfAnotherProgram: no command takes what another program answers for errand's answer, whether the status is 200 or that of a refusal, and
// none prints that anything was done, or that errand refused it.
func TestAnswersOfAnotherProgram(t *testing.T) {
	t.Parallel()
	for _, args := range []string{
		"status", "status --json", "tasks", "tasks --all --json", "task acme/shop#4", "task acme/shop#4 --json", "audit", "audit --json", "run acme/shop#4 --json",
		"run acme/shop#4 --yes --text 0123456789abcdef", "adopt acme/shop#4", "adopt acme/shop#4 --json", "purge acme/shop#4 --yes", "purge acme/shop#4 --yes --json",
		"destroy acme/shop#4 --yes", "destroy acme/shop#4 --yes --json", "stop acme/shop#4", "cancel acme/shop#4 --json", "pause", "resume acme/shop", "drain --timeout 1m",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			var body string
			var status, answered int
			errand := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				answered++
				w.WriteHeader(status)
				_, _ = fmt.Fprint(w, body)
			}))
			t.Cleanup(errand.Close)
			file := filepath.Join(t.TempDir(), "config.yml")
			text := fmt.Sprintf("listen: %s\ngithub: {app_id: 1, private_key: env:ERRAND_PRIVATE_KEY, webhook_secret: env:ERRAND_WEBHOOK_SECRET}\n"+
				"admin: {token: env:ERRAND_ADMIN_TOKEN}\nmodels: {anthropic: {url: \"http://127.0.0.1:1\", key: env:ANTHROPIC_API_KEY}}\nlocal: {kind: plain}\n", strings.TrimPrefix(errand.URL, "http://"))
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			bodies := []string{
				"", " \n", "null", "<!DOCTYPE html><title>200</title>", "ok", "{}", "[]", `"purged"`, "7", "done",
				`{"task": null, "tasks": null, "version": null, "at": null, "open": null, "actions": null, "result": null, "issue": null}`, `{"ok": true}`, `{"version": 1, "at": "now"}`,
			}
			orders := strings.Contains("run adopt purge destroy stop cancel pause resume drain", strings.Fields(args)[0])
			for _, status = range []int{http.StatusOK, http.StatusConflict, http.StatusBadGateway} {
				if status != http.StatusOK && !orders {
					break
				}
				for _, body = range bodies {
					answered = 0
					code, out, errs := call(t, clitest.Secrets(t), append(strings.Fields(args), "-c", file)...)
					if code != cli.ExitFailed || answered != 1 || strings.Contains(out, "shop") || strings.Contains(errs, "shop#4: acme") || !strings.Contains(errs, "may be another program") ||
						strings.Contains(errs, "refused: ") {
						t.Errorf("%d %q: exit code %d, %d requests\n%s\n%s", status, body, code, answered, out, errs)
					}
				}
			}
		})
	}
}

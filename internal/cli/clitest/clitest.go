// Package clitest helps to test errand's commands: configurations with secrets for tests, and an errand that answers them.
//
// Start with [Config].
package clitest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/rsatest"
)

// Secrets returns the environment variables that config.example.yml and Config name.
func Secrets(t *testing.T) map[string]string {
	t.Helper()
	return map[string]string{
		"ERRAND_PRIVATE_KEY":    rsatest.PEM(),
		"ERRAND_WEBHOOK_SECRET": "hook-secret-for-tests", "ERRAND_ADMIN_TOKEN": "admin-token-for-tests", "ANTHROPIC_API_KEY": "model-key-for-tests",
	}
}

// Lookup returns a function that looks up these environment variables.
func Lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

// Config writes a configuration with this address, and more in its section admin.
func Config(t *testing.T, listen, more string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yml")
	text := "listen: " + listen + "\ngithub: {app_id: 1, private_key: env:ERRAND_PRIVATE_KEY, webhook_secret: env:ERRAND_WEBHOOK_SECRET}\n" +
		"admin: {token: env:ERRAND_ADMIN_TOKEN" + more + "}\nmodels: {anthropic: {url: 'http://127.0.0.1:1', key: env:ANTHROPIC_API_KEY}}\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Serve serves a handler as errand does: each answer has errand's name in its header.
func Serve(h http.Handler) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", "errand")
		h.ServeHTTP(w, r)
	}))
}

// GoldenServer is a running errand that answers with the golden files of internal/admin, so the commands are tested with what errand serves.
func GoldenServer(t *testing.T) string {
	t.Helper()
	errand := Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		file := map[string]string{"/status.json": "status.json", "/tasks/acme/shop/1/task.json": "task.json"}[r.URL.Path]
		switch {
		case r.Header.Get("Authorization") != "Bearer admin-token-for-tests":
			http.Error(w, "errand: send the admin token", http.StatusUnauthorized)
		case r.URL.Query().Get("repo") == "acme/none":
			_, _ = w.Write([]byte(`{"at": "2026-11-21T12:00:00Z", "open": 0, "tasks": [], "ended": []}`))
		case r.URL.Query().Get("repo") == "acme/many":
			_, _ = w.Write([]byte(`{"at": "2026-11-21T12:00:00Z", "open": 7000, "tasks": [{"repo": "acme/many", "issue": 1, "phase": "queued", "title": "x"}], "ended": []}`))
		case r.URL.Path == "/tasks/acme/shop/2/task.json":
			_, _ = w.Write([]byte(hostileTask()))
		case r.URL.Path == "/tasks/acme/shop/3/task.json":
			http.NotFound(w, r) // an older errand
		case file == "":
			http.Error(w, "errand has no task for this issue. The repository may have been renamed, or the issue was never assigned.", http.StatusNotFound)
		default:
			http.ServeFile(w, r, "../../internal/admin/testdata/"+file)
		}
	}))
	t.Cleanup(errand.Close)
	return strings.TrimPrefix(errand.URL, "http://")
}

// hostileTask is a task whose texts control a terminal, break tables, and are long.
func hostileTask() string {
	evil := `\u001b[2J\u009b2J\u202e\nand\tso on`
	return `{"at": "2026-11-21T12:00:00Z", "task": {"repo": "acme/shop", "issue": 2, "title": "A` + evil + `", "phase": "implementing", "next": "` + evil + `",
"money": {"words": "$0.00"}, "waiting": {"kind": "vm", "detail": "` + evil + `"}}, "started": {"at": "2026-11-21T11:43:00Z", "via": "assigned"}, "question": "` + evil + "\u009b2J\u202e" + `",
"runs": [{"seq": 1, "kind": "plan", "model": "` + evil + `", "message": "` + strings.Repeat("long ", 50000) + `"}],
"actions": [` + strings.TrimSuffix(strings.Repeat(`{"by": "token", "command": "stop", "result": "`+evil+`"},`, 30), ",") + `]}`
}

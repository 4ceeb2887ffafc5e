package operator

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/cli/clitest"
)

// TestActions: the commands send their arguments to the running errand, continue after a refusal, and explain errors.
func TestActions(t *testing.T) {
	t.Parallel()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for name, c := range map[string]struct {
		args     []string
		listen   string
		code     int
		sent     string
		out, err string
	}{
		"cancel":           {args: []string{"cancel", "acme/shop#4"}, sent: "cancel acme/shop/4 []", out: "acme/shop#4: done\n"},
		"retry":            {args: []string{"retry", "acme/shop#4", "--fresh", "--turns", "60"}, sent: "retry acme/shop/4 [fresh turns=60]"},
		"budget":           {args: []string{"budget", "acme/shop#4", "+500k", "tokens"}, sent: "budget acme/shop/4 [+500k tokens]"},
		"a refusal":        {args: []string{"stop", "acme/shop#5", "acme/shop#4"}, code: cli.ExitFailed, sent: "stop acme/shop/5 [], stop acme/shop/4 []", out: "acme/shop#4: done", err: "acme/shop#5: refused: no agent is running\nerrand: 1 of 2 were refused"},
		"JSON":             {args: []string{"retry", "acme/shop#5", "acme/shop#4", "--json"}, code: cli.ExitFailed, sent: "retry acme/shop/5 [], retry acme/shop/4 []", out: "true,\"result\":\"no agent is running\"}\n{\"subject\":\"acme/shop#4\",\"refused\":false,\"result\":\"done\"}\n", err: "1 of 2"},
		"no task":          {args: []string{"restart", "acme/shop#6"}, code: cli.ExitFailed, sent: "restart acme/shop/6 []", err: "acme/shop#6: refused: errand has no task"},
		"another version":  {args: []string{"stop", "acme/shop#7"}, code: cli.ExitFailed, sent: "stop acme/shop/7 []", err: "answered 404"},
		"not running":      {args: []string{"stop", "acme/shop#4"}, listen: strings.TrimPrefix(gone.URL, "http://"), code: cli.ExitFailed, err: "Start it with `errand serve`"},
		"no answer":        {args: []string{"budget", "acme/shop#8", "+5"}, code: cli.ExitFailed, sent: "budget acme/shop/8 [+5]", err: "It may have carried the command out: look at `errand audit`"},
		"half an answer":   {args: []string{"stop", "acme/shop#9"}, code: cli.ExitFailed, sent: "stop acme/shop/9 []", err: "It may have carried the command out: look at `errand audit`"},
		"nothing":          {args: []string{"stop"}, code: cli.ExitUsage, err: "stop takes a task"},
		"no number":        {args: []string{"stop", "acme/shop#4", "acme/shop"}, code: cli.ExitUsage, err: `but got "acme/shop"`},
		"path":             {args: []string{"stop", "acme/shop/../x#4"}, code: cli.ExitUsage, err: "OWNER/REPO#N"},
		"no addition":      {args: []string{"budget", "acme/shop#4"}, code: cli.ExitUsage, err: "for example `budget +5`"},
		"too much":         {args: []string{"budget", "acme/shop#4", "+5000000"}, code: cli.ExitUsage, err: "for example `budget +5`"},
		"no turns":         {args: []string{"retry", "acme/shop#4", "--turns", "-3"}, code: cli.ExitUsage, err: "for example `retry fresh turns=60`"},
		"audit":            {args: []string{"audit", "acme/shop#4"}, sent: "audit acme/shop#4", out: "2026-11-21 12:00:00  token from 127.0.0.1:5  acme/shop#4  stop     refused: no agent is running[2J\n"},
		"audit, JSON":      {args: []string{"audit", "--json"}, sent: "audit ", out: `{"actions":[{`},
		"audit of nothing": {args: []string{"audit", "shop"}, code: cli.ExitUsage, err: "one task at most"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var sent []string
			errand := clitest.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				defer mu.Unlock()
				if r.Header.Get("Authorization") != "Bearer admin-token-for-tests" {
					http.Error(w, "wrong token", http.StatusUnauthorized)
					return
				}
				if r.URL.Path == "/audit.json" {
					sent = append(sent, "audit "+r.URL.Query().Get("task"))
					_, _ = fmt.Fprint(w, `{"actions":[{"at":"2026-11-21T12:00:00Z","by":"token","from":"127.0.0.1:5","subject":"acme/shop#4","command":"stop","refused":true,"result":"no agent is running\u001b[2J"}]}`)
					return
				}
				path, verb, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/tasks/"), "/actions/")
				sent = append(sent, fmt.Sprintf("%s %s [%s]", verb, path, r.PostFormValue("args")))
				switch {
				case r.Method != http.MethodPost || len(r.PostFormValue("id")) < 16:
					http.Error(w, "no id", http.StatusBadRequest)
				case path == "acme/shop/4":
					_, _ = w.Write([]byte("done\n"))
				case path == "acme/shop/5":
					http.Error(w, "no agent is running", http.StatusConflict)
				case path == "acme/shop/6":
					http.Error(w, "errand has no task for this issue.", http.StatusNotFound)
				case path == "acme/shop/8":
					panic(http.ErrAbortHandler)
				case path == "acme/shop/9":
					w.Header().Set("Content-Length", "100")
					_, _ = w.Write([]byte("sto"))
				default:
					http.NotFound(w, r)
				}
			}))
			t.Cleanup(errand.Close)
			if c.listen == "" {
				c.listen = strings.TrimPrefix(errand.URL, "http://")
			}
			file := filepath.Join(t.TempDir(), "config.yml")
			text := fmt.Sprintf("listen: %s\ngithub: {app_id: 1, private_key: env:ERRAND_PRIVATE_KEY, webhook_secret: env:ERRAND_WEBHOOK_SECRET}\n"+
				"admin: {token: env:ERRAND_ADMIN_TOKEN}\nmodels: {anthropic: {url: \"http://127.0.0.1:1\", key: env:ANTHROPIC_API_KEY}}\nlocal: {kind: plain}\n", c.listen)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			code, out, errs := call(t, clitest.Secrets(t), append(c.args, "-c", file)...)
			mu.Lock()
			defer mu.Unlock()
			if strings.Contains(errs, "Start it") != (name == "not running") {
				t.Errorf("got errors %q", errs)
			}
			if got := strings.Join(sent, ", "); code != c.code || got != c.sent || !strings.Contains(out, c.out) || !strings.Contains(errs, c.err) {
				t.Errorf("got code %d, requests %q, output %q, errors %q; want %d, %q, %q, %q", code, got, out, errs, c.code, c.sent, c.out, c.err)
			}
		})
	}
}

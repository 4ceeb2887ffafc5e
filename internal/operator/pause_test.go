package operator

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/cli/clitest"
	"github.com/errand-bot/errand/internal/config"
)

// pausedErrand is an errand that answers orders to pause, and after each pause lists the next of some answers about the work.
type pausedErrand struct {
	*httptest.Server
	mu     sync.Mutex
	orders []string
	work   []string // bodies of pause.json; the last one is repeated, "gone" breaks the connection
	asked  int
}

func newPausedErrand(t *testing.T, work ...string) *pausedErrand {
	t.Helper()
	e := &pausedErrand{work: work}
	e.Server = clitest.Serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.mu.Lock()
		defer e.mu.Unlock()
		switch {
		case r.Header.Get("Authorization") != "Bearer admin-token-for-tests":
			http.Error(w, "wrong token", http.StatusUnauthorized)
		case r.URL.Path == "/pause.json":
			body := e.work[min(e.asked, len(e.work)-1)]
			if e.asked++; body == "gone" {
				panic(http.ErrAbortHandler)
			}
			_, _ = fmt.Fprint(w, body)
		case len(r.PostFormValue("id")) < 16:
			http.Error(w, "no id", http.StatusBadRequest)
		default:
			e.orders = append(e.orders, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", r.URL.Path, r.PostFormValue("repo"), r.PostFormValue("reason"), r.PostFormValue("all"))))
			switch r.PostFormValue("repo") {
			case "acme/typo":
				http.Error(w, "errand has no access to acme/typo", http.StatusConflict)
			case "acme/older":
				http.NotFound(w, r)
			default:
				_, _ = fmt.Fprintln(w, "paused; no agent is working")
			}
		}
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *pausedErrand) config(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yml")
	text := fmt.Sprintf("listen: %s\ngithub: {app_id: 1, private_key: env:ERRAND_PRIVATE_KEY, webhook_secret: env:ERRAND_WEBHOOK_SECRET}\n"+
		"admin: {token: env:ERRAND_ADMIN_TOKEN}\nmodels: {anthropic: {url: \"http://127.0.0.1:1\", key: env:ANTHROPIC_API_KEY}}\nlocal: {kind: plain}\n", strings.TrimPrefix(e.URL, "http://"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

const (
	pausedIdle = `{"paused":[{"repo":7,"name":"acme/shop"},{"since":"2026-11-21T12:00:00Z","by":"token"}],"under_way":[]}`
	pausedBusy = `{"paused":[{"by":"token"}],"under_way":[{"task":"acme/shop#4","doing":"the agent runs\u001b[2J"},{"doing":"baking a base image on VM b"}]}`
)

// TestPauseCommands: they send their arguments to the running errand, one order per repository, and explain errors.
func TestPauseCommands(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args     []string
		work     string
		code     int
		orders   string
		out, err string
	}{
		"pause":            {args: []string{"pause", "--reason", "new disk"}, orders: "/pause  new disk", out: "errand: paused; no agent is working\n"},
		"repositories":     {args: []string{"pause", "acme/shop", "acme/zoo"}, orders: "/pause acme/shop, /pause acme/zoo", out: "acme/shop: paused; no agent is working\nacme/zoo: paused"},
		"one is refused":   {args: []string{"pause", "acme/typo", "acme/zoo"}, code: cli.ExitFailed, orders: "/pause acme/typo, /pause acme/zoo", out: "acme/zoo: paused", err: "acme/typo: refused: errand has no access to acme/typo"},
		"JSON":             {args: []string{"pause", "--json"}, orders: "/pause", out: `{"subject":"errand","refused":false,"result":"paused; no agent is working"}`},
		"another version":  {args: []string{"pause", "acme/older"}, code: cli.ExitFailed, orders: "/pause acme/older", err: "answered 404"},
		"resume":           {args: []string{"resume"}, orders: "/resume"},
		"resume all":       {args: []string{"resume", "--all"}, orders: "/resume   true"},
		"all and one":      {args: []string{"resume", "--all", "acme/shop"}, code: cli.ExitUsage, err: "--all cannot be used with names"},
		"an issue":         {args: []string{"pause", "acme/shop#4"}, code: cli.ExitUsage, err: `as OWNER/REPO, but got "acme/shop#4"`},
		"a path":           {args: []string{"resume", "acme/../shop"}, code: cli.ExitUsage, err: "as OWNER/REPO"},
		"drain, idle":      {args: []string{"drain"}, work: pausedIdle, orders: "/pause", out: "errand: paused; no agent is working\nDrained: no agent works and nothing is being published. errand stays paused until `errand resume`.\n"},
		"drain, no time":   {args: []string{"drain", "--timeout", "0s"}, code: cli.ExitUsage, err: "--timeout must be positive"},
		"drain, names":     {args: []string{"drain", "acme/shop"}, code: cli.ExitUsage, err: "drain takes no arguments"},
		"drain, too short": {args: []string{"drain", "--timeout", "1ms"}, work: pausedBusy, code: cli.ExitFailed, orders: "/pause", err: "this is still under way:\n"},
		"drain, nonsense":  {args: []string{"drain"}, work: "<html>", code: cli.ExitFailed, orders: "/pause", err: "errand stays paused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newPausedErrand(t, c.work)
			code, out, errs := call(t, clitest.Secrets(t), append(c.args, "-c", e.config(t))...)
			if got := strings.Join(e.orders, ", "); code != c.code || got != c.orders || !strings.Contains(out, c.out) || !strings.Contains(errs, c.err) {
				t.Errorf("got code %d, orders %q, output %q, errors %q; want %d, %q, %q, %q", code, got, out, errs, c.code, c.orders, c.out, c.err)
			}
		})
	}
}

// TestDrain: it prints what is under way when that changes, goes on while errand restarts, and says whenever the pause stays.
func TestDrain(t *testing.T) {
	t.Parallel()
	const later = `{"paused":[{"by":"token"}],"under_way":[{"task":"acme/shop#4","doing":"publishing the commits"}]}`
	for name, c := range map[string]struct {
		work     []string
		ends     string // how: timeout, signal, or empty for by itself
		out, err string
	}{
		"drained": {work: []string{pausedBusy, pausedBusy, "gone", later, pausedIdle},
			out: "Waiting for:\n  acme/shop#4: the agent runs[2J\n  baking a base image on VM b\nWaiting for:\n  errand does not answer\nWaiting for:\n  acme/shop#4: publishing the commits\nDrained: "},
		"timeout":          {work: []string{pausedBusy}, ends: "timeout", err: "after 2 s this is still under way:\n  acme/shop#4: the agent runs[2J\n  baking a base image on VM b\nerrand stays paused"},
		"Ctrl-C":           {work: []string{pausedBusy}, ends: "signal", err: "stopped waiting. errand stays paused: no new run starts until `errand resume`."},
		"somebody resumed": {work: []string{pausedBusy, `{"paused":[{"repo":7}],"under_way":[]}`}, err: "somebody resumed errand meanwhile"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newPausedErrand(t, c.work...)
			env := clitest.Secrets(t)
			w := cli.World{Lookup: clitest.Lookup(env)}
			var out strings.Builder
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cfg, err := config.Load(e.config(t), w.Lookup)
			if err != nil {
				t.Fatal(err)
			}
			d := drain{timeout: time.Minute, every: time.Millisecond}
			switch c.ends {
			case "timeout":
				d.timeout = 2 * time.Second
			case "signal":
				w.Out = writer(func(p []byte) (int, error) {
					if strings.Contains(string(p), "Waiting for") {
						cancel()
					}
					return len(p), nil
				})
			}
			if c.ends != "signal" {
				w.Out = &out
			}
			err = d.run(ctx, w, cfg)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if (err == nil) != (c.err == "") || !strings.Contains(got, c.err) || !strings.Contains(out.String(), c.out) {
				t.Errorf("got output %q, error %q; want %q, %q", out.String(), got, c.out, c.err)
			}
		})
	}
}

package operator

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/cli/clitest"
	"github.com/errand-bot/errand/internal/config"
)

const sampleBoard = `{"version": "v1", "at": "2026-11-26T12:00:00Z", "open": 3, "unstarted_count": 2, "app_missing": [{}],
"paused": [{"since": "2026-11-26T10:00:00Z", "by": "token", "reason": "new\u001b[2J disk"}, {"repo": 7, "name": "acme/web", "since": "2026-11-26T11:30:00Z", "by": "browser session 12ab"}],
"money": {"today_words": "$1.20", "day_cap": 50, "month_words": "$9.00", "month_cap": 0},
"tasks": [
 {"repo": "acme/shop", "issue": 3, "phase": "implementing", "since": "2026-11-26T11:56:00Z", "next": "run 4 works:\n\u001b[2J rm", "money": {"words": "$0.20"}},
 {"repo": "acme/web", "issue": 12, "phase": "implementing", "since": "2026-11-26T11:00:00Z", "next": "2nd in the queue", "money": {"words": "$0.00"}, "waiting": {"kind": "vm"}}]}`

// boardServer is a running errand that answers with sampleBoard.
func boardServer(t *testing.T) string {
	t.Helper()
	errand := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer admin-token-for-tests" || r.URL.String() != "/status.json?offset=0&limit=500" {
			http.Error(w, "wrong "+r.URL.String(), http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(sampleBoard))
	}))
	t.Cleanup(errand.Close)
	return strings.TrimPrefix(errand.URL, "http://")
}

// loaded returns the configuration in a file.
func loaded(t *testing.T, path string) config.Config {
	t.Helper()
	env := clitest.Secrets(t)
	cfg, err := config.Load(path, clitest.Lookup(env))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestStatus(t *testing.T) {
	t.Parallel()
	works := boardServer(t)
	file := func(listen, more string) string { return clitest.Config(t, listen, more) }
	const table = `errand v1 at 12:00:00 UTC: 3 open tasks; today $1.20 of $50.00, this month $9.00
! errand is paused, for 2 h 00 min by token: new[2J disk (` + "`errand resume`" + `)
! acme/web is paused, for 30 min by browser session 12ab (` + "`errand resume acme/web`" + `)
! 1 × missing permission or event
! 2 × issue with an old trigger, not started

TASK         PHASE                           FOR         SPENT  NEXT
acme/shop#3  implementing                    4 min       $0.20  run 4 works: [2J rm
acme/web#12  implementing, waiting for a VM  1 h 00 min  $0.00  2nd in the queue
… and 1 more
`
	env := clitest.Secrets(t)
	for name, c := range map[string]struct {
		args []string
		env  map[string]string
		code int
		out  string
		err  string
	}{
		"table":         {args: []string{"-c", file(works, "")}, out: table},
		"own address":   {args: []string{"-c", file("127.0.0.1:1", ", listen: '"+works+"'")}, out: table},
		"JSON":          {args: []string{"-c", file(works, ""), "--json"}, out: sampleBoard},
		"not running":   {args: []string{"-c", file("127.0.0.1:1", "")}, code: cli.ExitFailed, err: "Start it with `errand serve`, use its configuration with -c, or run `errand doctor`"},
		"wrong token":   {args: []string{"-c", file(works, "")}, env: map[string]string{"ERRAND_ADMIN_TOKEN": "another-token-for-tests"}, code: cli.ExitFailed, err: "the token is wrong (401)\nadmin.token has to be"},
		"both flags":    {args: []string{"--json", "--watch"}, code: cli.ExitUsage, err: "--json cannot be used with --watch"},
		"no such file":  {args: []string{"-c", "none.yml"}, code: cli.ExitFailed, err: "open none.yml"},
		"with argument": {args: []string{"acme/shop#3"}, code: cli.ExitUsage, err: "status takes no arguments"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			own := map[string]string{}
			for _, m := range []map[string]string{env, c.env} {
				for k, v := range m {
					own[k] = v
				}
			}
			code, out, errs := call(t, own, append([]string{"status"}, c.args...)...)
			if code != c.code || out != c.out || !strings.Contains(errs, c.err) {
				t.Errorf("got code %d, errors %q, output\n%s", code, errs, out)
			}
		})
	}
}

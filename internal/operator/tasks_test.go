package operator

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/cli/clitest"
)

func TestTasks(t *testing.T) {
	t.Parallel()
	works := clitest.GoldenServer(t)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	file := clitest.Config(t, works, "")
	stopped := clitest.Config(t, strings.TrimPrefix(gone.URL, "http://"), "")
	for name, c := range map[string]struct {
		args   []string
		env    map[string]string
		code   int
		out    []string
		absent []string
		err    string
	}{
		"open tasks": {
			args:   []string{"tasks"},
			out:    []string{"TASK         PHASE ", "acme/shop#1  implementing   ", "a VM         2026-11-21 11:31  $0.62  –\n", "an approval", "a review", "a retry", "  errand-7-1-2\n", "  suspended\n"},
			absent: []string{"acme/shop#7", "acme/shop#8"},
		},
		"all":           {args: []string{"tasks", "--all"}, out: []string{"acme/shop#1 ", "acme/shop#7  done ", "acme/shop#8  canceled "}},
		"none":          {args: []string{"tasks", "--repo", "acme/none"}, out: []string{"There are no such tasks.\n"}, absent: []string{"TASK"}},
		"more than fit": {args: []string{"tasks", "--repo", "acme/many"}, out: []string{"… and 6999 more open tasks; --repo lists"}},
		"JSON":          {args: []string{"tasks", "--json"}, out: []string{`"open": 7,`, `"repo": "acme/web",`, `\u009b2J\u202e`}, absent: []string{`"ended"`, "\u009b", "\u202e", "\x1b"}},
		"JSON, all":     {args: []string{"tasks", "--json", "--all"}, out: []string{`"ended": [`}},
		"no repository": {args: []string{"tasks", "--repo", "acme/shop#1"}, code: cli.ExitUsage, err: "as OWNER/REPO, but got"},
		"a word":        {args: []string{"tasks", "acme/shop"}, code: cli.ExitUsage, err: "takes no arguments"},
		"not running":   {args: []string{"tasks", "-c", stopped}, code: cli.ExitFailed, err: "Start it with `errand serve`, use its configuration with -c, or run `errand doctor`"},
		"wrong token":   {args: []string{"tasks"}, env: map[string]string{"ERRAND_ADMIN_TOKEN": "another-token-for-tests"}, code: cli.ExitFailed, err: "the token is wrong (401)\nadmin.token has to be the one with which errand was started"},
		"task": {args: []string{"task", "acme/shop#1"}, out: []string{
			taskText, "/tasks/acme/shop/1\n\nPlans and approvals\n", "approved by ada (write), 👍, 2026-11-21 11:49, with: keep the API  ",
			"approved by grace (admin), command, 2026-11-21 11:47  ",
			"2    preliminary plan  crashed  2026-11-21 11:46  40 s   $0.09  –       exit code 3 <tag>\n",
			"errand-7-1-1  local     plain  2026-11-21 11:43  2026-11-21 11:47  a new one was requested  –\n",
			"2026-11-21 11:59  token from 127.0.0.1:5  stop     refused: no agent is running\n", "2026-11-21 11:43  getting ready ",
		}},
		"task, JSON":        {args: []string{"task", "acme/shop#1", "--json"}, out: []string{`"plans": [`, `"by": "ada",`}},
		"hostile":           {args: []string{"task", "acme/shop#2"}, out: []string{"acme/shop#2: A[2J2J and so on\n", "long long long …\n", "… and 20 older; --json has them\n", "\nstarted   2026-11-21 11:43 UTC, assigned\n", "question  [2J2J and so on2J\n"}, absent: []string{"\x1b", "\u009b", "\u202e", strings.Repeat("long ", 30)}},
		"hostile, JSON":     {args: []string{"task", "acme/shop#2", "--json"}, out: []string{`\u009b2J\u202e"`}, absent: []string{"\x1b", "\u009b", "\u202e"}},
		"an older errand":   {args: []string{"task", "acme/shop#3"}, code: cli.ExitFailed, err: "answered 404 Not Found"},
		"no such task":      {args: []string{"task", "acme/shop#4"}, code: cli.ExitFailed, err: "errand has no task for this issue. The repository may have been renamed, or the issue was never assigned.\n`errand tasks --all` lists the tasks"},
		"no task":           {args: []string{"task"}, code: cli.ExitUsage, err: "as OWNER/REPO#N"},
		"two tasks":         {args: []string{"task", "a/b#1", "a/b#2"}, code: cli.ExitUsage, err: "as OWNER/REPO#N"},
		"task, not running": {args: []string{"task", "acme/shop#1", "-c", stopped}, code: cli.ExitFailed, err: "Start it with `errand serve`"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := clitest.Secrets(t)
			for k, v := range c.env {
				env[k] = v
			}
			if c.args[len(c.args)-1] != stopped {
				c.args = append(c.args, "-c", file)
			}
			code, out, errs := call(t, env, c.args...)
			if code != c.code || !strings.Contains(errs, c.err) {
				t.Errorf("got code %d, errors %q", code, errs)
			}
			for _, want := range c.out {
				if !strings.Contains(out, want) {
					t.Errorf("lacks %q:\n%s", want, out)
				}
			}
			for _, absent := range append(c.absent, "admin-token-for-tests", "another-token-for-tests") {
				if strings.Contains(out+errs, absent) {
					t.Errorf("contains %q:\n%s%s", absent, out, errs)
				}
			}
			if slices.Contains(c.args, "--json") && !json.Valid([]byte(out)) {
				t.Errorf("is no JSON:\n%s", out)
			}
		})
	}
}

const taskText = `acme/shop#1: Prices are rounded twice

phase           implementing since 2026-11-21 11:50 UTC (10 min)
next            The agent is at work.
agent           run 4, 9 turns, last activity 4 s ago: go test ./price/...
started         2026-11-21 11:43 UTC by ada, assigned
cost            $0.31 of $10.00; 81k tokens in, 9400 out; agents worked for 2 min
branch          errand/1-prices-are-rounded-twice
issue           https://git.example/acme/shop/issues/1
status comment  https://git.example/c/status
page            http://`

// TestTokenIsRequired: without a token in the configuration the error names the setting.
func TestTokenIsRequired(t *testing.T) {
	t.Parallel()
	file := clitest.Config(t, "127.0.0.1:1", ", listen: '"+clitest.GoldenServer(t)+"'")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "token: env:ERRAND_ADMIN_TOKEN, ", "", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, errs := call(t, clitest.Secrets(t), "tasks", "-c", file)
	if code != cli.ExitFailed || !strings.Contains(errs, "it requires a token (401)\nSet admin.token in the configuration") {
		t.Errorf("got code %d, errors %q", code, errs)
	}
}

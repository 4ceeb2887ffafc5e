package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/cli/clitest"
)

// TestInitAsks: in a terminal, a pull request is opened only after a yes.
func TestInitAsks(t *testing.T) {
	t.Parallel()
	c := newClinic(t, build(t))
	c.seedFiles("app", map[string]string{"go.mod": "module example.org/app\n"})
	for _, row := range []struct{ typed, want string }{
		{"n\n", "Nothing was changed on GitHub.\n"}, {"", "Nothing was changed on GitHub.\n"}, {"perhaps\n", "Nothing was changed on GitHub.\n"}, {"Yes\n", "Pull request #1 is opened: http"},
	} {
		var out, errs bytes.Buffer
		w := cli.World{
			Args: []string{"init", "acme/app", "--no-play", "-c", c.file()}, BinDir: c.bin, In: strings.NewReader(row.typed), Terminal: true, Screen: true, Out: &out, Err: &errs,
			Lookup: clitest.Lookup(nil),
		}
		code := run(t.Context(), w)
		if code != cli.ExitOK || !strings.Contains(out.String(), "Open a pull request with this file in acme/app, or update it? [y/N] "+row.want) {
			t.Errorf("%q: code %d, errors %q\n%s", row.typed, code, errs.String(), out.String())
		}
		if n := len(c.pulls("app")); (n == 1) != (row.typed == "Yes\n") {
			t.Errorf("%q: there are %d pull requests", row.typed, n)
		}
	}
}

// TestInitKnowsOtherSettings: settings of the organization are named, and present ones are left alone, also if they are not valid.
func TestInitKnowsOtherSettings(t *testing.T) {
	t.Parallel()
	c := newClinic(t, build(t))
	c.seedFiles(".github", map[string]string{".errand.yml": "plan: none\n"})
	c.seedFiles("app", map[string]string{"README.md": "x"})
	c.seedFiles("odd", map[string]string{".errand.yml": "plan: [\n"})
	for repo, want := range map[string]string{
		"app": "note: The settings in acme/.github apply to this repository now. A file of its own replaces all of them: copy what you need.\n",
		"odd": "acme/odd has a .errand.yml already, which was left as it is. It is not YAML.\n",
	} {
		if code, out, errs := c.initiate(repo, "--dry-run"); code != cli.ExitOK || !strings.Contains(out, want) {
			t.Errorf("%s: code %d, errors %q\n%s", repo, code, errs, out)
		}
	}
}

// TestInitTriesTheUsualCommand: if a target of the project fails, the usual command of the language is tried and proposed as well; and a
// sign-off that nearly all commits have is proposed.
func TestInitTriesTheUsualCommand(t *testing.T) {
	c, _ := sandboxed(t, "exit 3")
	c.seedFiles("lib", map[string]string{"mix.exs": "", "Makefile": "test:\n\t@linter-that-nobody-has\n"})
	for i := range 12 {
		c.push("lib", "main", "Add y\n\nSigned-off-by: Ada <ada@example.org>\n", map[string]string{"README.md": strings.Repeat("x", i+1)})
	}
	code, out, errs := c.initiate("lib", "--dry-run")
	if strings.Contains(out, "this host has no sandbox") {
		t.Skip("this host has no sandbox that isolates: " + out)
	}
	for _, want := range []string{
		"commits need a Signed-off-by line (DCO)  12 of the newest 13 commits", "left out because it failed: exit code 2: linter-that-nobody-has was not found in the sandbox\n    # - make test\n",
		"from mix.exs: the usual tests of Elixir, because this failed: make test; succeeded\n    - mix test\n", "\n  signoff: true\n",
	} {
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("exit code %d, lacks %q:\n%s\n%s", code, want, out, errs)
		}
	}
}

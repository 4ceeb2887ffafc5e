package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/cli"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// seedFiles creates a repository of acme.
func (c *clinic) seedFiles(name string, files map[string]string) {
	c.t.Helper()
	if _, err := c.github.SeedRepo(simgithub.RepoSeed{Owner: "acme", Name: name, Files: files, Collaborators: map[string]simgithub.Role{"ada": simgithub.RoleWrite}}); err != nil {
		c.t.Fatal(err)
	}
}

// initiate runs init on a repository of acme.
func (c *clinic) initiate(repo string, args ...string) (code int, out, errs string) {
	c.t.Helper()
	code, out, errs = callIn(c.t, c.bin, nil, append([]string{"init", "acme/" + repo, "-c", c.file()}, args...)...)
	if strings.ContainsAny(out+errs, "\x1b\x07\x00") {
		c.t.Errorf("prints control characters: %q", out+errs)
	}
	return code, out, errs
}

// pulls returns the pull requests of a repository of acme.
func (c *clinic) pulls(repo string) (list []*simgithub.Issue) {
	c.t.Helper()
	r, ok := c.github.Snapshot().Repo("acme/" + repo)
	if !ok {
		c.t.Fatalf("no repository %s", repo)
	}
	for _, i := range r.IssuesByNumber() {
		if i.Pull != nil {
			list = append(list, i)
		}
	}
	return list
}

func (c *clinic) push(repo, branch, message string, files map[string]string) {
	c.t.Helper()
	if _, err := c.github.As("ada").PushCommit("acme/"+repo, simgithub.Commit{Branch: branch, Message: message, Files: files}); err != nil {
		c.t.Fatal(err)
	}
}

// TestInitRefuses: each obstacle gets a message that says what to do, and nothing is changed.
func TestInitRefuses(t *testing.T) {
	t.Parallel()
	bin := build(t)
	for name, row := range map[string]struct {
		plant func(*clinic)
		repo  string
		args  []string
		code  int
		want  []string
	}{
		"no terminal":       {code: 2, want: []string{"there is no terminal to ask in: add --dry-run, or --yes"}},
		"JSON that asks":    {args: []string{"--json"}, code: 2, want: []string{"--json asks nothing"}},
		"no repository":     {repo: "nowhere", args: []string{"--yes"}, code: 1, want: []string{"errand has no access to acme/nowhere: check the name, or install the App there"}},
		"not a name":        {repo: "a/b", args: []string{"--yes"}, code: 2, want: []string{`write one repository as OWNER/REPO, instead of "acme/a/b"`}},
		"default branch":    {args: []string{"--yes", "--branch", "main"}, code: 2, want: []string{"--branch main is the default branch"}},
		"branch of a trick": {args: []string{"--yes", "--branch", "a/../b"}, code: 2, want: []string{"is not a name that errand accepts"}},
		"archived": {
			plant: func(c *clinic) { _ = c.github.ArchiveRepo("acme/app") }, args: []string{"--yes"}, code: 1, want: []string{"acme/app is archived", "unarchive it"},
		},
		"no permission": {
			plant: func(c *clinic) {
				all := maps.Clone(c.github.App().Permissions)
				all["pull_requests"], all["contents"] = "read", "read"
				c.github.GrantPermissions("acme", all)
			},
			args: []string{"--yes"}, code: 1, want: []string{"the App lacks permissions on acme/app: pull_requests: write (granted: read), contents: write (granted: read)", "An owner of acme grants them at http"},
		},
		"empty": {
			plant: func(c *clinic) {
				if _, err := c.github.SeedRepo(simgithub.RepoSeed{Owner: "acme", Name: "fresh", Empty: true}); err != nil {
					c.t.Fatal(err)
				}
			},
			repo: "fresh", args: []string{"--yes"}, code: 1, want: []string{"acme/fresh has no commits on main yet: push a first commit"},
		},
		"GitHub down": {
			plant: func(c *clinic) {
				c.config["github"] = strings.Replace(c.config["github"], c.github.BaseURL(), "http://127.0.0.1:1", 1)
			},
			args: []string{"--yes"}, code: 1, want: []string{"find the repository", "GitHub"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClinic(t, bin)
			c.seedFiles("app", map[string]string{"go.mod": "module example.org/app\n"})
			if row.plant != nil {
				row.plant(c)
			}
			repo := row.repo
			if repo == "" {
				repo = "app"
			}
			code, out, errs := c.initiate(repo, append(row.args, "--no-play")...)
			for _, want := range row.want {
				if !strings.Contains(errs, want) {
					t.Errorf("does not say %q:\n%s\n%s", want, out, errs)
				}
			}
			if branches, err := c.github.As("acme").Branches("acme/app"); code != row.code || err != nil || len(branches) != 1 || len(c.pulls("app")) > 0 {
				t.Errorf("exit code %d, branches %v, %v", code, branches, err)
			}
		})
	}
}

// TestInitDryRun: a dry run shows the findings with their origins, and the file, needs only read access, and changes nothing. Its JSON
// has the same.
func TestInitDryRun(t *testing.T) {
	t.Parallel()
	c := newClinic(t, build(t))
	c.seedFiles("app", map[string]string{
		"go.mod": "module example.org/app\n\ngo 1.26\n", "Makefile": "test:\n\tgo test ./...\n", "CONTRIBUTING.md": "Use git commit -s.", "a.go": "package a\n",
		".tool-versions": "golang 1.26\x1b[2J\n", "dir\x1b]0;x\x07/go.mod": "module x\n",
	})
	c.seedFiles(".github", map[string]string{".errand.yml": "plan: one-step\n"})
	all := maps.Clone(c.github.App().Permissions)
	all["pull_requests"], all["contents"] = "read", "read"
	c.github.GrantPermissions("acme", all)
	code, out, errs := c.initiate("app", "--dry-run")
	if code != 0 {
		t.Fatalf("exit code %d\n%s\n%s", code, out, errs)
	}
	for _, want := range []string{
		"acme/app, branch main, commit ", "language  Go", "version   go 1.26", "module    Go in .", "make test  ", "Makefile: target test", "commits need a Signed-off-by line (DCO)  CONTRIBUTING.md",
		"The commands were not tried: this host has no sandbox that separates commands from it", "  # The commands were not tried", "    # from Makefile: target test\n    - make test\n", "  signoff: true",
		"Nothing was changed on GitHub", "note: The settings in acme/.github apply to this repository now.",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("does not print %q:\n%s", want, out)
		}
	}
	code, out, errs = c.initiate("app", "--dry-run", "--json", "--no-play")
	var got initResult
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != 0 || len(got.Check) != 2 || got.Check[1].Run != "make test" || !got.SignOff || got.PullRequest != nil || !strings.Contains(got.File, "- make test\n") || got.Tried != "not tried: --no-play" {
		t.Errorf("exit code %d, %v: %+v\n%s", code, err, got, errs)
	}
	if branches, err := c.github.As("acme").Branches("acme/app"); err != nil || len(branches) != 1 || len(c.pulls("app")) > 0 {
		t.Errorf("a dry run made branches %v, %v", branches, err)
	}
}

// TestInitKeepsOnePullRequest: repeated, init updates its pull request; what people changed on the branch or closed stays unless
// they use --force.
func TestInitKeepsOnePullRequest(t *testing.T) {
	t.Parallel()
	c := newClinic(t, build(t))
	c.seedFiles("app", map[string]string{"go.mod": "module example.org/app\n", "commitlint.config.js": ""})
	run := func(code int, want string, args ...string) (out string) {
		t.Helper()
		got, out, errs := c.initiate("app", append(args, "--yes", "--no-play")...)
		if got != code || !strings.Contains(out+errs, want) {
			t.Fatalf("exit code %d, want %d and %q:\n%s\n%s", got, code, want, out, errs)
		}
		return out
	}
	file := func() string {
		t.Helper()
		data, err := c.github.As("ada").File("acme/app", "errand/init", ".errand.yml")
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	c.fault(simgithub.Fault{Method: http.MethodPost, Path: "/pulls$", Count: 1, Status: http.StatusInternalServerError})
	run(1, "open the pull request")
	run(0, "Pull request #1 is opened: http") // from the branch that the first attempt made
	pr := c.pulls("app")[0]
	if pr.Title != "chore: add settings for errand" || pr.Pull.Base != "main" || !strings.Contains(pr.Body, "| `check` | `go test ./...` | `go.mod: the usual tests of Go` | not tried |") ||
		!strings.Contains(pr.Body, "Assign an issue to `worker`.") || !strings.Contains(file(), "- go test ./...\n") {
		t.Fatalf("got %q into %s:\n%s\n%s", pr.Title, pr.Pull.Base, pr.Body, file())
	}
	first := pr.Pull.HeadSHA
	run(0, "Pull request #1 is up to date")
	if again := c.pulls("app"); len(again) != 1 || again[0].Pull.HeadSHA != first {
		t.Fatalf("repeating it made %d pull requests and the head %s", len(again), again[0].Pull.HeadSHA)
	}
	c.push("app", "main", "Add a Makefile", map[string]string{"Makefile": "test:\n\ttrue\n"})
	run(0, "Pull request #1 is updated")
	if !strings.Contains(file(), "- make test\n") {
		t.Fatalf("the file is old:\n%s", file())
	}
	c.push("app", "errand/init", "Our own tests", map[string]string{".errand.yml": "check: [mine]\n"})
	if out := run(1, "people have changed the branch errand/init"); strings.Contains(out, "The commands were") || strings.Contains(out, ".errand.yml:") {
		t.Fatalf("is refused after the commands were tried:\n%s", out)
	}
	if file() != "check: [mine]\n" {
		t.Fatalf("a person's change was lost:\n%s", file())
	}
	run(0, "Pull request #1 is updated", "--force")
	if err := c.github.As("ada").Close("acme/app", 1, ""); err != nil {
		t.Fatal(err)
	}
	run(1, "pull request #1 from errand/init was closed without a merge")
	run(0, "Pull request #2 is opened", "--force")
	if err := c.github.As("ada").Merge("acme/app", 2, simgithub.Merge{}); err != nil {
		t.Fatal(err)
	}
	run(0, "acme/app has a .errand.yml already, which was left as it is. It has everything that would be proposed.")
	c.push("app", "main", "Lint", map[string]string{"Makefile": "test:\n\ttrue\nlint:\n\ttrue\n"})
	run(0, "It lacks:\n  check: make lint\n")
	if n := len(c.pulls("app")); n != 2 {
		t.Fatalf("%d pull requests", n)
	}
	run(0, "Pull request #3 is opened", "--force")
	if pr := c.pulls("app")[2]; !strings.Contains(pr.Body, "This replaces the present `.errand.yml`") || pr.Title != "chore: replace settings for errand" {
		t.Fatalf("got %q:\n%s", pr.Title, pr.Body)
	}
}

// sandboxed prepares a clinic whose sandboxes isolate, a repository with commands that end in several ways, and an empty folder for
// temporary files.
func sandboxed(t *testing.T, test string) (c *clinic, ofHost string) {
	t.Helper()
	c = newClinic(t, build(t))
	t.Setenv("TMPDIR", t.TempDir())
	c.write("tools/mix", "#!/bin/sh\n[ \"$1\" = deps.get ] && touch fetched && exit\n[ -e fetched ] && echo tested\n", 0o755)
	if err := os.Chmod(c.path("tools"), 0o755); err != nil {
		t.Fatal(err)
	}
	c.config["local"] = fmt.Sprintf("{kind: auto, path: ['%[1]s'], binds: [{path: '%[1]s'}]}", c.path("tools"))
	ofHost = filepath.Join(t.TempDir(), "of-the-host")
	if err := os.WriteFile(ofHost, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.seedFiles("app", map[string]string{
		"mix.exs": "", "Gemfile": "", "lint.sh": "test ! -e " + ofHost + " && { touch " + ofHost + ".written; test -z \"$HTTP_COOKIE\"; }\n",
		"Makefile":                 "lint:\n\t@sh lint.sh\ntest:\n\t@" + test + "\n",
		".github/workflows/ci.yml": "on: push\njobs:\n  all:\n    steps:\n    - run: make test\n    - run: mix test\n",
	})
	return c, ofHost
}

// leftovers returns the folders of init in the temporary folder that sandboxed has set.
func leftovers(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "errand-init-*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// supervisors returns the command lines of the sandboxes that a clinic's errand-runner keeps.
func (c *clinic) supervisors() (list []string) {
	c.t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		c.t.Fatal(err)
	}
	for _, f := range files {
		line, err := os.ReadFile(f) // the process may have ended
		if err == nil && strings.HasPrefix(string(line), filepath.Join(c.bin, "errand-runner")+"\x00") {
			list = append(list, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return list
}

// TestInitTriesInSandbox: commands run in a sandbox only, those that fail are proposed as comments with the reason, and the
// sandbox is deleted.
func TestInitTriesInSandbox(t *testing.T) {
	c, ofHost := sandboxed(t, `printf 'one \033[31mtest failed\n'; exit 3`)
	code, out, errs := c.initiate("app", "--yes")
	if strings.Contains(out, "this host has no sandbox") {
		t.Skip("this host has no sandbox that isolates: " + out)
	}
	if code != 0 || !strings.Contains(out, "test failed") || !strings.Contains(out, "Pull request #1 is opened") {
		t.Fatalf("exit code %d\n%s\n%s", code, out, errs)
	}
	data, err := c.github.As("ada").File("acme/app", "errand/init", ".errand.yml")
	if err != nil {
		t.Fatal(err)
	}
	wanted := []string{
		"in a sandbox on errand's host.\n", "setup:\n", "needed in both lists; succeeded\n  - mix deps.get\n", "  # from Makefile: target lint; succeeded\n  - make lint\n",
		"  # from .github/workflows/ci.yml: job all; left out because it failed: exit code 2\n  # - make test\n", "job all; succeeded\n  - mix test\n",
	}
	if _, err := exec.LookPath("bundle"); err != nil {
		wanted = append(wanted, "left out because it failed: bundle was not found in the sandbox; agents work in such ones, too: install it on errand's host, or add its folder to local.path\n  # - bundle install\n")
	}
	for _, want := range wanted {
		if !strings.Contains(string(data), want) {
			t.Errorf("lacks %q:\n%s", want, data)
		}
	}
	if body := c.pulls("app")[0].Body; !strings.Contains(body, "✅ succeeded in") || !strings.Contains(body, "❌ failed after") || !strings.Contains(body, "`exit code 2`") {
		t.Errorf("got %s", body)
	}
	if _, err := os.Stat(ofHost + ".written"); err == nil {
		t.Error("a command wrote to the host")
	}
	if left, processes := leftovers(t), c.supervisors(); len(left)+len(processes) > 0 {
		t.Errorf("%v and the processes %q remain", left, processes)
	}
	if _, err := config.ParseRepo(data, config.Default().Settings(), nil); err != nil {
		t.Errorf("the file is invalid: %v", err)
	}
}

// cancelWriter ends a context when a text is written.
type cancelWriter struct {
	bytes.Buffer
	at     string
	cancel context.CancelFunc
}

func (w *cancelWriter) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if strings.Contains(w.String(), w.at) {
		w.cancel()
	}
	return n, err
}

// TestInitInterrupted: after Ctrl-C while a command hangs, nothing is changed and nothing is left.
func TestInitInterrupted(t *testing.T) {
	c, _ := sandboxed(t, "sleep 1000")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out := &cancelWriter{at: "check: make test …", cancel: cancel}
	var errs bytes.Buffer
	code := run(ctx, cli.World{
		Args: []string{"init", "acme/app", "--yes", "-c", c.file()}, BinDir: c.bin, In: strings.NewReader(""), Out: out, Err: &errs, Lookup: func(string) (string, bool) { return "", false },
	})
	if strings.Contains(out.String(), "this host has no sandbox") {
		t.Skip("this host has no sandbox that isolates: " + out.String())
	}
	if code != 1 || !strings.Contains(errs.String(), "interrupted") || len(c.pulls("app")) > 0 {
		t.Errorf("exit code %d\n%s\n%s", code, out, &errs)
	}
	if left, processes := leftovers(t), c.supervisors(); len(left)+len(processes) > 0 {
		t.Errorf("%v and the processes %q remain", left, processes)
	}
}

// TestInitSaysWhatAnInterruptionLeft: after a signal, the error says whether GitHub may have been changed, and keeps the reason.
func TestInitSaysWhatAnInterruptionLeft(t *testing.T) {
	t.Parallel()
	f := initiation{branch: "settings"}
	if err := f.interrupted(nil, true); err != nil {
		t.Errorf("a signal after the end is the error %v", err)
	}
	for publishing, want := range map[bool]string{
		false: "interrupted; nothing was changed on GitHub\nthe reason",
		true:  "interrupted; the branch settings may have been written: run the command again to continue\nthe reason",
	} {
		if err := f.interrupted(errors.New("the reason"), publishing); err == nil || err.Error() != want {
			t.Errorf("publishing %v: got %v", publishing, err)
		}
	}
}

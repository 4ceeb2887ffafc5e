package work_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/runner/work"
)

const lentContent = "password=hunter2hunter2\n"

// lent are files as an operator lends them, one of them at a place of the repository's own.
func lent(paths ...string) []work.TestFile {
	var out []work.TestFile
	for _, p := range paths {
		out = append(out, work.TestFile{Path: p, Content: []byte(lentContent)})
	}
	return out
}

func TestLend(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	tests := map[string]struct {
		script string
		path   string
		taken  bool
	}{
		"a new folder":                      {path: "config/test/key.pem"},
		"next to existing files":            {path: "dir/key"},
		"again":                             {script: "mkdir config; echo old > config/key; chmod 444 config/key", path: "config/key"},
		"the repository's own file":         {path: "README", taken: true},
		"the repository's own folder":       {path: "dir", taken: true},
		"below the repository's own file":   {path: "README/key", taken: true},
		"below the repository's own link":   {path: "link/key", taken: true},
		"a link of the agent's":             {script: "ln -s ../outside key", path: "key"},
		"a folder that is a link":           {script: "mkdir ../elsewhere; ln -s ../elsewhere config", path: "config/key"},
		"a folder that is a file":           {script: "echo x > config", path: "config/key"},
		"a folder in the place of the file": {script: "mkdir -p key/x", path: "key"},
		"git's list is a link":              {script: "mkdir -p .git/info; rm -f .git/info/exclude; ln -s ../../../outside .git/info/exclude", path: "key"},
		"git's folder is a link":            {script: "rm -rf .git/info; mkdir ../elsewhere; ln -s ../../elsewhere .git/info", path: "key"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := preparedPlace(t, o)
			script(t, dir, "echo outside > ../outside\n"+test.script)
			spec := work.LendSpec{Dir: dir, Base: o.head, Files: lent(test.path)}
			var got work.Lent
			for range 2 {
				var err error
				if got, err = work.Lend(testContext(t), spec); err != nil {
					t.Fatal(err)
				}
			}
			if test.taken {
				if diff := cmp.Diff([]string{test.path}, got.Taken); diff != "" {
					t.Fatalf("taken (-want +got):\n%s", diff)
				}
				if s := git(t, dir, "status", "--short"); s != "" {
					t.Errorf("something was changed: %s", s)
				}
				return
			}
			full := filepath.Join(dir, test.path)
			data, err := os.ReadFile(full)
			if err != nil || string(data) != lentContent {
				t.Fatalf("it holds %q, %v", data, err)
			}
			if info, err := os.Lstat(full); err != nil || info.Mode() != 0o600 {
				t.Errorf("its mode is %v, %v", info.Mode(), err)
			}
			if s := git(t, dir, "status", "--short", "--", test.path); s != "" {
				t.Errorf("git sees it: %s", s)
			}
			if s := run(t, filepath.Dir(dir), nil, nil, "sh", "-c", "cat outside; ls -A elsewhere 2>/dev/null || true"); s != "outside" {
				t.Errorf("outside of the checkout there is %q", s)
			}
		})
	}
}

func TestLendRefuses(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	dir := preparedPlace(t, o)
	for _, p := range []string{"../x", "/etc/x", ".git/config", "a/.GIT/x", "", ".", "a/../b", "a\nb"} {
		if _, err := work.Lend(testContext(t), work.LendSpec{Dir: dir, Files: lent(p)}); err == nil {
			t.Errorf("%q was taken", p)
		}
		if _, err := work.Lend(testContext(t), work.LendSpec{Dir: dir, Back: []string{p}}); err == nil {
			t.Errorf("%q was taken back", p)
		}
	}
}

// Lent files are never in a changeset unless the agent commits them, and they are removed from checkout and index.
func TestLentIsNotCollected(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	for name, commands := range map[string]string{
		"left alone":   "true",
		"unignored":    "rm -f .git/info/exclude",
		"staged":       "git add -f config/key",
		"intended":     "git add -f -N config/key",
		"changed, too": "echo more >> config/key; git add -f config/key; echo more >> config/key",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := preparedPlace(t, o)
			if _, err := work.Lend(testContext(t), work.LendSpec{Dir: dir, Base: o.head, Files: lent("config/key")}); err != nil {
				t.Fatal(err)
			}
			script(t, dir, commands+"; echo x > new; echo y > config/other")
			set, err := work.Collect(testContext(t), work.CollectSpec{Dir: dir, Base: o.head, Message: "Left over\n", Leave: []string{"config/key", "never/there"}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"= Left over", ">100644 config/other", ">100644 new"}, changes(set)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			script(t, dir, commands)
			if _, err := work.Lend(testContext(t), work.LendSpec{Dir: dir, Back: []string{"config/key", "never/there"}}); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(filepath.Join(dir, "config/key")); !os.IsNotExist(err) {
				t.Errorf("it is still there: %v", err)
			}
			if s := git(t, dir, "ls-files", "--stage", "config/key"); s != "" {
				t.Errorf("the index has it: %s", s)
			}
		})
	}
}

// Checks find lent files in their own worktree, and the lists of changed files. Checks of one program are not parallel:
// see TestCheck.
func TestCheckLendsAndCompares(t *testing.T) {
	o := newOrigin(t)
	dir := preparedPlace(t, o)
	script(t, dir, `mkdir -p mod/in "a b/-c"; touch mod/go.mod "a b/-c/package.json" mod/in/x; echo 1 > "a b/-c/it's"; echo 2 > -dash
		git rm -q dir/other; git add -A; git commit -qm Work`)
	_, done, log, err := checked(t, t.TempDir(), work.CheckSpec{
		Dir: dir, Head: git(t, dir, "rev-parse", "HEAD"), Base: o.head, Files: lent("config/key"), Isolation: "subreaper",
		Commands: []work.CheckCommand{
			{Name: "files", Command: `printf '[%s]' {changed_files}; echo; git status --short`},
			{Name: "modules", Command: `printf '<%s>' {affected_modules}; echo; cat config/key; ls -l config/key | cut -c1-10`},
		},
	})
	if err != nil || !done.OK {
		t.Fatalf("%+v, %v\n%s", done, err, log)
	}
	want := "[./-dash][a b/-c/it's][a b/-c/package.json][mod/go.mod][mod/in/x]\n<a b/-c><mod>\n" + lentContent + "-rw-------\n"
	if diff := cmp.Diff(want, log); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

// Commands for changes are skipped with a reason if nothing changed; lists longer than the limit of an argument are
// passed completely.
func TestCheckSkipsAndTakesMany(t *testing.T) {
	o := newOrigin(t)
	dir := preparedPlace(t, o)
	commands := []work.CheckCommand{{Name: "lint", Command: "printf '%s\\n' {changed_files} | wc -l"}, {Name: "test", Command: "exit 3 {affected_modules}"}}
	spec := work.CheckSpec{Dir: dir, Head: o.head, Base: o.head, Isolation: "subreaper", Commands: commands}
	results, done, _, err := checked(t, t.TempDir(), spec)
	if err != nil || !done.OK || len(results) != 2 || results[0].Skipped == "" || results[1].Skipped == "" {
		t.Errorf("nothing changed: %+v, %+v, %v", results, done, err)
	}
	script(t, dir, `mkdir many; long=$(printf 'x%.0s' $(seq 200)); for i in $(seq 600); do : > many/$long$i; done; git add -A; git commit -qm Many`)
	spec.Head = git(t, dir, "rev-parse", "HEAD")
	results, _, log, err := checked(t, t.TempDir(), spec)
	if err != nil || len(results) != 2 || strings.TrimSpace(log) != "600" || results[1].Skipped == "" {
		t.Errorf("many changed: %+v, %v\n%s", results, err, log)
	}
	spec.Base = strings.Repeat("a", 40)
	if _, done, _, err := checked(t, t.TempDir(), spec); err == nil || done.OK {
		t.Errorf("compared with a commit that is not there: %+v", done)
	}
	spec.Commands = []work.CheckCommand{{Name: "test", Command: "true"}}
	if _, done, _, err := checked(t, t.TempDir(), spec); err != nil || !done.OK {
		t.Errorf("no commands depend on changes: %+v, %v", done, err)
	}
}

package work_test

import (
	"errors"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/runner/work"
)

func TestPrepareTwice(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	dir := preparedPlace(t, o)
	if got := git(t, dir, "rev-parse", "--abbrev-ref", "HEAD"); got != "errand/1-x" {
		t.Errorf("on branch %s", got)
	}
	if got := git(t, dir, "rev-parse", "refs/remotes/origin/main"); got != o.head {
		t.Errorf("origin/main is %s", got)
	}
	script(t, dir, "echo work > new; git add new; git commit -qm Work; echo dirty > dirty; git config user.email eve@example.org; git config --add user.name Eve")
	worked := git(t, dir, "rev-parse", "HEAD")
	spec := work.PrepareSpec{
		Dir: dir, Source: work.Source{URL: o.url, Ref: "refs/heads/main"}, Branch: "errand/1-x", Base: o.head,
		UserName: "Bot", UserEmail: "bot@example.org", Config: map[string]string{"core.autocrlf": "false"},
	}
	place, err := work.Prepare(testContext(t), spec)
	if err != nil {
		t.Fatal(err)
	}
	want := work.Place{Head: worked, Tree: git(t, dir, "rev-parse", "HEAD^{tree}")}
	if diff := cmp.Diff(want, place); diff != "" {
		t.Errorf("place (-want +got):\n%s", diff)
	}
	if _, err := os.Stat(filepath.Join(dir, "dirty")); err != nil {
		t.Error(err)
	}
	for key, want := range map[string]string{"user.name": "Bot", "user.email": "bot@example.org", "core.autocrlf": "false"} {
		if got := git(t, dir, "config", "--get-all", key); got != want {
			t.Errorf("%s is %q, want %q", key, got, want)
		}
	}
}

func TestPrepareAfterACrash(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	for name, left := range map[string]string{
		"after init":       "git init -q .",
		"within init":      "git init -q . && rm -r .git/objects .git/refs && touch .git/config.lock",
		"within settings":  "git init -q . && touch .git/config.lock",
		"within check-out": "git init -q . && git fetch -q " + o.url + " && git checkout -q --detach FETCH_HEAD && rm README && touch .git/index.lock",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			script(t, dir, left)
			place, err := work.Prepare(testContext(t), work.PrepareSpec{
				Dir: dir, Source: work.Source{URL: o.url}, Branch: "b", Base: o.head,
			})
			if err != nil {
				t.Fatal(err)
			}
			if place.Head != o.head || !place.Created || git(t, dir, "status", "--porcelain") != "" {
				t.Errorf("place %+v, status %q", place, git(t, dir, "status", "--porcelain"))
			}
		})
	}
}

func TestPrepareRefuses(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	good := work.PrepareSpec{Dir: t.TempDir(), Source: work.Source{URL: o.url}, Branch: "b", Base: o.head}
	tests := map[string]struct {
		change func(*work.PrepareSpec)
		want   string
	}{
		"relative directory":    {func(s *work.PrepareSpec) { s.Dir = "x" }, "not absolute"},
		"base is a name":        {func(s *work.PrepareSpec) { s.Base = "main" }, "not a commit id"},
		"branch is an option":   {func(s *work.PrepareSpec) { s.Branch = "--orphan" }, "not a branch name"},
		"no branch":             {func(s *work.PrepareSpec) { s.Branch = "" }, "not a branch name"},
		"commit is not there":   {func(s *work.PrepareSpec) { s.Base = strings.Repeat("a", 40) }, "fetch"},
		"URL is an option":      {func(s *work.PrepareSpec) { s.URL = "--upload-pack=touch pwned" }, "fetch"},
		"URL runs a command":    {func(s *work.PrepareSpec) { s.URL = "ext::sh -c true" }, "not allowed"},
		"repository is missing": {func(s *work.PrepareSpec) { s.URL += "-not" }, "fetch"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := good
			spec.Dir = t.TempDir()
			test.change(&spec)
			_, err := work.Prepare(testContext(t), spec)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one about %q", err, test.want)
			}
		})
	}
}

func TestPrepareWithToken(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	path, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{Path: path, Args: []string{"http-backend"}, Env: []string{
		"GIT_PROJECT_ROOT=" + o.dir(), "GIT_HTTP_EXPORT_ALL=1", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*",
	}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	spec := work.PrepareSpec{
		Dir: t.TempDir(), Branch: "b", Base: o.head,
		Source: work.Source{URL: server.URL + "/.git", Token: "secret", Ref: "refs/heads/main", Depth: 1},
	}
	place, err := work.Prepare(testContext(t), spec)
	if err != nil {
		t.Fatal(err)
	}
	if place.Head != o.head {
		t.Errorf("head %s", place.Head)
	}
	config, err := os.ReadFile(filepath.Join(spec.Dir, ".git", "config"))
	if err != nil || strings.Contains(string(config), "secret") {
		t.Errorf("the token is in the configuration: %s, %v", config, err)
	}
	// A changeset of a shallow workspace.
	write(t, filepath.Join(spec.Dir, "new"), "x\n")
	set, err := work.Collect(testContext(t), work.CollectSpec{Dir: spec.Dir, Base: o.head, Message: "m"})
	if err != nil || len(set.Commits) != 1 {
		t.Errorf("changeset %+v, %v", set, err)
	}
	// The agent may redirect a fetch, but not the token with it.
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" {
			t.Error("the token went elsewhere")
		}
	}))
	t.Cleanup(thief.Close)
	git(t, spec.Dir, "config", "url."+thief.URL+".insteadOf", server.URL)
	if _, err := work.Reset(testContext(t), work.ResetSpec{Dir: spec.Dir, Source: spec.Source, Branch: "b", Head: o.head}); err == nil {
		t.Error("the fetch went where it should, so this shows nothing")
	}
	spec.Dir, spec.Token = t.TempDir(), "wrong"
	if _, err := work.Prepare(testContext(t), spec); err == nil {
		t.Error("a wrong token was enough")
	} else if strings.Contains(err.Error(), "wrong") {
		t.Errorf("the error tells the token: %v", err)
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	tests := map[string]string{
		"clean":          "true",
		"commits":        "echo x > new; git add new; git commit -qm Work",
		"dirty":          "echo x >> README; git rm -q --cached run.sh",
		"another branch": "git checkout -q -b mine; echo x > new; git add new; git commit -qm Work",
		"detached":       "git checkout -q --detach HEAD^",
		"in a rebase":    "echo mine > README; git commit -qam Mine; git checkout -q -b side HEAD^; echo theirs > README; git commit -qam Theirs; git rebase -q errand/1-x || true",
		"in a merge":     "echo mine > README; git commit -qam Mine; git checkout -q -b side HEAD^; echo theirs > README; git commit -qam Theirs; git merge -q errand/1-x || true",
	}
	for name, commands := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := preparedPlace(t, o)
			script(t, dir, "echo keep > untracked; echo keep > ignored; "+commands)
			branch := "published-" + strings.ReplaceAll(name, " ", "-")
			clone := t.TempDir()
			git(t, clone, "clone", "-q", o.url, ".")
			script(t, clone, "echo "+name+" > published; git add -A; git commit -qm Published; git push -q origin HEAD:refs/heads/"+branch)
			head := git(t, clone, "rev-parse", "HEAD")
			place, err := work.Reset(testContext(t), work.ResetSpec{
				Dir: dir, Source: work.Source{URL: o.url, Ref: "refs/heads/" + branch}, Branch: "errand/1-x", Head: head,
			})
			if err != nil {
				t.Fatal(err)
			}
			if want := (work.Place{Head: head, Tree: git(t, clone, "rev-parse", "HEAD^{tree}")}); place != want {
				t.Errorf("place %+v, want %+v", place, want)
			}
			if got := git(t, dir, "rev-parse", "--abbrev-ref", "HEAD"); got != "errand/1-x" {
				t.Errorf("on branch %s", got)
			}
			if got := git(t, dir, "status", "--porcelain"); got != "?? untracked" {
				t.Errorf("status %q", got)
			}
			if _, err := os.Stat(filepath.Join(dir, "ignored")); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestResetClean(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	dir := preparedPlace(t, o)
	script(t, dir, "echo x > untracked; mkdir d; echo x > d/e; git init -q inner; echo keep > ignored")
	_, err := work.Reset(testContext(t), work.ResetSpec{Dir: dir, Branch: "errand/1-x", Head: o.head, Clean: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := git(t, dir, "status", "--porcelain", "--ignored"); got != "!! ignored" {
		t.Errorf("status %q", got)
	}
}

func TestRebase(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	clone := t.TempDir()
	git(t, clone, "clone", "-q", o.url, ".")
	script(t, clone, "echo theirs > README; echo t > theirs; git add -A; git commit -qm Theirs; git push -q origin HEAD:refs/heads/moved")
	onto := git(t, clone, "rev-parse", "HEAD")
	tests := map[string]struct {
		script    string
		ok        bool
		subjects  string
		conflicts []string
		notes     int
	}{
		"nothing of errand's": {script: "true", ok: true},
		"moves over": {
			script: "echo x > new; git add new; git commit -qm One; git commit -q --allow-empty -m Empty; echo y > new; git commit -qam Two",
			ok:     true, subjects: "One\nEmpty\nTwo",
		},
		"conflict": {
			script: "echo x > new; git add new; git commit -qm One; echo mine > README; git commit -qam Two",
			ok:     false, conflicts: []string{"README"},
		},
		"the same was done": {
			script: "echo theirs > README; echo t > theirs; git add -A; git commit -qm Mine", ok: true, subjects: "Mine",
		},
		"with a merge": {
			script: `git checkout -q -b side; echo s > s; git add s; git commit -qm Side; git checkout -q errand/1-x
				echo x > new; git add new; git commit -qm One; git merge -q --no-edit side`,
			ok: true, subjects: "Work", notes: 1,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := preparedPlace(t, o)
			script(t, dir, test.script+"; echo keep > untracked")
			before := git(t, dir, "rev-parse", "HEAD")
			got, err := work.Rebase(testContext(t), work.RebaseSpec{
				Dir: dir, Source: work.Source{URL: o.url, Ref: "refs/heads/moved"}, Base: o.head, Onto: onto, Message: "Work",
			})
			if err != nil {
				t.Fatal(err)
			}
			if got.OK != test.ok || len(got.Notes) != test.notes {
				t.Errorf("answer %+v", got)
			}
			if diff := cmp.Diff(test.conflicts, got.Conflicts); diff != "" {
				t.Errorf("conflicts (-want +got):\n%s", diff)
			}
			if head := git(t, dir, "rev-parse", "HEAD"); head != got.Head || !test.ok && head != before {
				t.Errorf("head %s, answered %s, before %s", head, got.Head, before)
			}
			if test.ok {
				subjects, _, _ := strings.Cut(git(t, dir, "log", "--reverse", "--format=%s", onto+"..HEAD"), "\n\n")
				if diff := cmp.Diff(test.subjects, subjects); diff != "" {
					t.Errorf("subjects (-want +got):\n%s", diff)
				}
			}
			if got := git(t, dir, "status", "--porcelain"); got != "?? untracked" {
				t.Errorf("status %q", got)
			}
			if branch := git(t, dir, "rev-parse", "--abbrev-ref", "HEAD"); branch != "errand/1-x" {
				t.Errorf("on %s", branch)
			}
		})
	}
}

// An agent may take the workspace's identity away, and the host may have none to offer.
func TestRebaseCommitsAsErrand(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	clone := t.TempDir()
	git(t, clone, "clone", "-q", o.url, ".")
	script(t, clone, "echo t > theirs; git add -A; git commit -qm Theirs; git push -q origin HEAD:refs/heads/moved")
	dir := preparedPlace(t, o)
	script(t, dir, "echo x > new; git add new; git commit -qm One; git config --unset user.name; git config --unset user.email")
	got, err := work.Rebase(testContext(t), work.RebaseSpec{
		Dir: dir, Source: work.Source{URL: o.url, Ref: "refs/heads/moved"}, Base: o.head, Onto: git(t, clone, "rev-parse", "HEAD"), Message: "Work",
	})
	if err != nil || !got.OK {
		t.Fatalf("%+v, %v", got, err)
	}
	if who := git(t, dir, "log", "-1", "--format=%an <%ae>, %cn <%ce>"); who != "a <a@example.org>, errand <errand@localhost>" {
		t.Errorf("author and committer: %s", who)
	}
}

func TestRebaseRefusesADirtyTree(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	dir := preparedPlace(t, o)
	script(t, dir, "echo x >> README")
	_, err := work.Rebase(testContext(t), work.RebaseSpec{Dir: dir, Base: o.head, Onto: o.head})
	if !errors.Is(err, work.ErrDirty) {
		t.Errorf("error %v", err)
	}
}

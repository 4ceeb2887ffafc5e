package work_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/runner/work"
)

// preparedPlace makes a workspace on the origin's head.
func preparedPlace(t *testing.T, o origin) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "work")
	_, err := work.Prepare(testContext(t), work.PrepareSpec{
		Dir: dir, Source: work.Source{URL: o.url, Ref: "refs/heads/main"}, Branch: "errand/1-x", Base: o.head,
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// published applies a changeset with plumbing to a repository that knows only the base, as the
// publisher does with GitHub's, and checks every tree. It returns the published head.
func published(t *testing.T, o origin, set *changeset.Changeset) string {
	t.Helper()
	dir := t.TempDir()
	git(t, dir, "clone", "-q", "--bare", o.url, ".")
	ids := map[string]string{set.Base: set.Base}
	for _, content := range set.Blobs {
		run(t, dir, gitEnv(), content, "git", "hash-object", "-w", "--stdin")
	}
	head := set.Base
	for i, commit := range set.Commits {
		env := gitEnv("GIT_INDEX_FILE=" + filepath.Join(dir, fmt.Sprintf("index-%d", i)))
		run(t, dir, env, nil, "git", "read-tree", head)
		var removed, added bytes.Buffer
		for _, c := range commit.Changes {
			fmt.Fprintf(&removed, "0 %040d\t%s\x00", 0, c.Path)
			if !c.Deleted() {
				fmt.Fprintf(&added, "%s %s\t%s\x00", c.Mode, c.Blob, c.Path)
			}
		}
		run(t, dir, env, append(removed.Bytes(), added.Bytes()...), "git", "update-index", "-z", "--index-info")
		tree := run(t, dir, env, nil, "git", "write-tree")
		if tree != commit.Tree {
			t.Errorf("commit %d %q: tree %s, on the VM %s", i, commit.Message, tree, commit.Tree)
		}
		args := []string{"commit-tree", tree, "-p", head}
		for _, parent := range commit.Parents[1:] {
			args = append(args, "-p", parent)
		}
		head = run(t, dir, gitEnv(), []byte(commit.Message), "git", append(args, "-F", "-")...)
		ids[commit.ID] = head
	}
	return git(t, dir, "rev-parse", head+"^{tree}")
}

func changes(set *changeset.Changeset) []string {
	all := []string{}
	for _, commit := range set.Commits {
		all = append(all, "= "+strings.TrimSpace(commit.Message))
		for _, c := range commit.Changes {
			all = append(all, fmt.Sprintf("%s>%s %s", c.OldMode, c.Mode, c.Path))
		}
	}
	return all
}

// collections are possible actions of an agent, and the expected changesets.
var collections = map[string]struct {
	script string
	want   []string
	notes  []string
}{
	"nothing": {script: "true", want: []string{}},
	"two commits": {
		script: "echo x > new; git add new; git commit -qm One; echo y >> new; git commit -qam Two",
		want:   []string{"= One", ">100644 new", "= Two", "100644>100644 new"},
	},
	"empty commit": {
		script: "git commit -q --allow-empty -m Nothing", want: []string{"= Nothing"},
	},
	"there and back": {
		script: "echo x > new; git add new; git commit -qm One; git rm -q new; git commit -qm Two",
		want:   []string{"= One", ">100644 new", "= Two", "100644> new"},
	},
	"dirty tree": {
		script: "echo x > new; mkdir -p n/m; echo y > n/m/o; echo z >> README; rm run.sh; echo i > ignored; echo i > a.log",
		want:   []string{"= Left over", "100644>100644 README", ">100644 n/m/o", ">100644 new", "100755> run.sh"},
	},
	"staged and dirty after a commit": {
		script: "echo x > new; git add new; git commit -qm One; echo y > staged; git add staged; echo z > new",
		want:   []string{"= One", ">100644 new", "= Left over", "100644>100644 new", ">100644 staged"},
	},
	"modes": {
		script: "chmod +x README; chmod -x run.sh; git commit -qam Modes",
		want:   []string{"= Modes", "100644>100755 README", "100755>100644 run.sh"},
	},
	"symlinks": {
		script: "ln -sfn dir link; ln -s ../outside out; rm README; ln -s run.sh README; git add -A; git commit -qm Links",
		want:   []string{"= Links", "100644>120000 README", "120000>120000 link", ">120000 out"},
	},
	"binary and large": {
		script: "head -c 3000000 /dev/urandom > big; printf '\\0\\1\\2' > binary; git add -A; git commit -qm Binary",
		want:   []string{"= Binary", ">100644 big", "100644>100644 binary"},
	},
	"rename": {
		script: "git mv dir/deep/numbers counted; git commit -qm Rename",
		want:   []string{"= Rename", ">100644 counted", "100644> dir/deep/numbers"},
	},
	"file becomes directory and back": {
		script: "git rm -q README; mkdir README; echo r > README/x; git rm -rq dir; echo d > dir; git add -A; git commit -qm Swap",
		want: []string{"= Swap", "100644> README", ">100644 README/x", ">100644 dir",
			"100644> dir/deep/numbers", "100644> dir/other"},
	},
	"names": {
		script: "echo 1 >> 'a name with spaces'; echo 2 >> 'ünïcödé'; echo 3 > '-dash'; echo 4 > 'quo\"te'; echo 5 > ':colon'; git add -A; git commit -qm Names",
		want: []string{"= Names", ">100644 -dash", ">100644 :colon", "100644>100644 a name with spaces",
			">100644 quo\"te", "100644>100644 ünïcödé"},
	},
	"same content twice": {
		script: "echo same > p; echo same > q; git add -A; git commit -qm Same",
		want:   []string{"= Same", ">100644 p", ">100644 q"},
	},
	"submodule": {
		script: "git update-index --add --cacheinfo 160000,1111111111111111111111111111111111111111,sub; git commit -qm Sub; mkdir sub",
		want:   []string{"= Sub", ">160000 sub"},
	},
	"a clone within the workspace": {
		script: "git init -q inner; (cd inner; echo i > i; git add i; git commit -qm Inner); echo x > new",
		want:   []string{"= Left over", ">100644 new"},
		notes:  []string{"inner is a separate repository and was left out."},
	},
	"detached HEAD": {
		script: "git checkout -q --detach; echo x > new; git add new; git commit -qm One",
		want:   []string{"= One", ">100644 new"},
	},
	"another branch": {
		script: "git checkout -q -b mine; echo x > new; git add new; git commit -qm One",
		want:   []string{"= One", ">100644 new"},
	},
	"amended": {
		script: "echo x >> README; git commit -q --amend -am 'Second, better'",
		want:   []string{"= Second, better", "100644>100644 README"},
		notes:  []string{"All changes became one commit, because the history was rewritten."},
	},
	"rewritten with several commits": {
		script: "git reset -q --hard HEAD^; echo x > new; git add new; git commit -qm One; echo y > more; git add more; git commit -qm Two",
		want:   []string{"= Left over\n\n- One\n- Two", "100644>100644 README", ">100644 more", ">100644 new"},
		notes:  []string{"All changes became one commit, because the history was rewritten."},
	},
	"rewritten to nothing": {
		script: "git commit -q --amend -m 'Second, other words'", want: []string{},
		notes: []string{"No file differs from the known head, but the history was rewritten; its commits are dropped."},
	},
	"orphan": {
		script: "git checkout -q --orphan fresh; echo x > new; git add new; git commit -qm All",
		want:   []string{"= All", ">100644 new"},
		notes:  []string{"All changes became one commit, because the history was rewritten."},
	},
	"foreign merge": {
		script: `git checkout -q -b side HEAD^; echo s > side; git add side; git commit -qm Side
			git checkout -q errand/1-x; git merge -q --no-edit side; echo x > new; git add new; git commit -qm One`,
		want:  []string{"= Left over\n\n- Merge branch 'side' into errand/1-x\n- One", ">100644 new", ">100644 side"},
		notes: []string{"All changes became one commit, because it merged commits from elsewhere."},
	},
	"message not UTF-8": {
		script: "echo x > new; git add new; printf 'caf\\351\\n' | git -c i18n.commitEncoding=ISO-8859-1 commit -q -F -",
		want:   []string{"= caf\uFFFD", ">100644 new"},
	},
	"a rebase stopped by a conflict": {
		script: `echo mine > README; git commit -qam Mine; git checkout -q -b side HEAD^; echo theirs > README; git commit -qam Theirs
			git checkout -q errand/1-x; git rebase -q side || true`,
		want:  []string{"= Mine", "100644>100644 README"},
		notes: []string{"An unfinished rebase was aborted."},
	},
	"a merge stopped by a conflict": {
		script: `echo mine > README; git commit -qam Mine; git checkout -q -b side HEAD^; echo theirs > README; git commit -qam Theirs
			git checkout -q errand/1-x; git merge side || true`,
		want:  []string{"= Mine", "100644>100644 README"},
		notes: []string{"An unfinished merge was aborted."},
	},
	"a cherry-pick stopped by a conflict": {
		script: `echo mine > README; git commit -qam Mine; git checkout -q -b side HEAD^; echo theirs > README; git commit -qam Theirs
			git checkout -q errand/1-x; git cherry-pick side || true`,
		want:  []string{"= Mine", "100644>100644 README"},
		notes: []string{"An unfinished cherry-pick was aborted."},
	},
	"a killed git has left its lock": {
		script: "echo x > new; touch .git/index.lock .git/HEAD.lock .git/refs/heads/errand/1-x.lock", want: []string{"= Left over", ">100644 new"},
	},
	"hooks and settings of the agent": {
		script: `printf '#!/bin/sh\nexit 1\n' > .git/hooks-x; mkdir -p .git/hooks; cp .git/hooks-x .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit
			git config commit.gpgSign true; git config core.fsmonitor 'touch pwned; false'; git config core.quotePath true
			git config diff.noprefix true; git config diff.renames copies; git config status.showUntrackedFiles no; echo x > new`,
		want: []string{"= Left over", ">100644 new"},
	},
	"replaced objects": {
		script: `echo x > new; git add new; git commit -qm One; echo bad > new; git commit -qam Bad
			git replace HEAD~1 HEAD; git reset -q --hard HEAD~1`,
		want: []string{"= One", ">100644 new", "= Left over", "100644>100644 new"},
	},
}

func TestCollect(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	for name, test := range collections {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := preparedPlace(t, o)
			script(t, dir, test.script)
			spec := work.CollectSpec{Dir: dir, Base: o.head, Message: "Left over\n"}
			set, err := work.Collect(testContext(t), spec)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, changes(set)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.notes, set.Notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			tree := published(t, o, set)
			if want := run(t, dir, gitEnv("GIT_NO_REPLACE_OBJECTS=1"), nil, "git", "rev-parse", "HEAD^{tree}"); tree != want {
				t.Errorf("published tree %s, HEAD's %s", tree, want)
			}
			again, err := work.Collect(testContext(t), spec)
			if err != nil {
				t.Fatal(err)
			}
			again.Notes, set.Notes = nil, nil
			if !sameJSON(t, set, again) {
				t.Error("collected again it is another changeset")
			}
		})
	}
}

func sameJSON(t *testing.T, a, b any) bool {
	t.Helper()
	one, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	other, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(one, other)
}

func TestCollectAllowedMerge(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	dir := preparedPlace(t, o)
	script(t, o.dir(), "echo base > from-base; git add -A; git commit -qm 'On the base'")
	moved := git(t, o.dir(), "rev-parse", "HEAD")
	script(t, dir, `echo x > new; git add new; git commit -qm One; git fetch -q origin main; git merge -q --no-edit `+moved+`; echo y > new; git commit -qam Two`)
	spec := work.CollectSpec{Dir: dir, Base: o.head, Message: "m", AllowMerge: []string{moved}}
	set, err := work.Collect(testContext(t), spec)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"= One", ">100644 new", "= Merge commit '" + moved + "' into errand/1-x", ">100644 from-base", "= Two", "100644>100644 new"}
	if diff := cmp.Diff(want, changes(set)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{set.Commits[0].ID, moved}, set.Commits[1].Parents); diff != "" {
		t.Errorf("parents of the merge (-want +got):\n%s", diff)
	}
	if tree := published(t, o, set); tree != git(t, dir, "rev-parse", "HEAD^{tree}") {
		t.Error("the published tree is another")
	}
	t.Run("not committed yet", func(t *testing.T) {
		script(t, dir, "git reset -q --hard HEAD~2; git merge -q --no-commit --no-ff "+moved)
		set, err := work.Collect(testContext(t), spec)
		if err != nil {
			t.Fatal(err)
		}
		if len(set.Commits) != 2 || len(set.Commits[1].Parents) != 2 {
			t.Errorf("commits %+v", set.Commits)
		}
	})
}

func TestCollectRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		script string
		base   string
		want   string
	}{
		"base is no id":      {"true", "HEAD", "not a commit id"},
		"base is not there":  {"true", strings.Repeat("a", 40), "not in the workspace"},
		"path not UTF-8":     {`printf x > "$(printf 'caf\351')"`, "", "not UTF-8"},
		"path with line end": {"printf x > 'two\nlines'", "", "control character"},
		"too much committed content": {
			"for i in 1 2 3; do head -c 25000000 /dev/zero > big$i; echo $i >> big$i; done; echo s > small; git add -A; git commit -qm Big", "",
			"the largest are big1 (23.8 MiB), big2 (23.8 MiB), big3 (23.8 MiB), small (0.0 MiB)",
		},
		"too much content": {
			"for i in 1 2 3; do head -c 25000000 /dev/zero > big$i; echo $i >> big$i; done; echo s > small", "",
			"the largest are big1 (23.8 MiB), big2 (23.8 MiB), big3 (23.8 MiB), small (0.0 MiB)",
		},
	}
	o := newOrigin(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := preparedPlace(t, o)
			script(t, dir, test.script)
			base := test.base
			if base == "" {
				base = o.head
			}
			_, err := work.Collect(testContext(t), work.CollectSpec{Dir: dir, Base: base})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one about %q", err, test.want)
			}
			if large := errors.Is(err, changeset.ErrTooLarge); large != strings.HasPrefix(name, "too much") {
				t.Errorf("is it too large? %v", large)
			}
		})
	}
}

func TestCollectSquashesLongChains(t *testing.T) {
	t.Parallel()
	o := newOrigin(t)
	dir := preparedPlace(t, o)
	script(t, dir, "i=0; while [ $i -lt 201 ]; do git commit -q --allow-empty -m c$i; i=$((i+1)); done; echo x > new")
	set, err := work.Collect(testContext(t), work.CollectSpec{Dir: dir, Base: o.head, Message: "All of it\n"})
	if err != nil {
		t.Fatal(err)
	}
	if len(set.Commits) != 1 || !strings.Contains(set.Notes[0], "more than 200 commits") {
		t.Errorf("%d commits, notes %q", len(set.Commits), set.Notes)
	}
}

package pack_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/runner/pack"
)

// TestRoundTrip brings every kind of change to another VM: it then looks as the first one did, also
// when it is unpacked twice.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"nothing":         ``,
		"commits":         `echo 1 > new; git add new; git commit -qm One; git rm -q gone; git mv dir/other dir/moved; git commit -qm Two`,
		"changed":         `echo changed >> README; printf 'x\0y' > binary; echo changed > 'ünïcödé'`,
		"deleted":         `rm gone; rm -r dir`,
		"untracked":       `mkdir -p a/b; echo 1 > a/b/c; echo 2 > "$(printf 'new\nline')"; echo 3 > "$(printf 'not\377utf8')"; touch empty`,
		"modes":           `chmod -x run.sh; chmod +x README; echo x > tool; chmod +x tool`,
		"links":           `ln -sf dir/other link; ln -s /etc/passwd outside; ln -s nowhere broken`,
		"staged":          `echo staged > README; git add README; git rm -q gone; echo n > n; git add n`,
		"staged and more": `echo staged > README; git add README; echo more >> README; echo n > n; git add n; rm n`,
		"staged, undone":  `echo staged > README; git add README; git show HEAD:README > README; git rm -q --cached kept`,
		"file to folder":  `rm README; mkdir README; echo 1 > README/a; rm link; mkdir link; echo 2 > link/b; git add README`,
		"folder to file":  `rm -r dir; echo file > dir`,
		"folder to link":  `rm -r dir; ln -s /tmp dir`,
		"stashes":         `echo 1 > README; git stash push -q -m 'first one'; echo 2 > kept; echo u > u; git stash push -q -u`,
		"branches":        `git branch other; git checkout -q -b third; echo 3 > 3; git add 3; git commit -qm 3; git tag light; git tag -a -m x heavy; git checkout -q errand/1-x`,
		"detached":        `git checkout -q --detach; echo 1 > 1; git add 1; git commit -qm D`,
		"other branch":    `git checkout -q -b elsewhere; echo 1 > 1; git add 1; git commit -qm E; echo 2 > 2`,
		"rewritten":       `git commit -q --amend -m Amended; echo more >> kept; git commit -qam More`,
		"unrelated":       `git checkout -q --orphan new; git rm -rqf .; echo 1 > only; git add only; git commit -qm Orphan`,
		"merge conflict":  `git checkout -q -b side; echo side > kept; git commit -qam S; git checkout -q errand/1-x; echo ours > kept; git commit -qam O; git merge -q side || true`,
		"stopped rebase":  `echo ours > kept; git commit -qam O; git checkout -q -b side HEAD~1; echo side > kept; git commit -qam S; echo 2 > 2; git add 2; git commit -qm S2; git rebase -q errand/1-x 2>/dev/null || true`,
		"cherry-pick":     `git checkout -q -b side; echo side > kept; git commit -qam S; git checkout -q errand/1-x; echo ours > kept; git commit -qam O; git cherry-pick side 2>/dev/null || true`,
		"flags":           `git update-index --assume-unchanged kept; echo secretly > kept`,
		"touched only":    `touch README kept dir/other`,
		"everything":      `echo 1 > 1; git add 1; git commit -qm 1; echo 2 > 2; git stash -q -u; echo s > s; git add s; rm gone; echo w >> README; mkdir deep; echo u > deep/u`,
	}
	w := newWorld(t)
	for name, commands := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			before, after := w.vm(t), w.vm(t)
			sh(t, before.dir, commands)
			stream, m := packed(t, w.spec(before))
			want := observableState(t, before, false)
			if name == "flags" { // the flag itself is not carried
				want = strings.Replace(want, "# branch.head errand/1-x\n", "# branch.head errand/1-x\n1 .M N... 100644 100644 100644 "+sh(t, before.dir, "git rev-parse HEAD:kept HEAD:kept | paste -sd' '")+" kept\n", 1)
			}
			for _, round := range []string{"first", "second"} {
				got := unpacked(t, after, nil, stream)
				if diff := cmp.Diff(m, got); diff != "" {
					t.Errorf("%s manifest (-packed +unpacked):\n%s", round, diff)
				}
				if diff := cmp.Diff(want, observableState(t, after, false)); diff != "" {
					t.Errorf("%s unpacking (-packed +unpacked):\n%s", round, diff)
				}
			}
			if name == "nothing" && m.Entries() != 0 || name == "touched only" && m.Paths != 0 {
				t.Errorf("%d entries, %d paths of an unchanged checkout", m.Entries(), m.Paths)
			}
			if left := sh(t, after.dir, "ls -A .git | grep errand || true"); left != "" {
				t.Errorf("left in the repository: %s", left)
			}
		})
	}
}

// TestUnfinishedGitOperationContinues continues an unfinished git operation of the first VM on the second one.
func TestUnfinishedGitOperationContinues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before, after := w.vm(t), w.vm(t)
	sh(t, before.dir, `echo ours > kept; git commit -qam O; git checkout -q -b side HEAD~1; echo side > kept; git commit -qam S
		echo 2 > 2; git add 2; git commit -qm S2; git rebase -q errand/1-x 2>/dev/null || true; git stash list`)
	stream, _ := packed(t, w.spec(before))
	unpacked(t, after, nil, stream)
	got := sh(t, after.dir, `echo both > kept; git add kept; GIT_EDITOR=true git rebase --continue >/dev/null 2>&1; git log --format=%s; cat kept 2; git status -sb`)
	if want := "S2\nS\nO\nSecond\nFirst\nboth\n2\n## side"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before, after := w.vm(t), w.vm(t)
	slug := func(v vm) string { return strings.NewReplacer("/", "-", ".", "-", "_", "-").Replace(v.dir) }
	sh(t, before.home, `mkdir -p .claude/projects/`+slug(before)+`/s1/tool-results .claude/projects/-elsewhere .codex/sessions/2026/11/21 .ssh .cache/x
		echo one > .claude/projects/`+slug(before)+`/s1.jsonl; echo spilled > .claude/projects/`+slug(before)+`/s1/tool-results/1
		echo e > .claude/projects/-elsewhere/e.jsonl; echo c > .codex/sessions/2026/11/21/rollout-1.jsonl
		echo secret | tee .claude/.credentials.json .codex/auth.json .ssh/id .netrc > .cache/x/y
		ln -s ../../.ssh/id .claude/projects/stolen.jsonl; mkfifo .claude/projects/pipe.jsonl`)
	stream, m := packed(t, w.spec(before))
	if m.Sessions() != 4 || len(m.Left) != 2 {
		t.Errorf("%d files of sessions; left out %+v", m.Sessions(), m.Left)
	}
	for range 2 {
		unpacked(t, after, nil, stream)
	}
	want := map[string]string{
		".claude/projects/" + slug(after) + "/s1.jsonl":          "one\n",
		".claude/projects/" + slug(after) + "/s1/tool-results/1": "spilled\n",
		".claude/projects/-elsewhere/e.jsonl":                    "e\n",
		".codex/sessions/2026/11/21/rollout-1.jsonl":             "c\n",
	}
	got := map[string]string{}
	for _, name := range strings.Fields(sh(t, after.home, "find . -path ./work -prune -o -path ./.work.lock -o -type f -printf '%P\n'")) {
		data, err := os.ReadFile(filepath.Join(after.home, name))
		if err != nil {
			t.Fatal(err)
		}
		got[name] = string(data)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("home (-want +got):\n%s", diff)
	}
	if exists(filepath.Join(after.home, ".claude/projects", slug(before))) {
		t.Error("an empty folder of the old name is left")
	}
	// One session only, as an adapter lists it.
	spec := w.spec(before)
	spec.Sessions = []string{".claude/projects/" + slug(before) + "/s1.jsonl", ".claude/projects/" + slug(before) + "/s1", ".claude/projects/none.jsonl"}
	if _, m = packed(t, spec); m.Sessions() != 2 {
		t.Errorf("%d files of one session", m.Sessions())
	}
}

func TestKeptFoldersArePackedUpToALimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before, after := w.vm(t), w.vm(t)
	sh(t, before.home, `mkdir -p work/node_modules/.bin work/node_modules/p/.git .m2/repository/x go/pkg/mod/a big
		echo j > work/node_modules/p/index.js; ln -s ../p/index.js work/node_modules/.bin/p; echo h > work/node_modules/p/.git/HEAD
		echo jar > .m2/repository/x/a.jar; touch -d '2020-02-03 04:05:06.789' .m2/repository/x/a.jar; echo ro > go/pkg/mod/a/f; chmod 0444 go/pkg/mod/a/f; chmod 0555 go/pkg/mod/a
		head -c 3000000 /dev/zero > big/zero; echo one > .onefile; ln -s .m2 linked`)
	t.Cleanup(func() { // else the folders cannot be removed
		_ = exec.Command("chmod", "-R", "u+w", before.home, after.home).Run()
	})
	spec := w.spec(before)
	spec.Keep = []string{"node_modules", "~/.m2/repository", "~/big", "~/go/pkg/mod", "~/none", "~/.onefile", "~/linked/repository", "~/go/pkg/mod"}
	spec.KeepLimit = 1 << 20
	stream, m := packed(t, spec)
	if diff := cmp.Diff([]string{"node_modules", "~/.m2/repository", "~/go/pkg/mod", "~/.onefile"}, m.Keep); diff != "" {
		t.Errorf("kept (-want +got):\n%s", diff)
	}
	if len(m.Left) != 2 || m.Left[0].Path != "~/big" || m.Left[0].Bytes != 3000000 || m.Left[1].Path != "~/linked/repository" {
		t.Errorf("left out: %+v", m.Left)
	}
	sh(t, after.home, "mkdir -p work/node_modules/old .m2/repository/y; echo old > .m2/repository/y/z")
	for range 2 {
		got := unpacked(t, after, []string{"node_modules", "~/.m2/repository", "~/go/pkg/mod"}, stream)
		if got.Left[len(got.Left)-1].Path != "~/.onefile" {
			t.Errorf("left out: %+v", got.Left)
		}
	}
	look := `find work/node_modules .m2 go -printf '%p %M %l\n' | sort; cat work/node_modules/.bin/p; stat -c %y .m2/repository/x/a.jar`
	if diff := cmp.Diff(sh(t, before.home, look), sh(t, after.home, look)); diff != "" {
		t.Errorf("caches (-packed +unpacked):\n%s", diff)
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.vm(t)
	sh(t, v.dir, "truncate -s 5T giant; truncate -s 3M large; echo small > small")
	spec := w.spec(v)
	_, err := pack.Pack(testContext(t), spec, &bytes.Buffer{})
	if !errors.Is(err, pack.ErrTooLarge) || !strings.Contains(err.Error(), "giant (5242880.0 MiB), large (3.0 MiB)") {
		t.Errorf("error %v", err)
	}
	sh(t, v.dir, "rm giant; head -c 3000000 /dev/urandom > large; git add large; git commit -qm Large; git rm -q large; git commit -qm Not")
	spec.Limit = 1 << 20
	_, err = pack.Pack(testContext(t), spec, &bytes.Buffer{})
	if !errors.Is(err, pack.ErrTooLarge) || !strings.Contains(err.Error(), "commits, of which the largest files are large (2.9 MiB)") {
		t.Errorf("error %v", err)
	}
}

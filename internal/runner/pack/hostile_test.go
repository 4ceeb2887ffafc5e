package pack_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/runner/pack"
	"github.com/errand-bot/errand/internal/runner/work"
)

// TestRunsNothing packs a checkout whose every setting names a program, and unpacks it.
func TestRunsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before, after := w.vm(t), w.vm(t)
	mark := filepath.Join(t.TempDir(), "ran")
	evil := filepath.Join(t.TempDir(), "evil")
	if err := os.WriteFile(evil, []byte("#!/bin/sh\necho \"$0 $*\" >> "+mark+"\ncat\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	sh(t, before.dir, `evil=`+evil+`
		echo n > new; echo changed > README; touch kept; echo s > staged; git add staged
		for f in e 'a=b' 'dots.and spaces'; do
			git config "filter.$f.clean" "$evil clean"; git config "filter.$f.smudge" "$evil smudge"; git config "filter.$f.process" "$evil process"; git config "filter.$f.required" true
		done
		printf '* filter=e diff=e merge=e\nkept filter=a=b\n' > .gitattributes; mkdir -p .git/info; cp .gitattributes .git/info/attributes
		for key in core.fsmonitor core.pager core.editor core.sshCommand core.askPass core.gitProxy core.alternateRefsCommand diff.external diff.e.textconv diff.e.command \
			merge.e.driver credential.helper gpg.program gpg.ssh.program sequence.editor uploadpack.packObjectsHook interactive.diffFilter alias.ls-files alias.pack-objects; do
			git config $key "$evil $key"; done
		git config core.worktree /etc; git config core.hooksPath .githooks; git config commit.gpgSign true; git config log.showSignature true; git config core.untrackedCache true
		mkdir -p .githooks .git/hooks; for h in post-index-change reference-transaction pre-commit post-checkout pre-auto-gc pre-push post-rewrite post-merge fsmonitor-watchman; do
			cp $evil .githooks/$h; cp $evil .git/hooks/$h; done
		git config extensions.partialClone evil; git config remote.evil.promisor true; git config remote.evil.url 'ext::`+evil+`'; git config remote.evil.uploadpack $evil`)
	stream, m := packed(t, w.spec(before))
	if said, err := os.ReadFile(mark); err == nil {
		t.Fatalf("packing ran:\n%s", said)
	}
	// The bytes of files are unchanged: no filter was applied.
	unpacked(t, after, nil, stream)
	if said, err := os.ReadFile(mark); err == nil {
		t.Fatalf("unpacking ran:\n%s", said)
	}
	if got := sh(t, after.dir, "cat README new staged; git config --get-regexp 'filter|evil' || true; ls .git/hooks 2>/dev/null || true"); got != "changed\nn\ns" {
		t.Errorf("after unpacking: %q", got)
	}
	if m.Paths < 5 {
		t.Errorf("only %d paths: was git led elsewhere?", m.Paths)
	}
	// Would the evil have worked at all?
	if _ = sh(t, before.dir, "git --work-tree=. add README 2>/dev/null || true"); !exists(mark) {
		t.Error("the trap does not spring by itself: this test tests nothing")
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// TestStrangeFiles packs special files without blocking and without reading elsewhere.
func TestStrangeFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before, after := w.vm(t), w.vm(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("TOP SECRET"), 0o600); err != nil {
		t.Fatal(err)
	}
	sh(t, before.dir, `rm .gitignore kept gone; mkfifo .gitignore dir/.gitattributes kept pipe dir/deep/pipe
		mkdir ignored; mkfifo ignored/.gitignore
		rm -r dir/deep; ln -s /etc dir/deep; rm dir/other; ln -s `+secret+` dir/other; ln -s `+secret+` new; ln -s .git inside
		git init -q nested; echo n > nested/file; git -C nested config core.fsmonitor 'touch `+secret+`.ran'
		ln -s ../.. up; mkdir sub; ln -s `+filepath.Dir(secret)+` sub/out`)
	listener, err := net.Listen("unix", filepath.Join(before.dir, "socket"))
	if err != nil {
		t.Skip(err) // the path is too long here
	}
	defer listener.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var out bytes.Buffer
	m, err := pack.Pack(ctx, w.spec(before), &out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{".gitignore", "dir/.gitattributes", "kept", "pipe", "socket", "nested"} {
		if !slices.ContainsFunc(m.Left, func(l pack.Left) bool { return l.Path == want }) {
			// Git itself does not list pipes and sockets.
			if want != "pipe" && want != "socket" {
				t.Errorf("%s is not said to be left out: %+v", want, m.Left)
			}
		}
	}
	unpacked(t, after, nil, out.Bytes())
	if got := sh(t, after.dir, `readlink dir/deep dir/other new inside up sub/out; ls nested kept gone .gitignore 2>/dev/null || true`); got !=
		strings.Join([]string{"/etc", secret, secret, ".git", "../..", filepath.Dir(secret)}, "\n") {
		t.Errorf("after unpacking: %s", got)
	}
	if exists(secret + ".ran") {
		t.Error("the nested repository's configuration was used")
	}
}

// TestNoRepository refuses checkouts whose repository is not their own, in a bounded time.
func TestNoRepository(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		commands string
		want     error
		words    string
	}{
		"gone":              {"rm -r .git", work.ErrNoRepository, ""},
		"elsewhere":         {"mv .git ../real; echo gitdir: ../real > .git", work.ErrNoRepository, ""},
		"a link":            {"mv .git ../real; ln -s ../real .git", work.ErrNoRepository, ""},
		"a pipe in it":      {"rm .git/config; mkfifo .git/config", nil, "tampered"},
		"a link to a pipe":  {"mkfifo pipe; ln -sf ../pipe .git/index", nil, "tampered"},
		"a device in it":    {"ln -sf /dev/zero .git/packed-refs", nil, "tampered"},
		"garbage for index": {"head -c 5000 /dev/urandom > .git/index", nil, "index"},
		"no commit":         {"git checkout -q --orphan x; git branch -D errand/1-x; rm -r .git/refs/heads .git/logs; mkdir .git/refs/heads", nil, "HEAD"},
		"objects are gone":  {"echo 1 > new; git add new; git commit -qm 1; rm -f .git/objects/$(git rev-parse HEAD:new | sed 's|..|&/|')", nil, "pack objects"},
		"another base":      {"git checkout -q --orphan x; git commit -qm x; git update-ref -d refs/heads/errand/1-x; git update-ref -d refs/remotes/origin/main; rm -r .git/logs; git reflog expire --expire=all --all; git gc -q --prune=now", pack.ErrNoBase, ""},
	}
	w := newWorld(t)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := w.vm(t)
			sh(t, v.dir, test.commands)
			var out bytes.Buffer
			_, err := pack.Pack(testContext(t), w.spec(v), &out)
			if err == nil || test.want != nil && !errors.Is(err, test.want) || !strings.Contains(err.Error(), test.words) {
				t.Errorf("error %v, want %v %q", err, test.want, test.words)
			}
			if m, err := pack.Verify(&out, 0); err == nil {
				t.Errorf("what was written looks whole: %+v", m)
			}
		})
	}
}

func TestSpecRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.vm(t)
	tests := map[string]func(*pack.Spec){
		"relative directory": func(s *pack.Spec) { s.Dir = "work" },
		"relative home":      func(s *pack.Spec) { s.Home = "home" },
		"no home":            func(s *pack.Spec) { s.Home = "/nonexistent/home" },
		"base is a name":     func(s *pack.Spec) { s.Base = "main" },
		"sessions elsewhere": func(s *pack.Spec) { s.Sessions = []string{".ssh"} },
		"sessions climb":     func(s *pack.Spec) { s.Sessions = []string{".claude/projects/../../.ssh"} },
		"credentials":        func(s *pack.Spec) { s.Sessions = []string{".claude/.credentials.json"} },
		"keeps keys":         func(s *pack.Spec) { s.Keep = []string{"~/.ssh"} },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := w.spec(v)
			change(&spec)
			if _, err := pack.Pack(testContext(t), spec, &bytes.Buffer{}); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestCheckKeep(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"node_modules", "a/b", "~/.m2/repository", "~/.cache/go-build", "~/go/pkg/mod", ".gradle", "x..y"} {
		if err := pack.CheckKeep(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", ".", "~", "~/", "~/.", "/etc", "../x", "a/../b", "a//b", "a/", ".git", ".git/objects", ".GIT", "~/.ssh", "~/.ssh/id", "~/.errand/bin", "~/.claude", "~/../x", "~//etc", "a\nb", "a\x00", strings.Repeat("x", 2000)} {
		if err := pack.CheckKeep(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

package publish_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/changeset"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/forgetest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// checkout is a clone on a VM, created with git.
type checkout struct {
	t    *testing.T
	dir  string
	base string
}

func clone(t *testing.T, w *forgetest.World) *checkout {
	t.Helper()
	c := &checkout{t: t, dir: filepath.Join(t.TempDir(), "clone")}
	r := forgetest.Must(w.As("octo").Repo(forgetest.FullName))(t)
	c.run(filepath.Dir(c.dir), "clone", "--quiet", "--no-local", r.Git.Dir, c.dir) // copied files could be incomplete while other tests write them
	c.base = c.git("rev-parse", "HEAD")
	return c
}

func (c *checkout) git(args ...string) string { return strings.TrimSpace(c.run(c.dir, args...)) }

func (c *checkout) run(dir string, args ...string) string {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME="+dir,
		"GIT_AUTHOR_NAME=agent", "GIT_AUTHOR_EMAIL=a@vm", "GIT_COMMITTER_NAME=agent", "GIT_COMMITTER_EMAIL=a@vm")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}

func (c *checkout) write(path, content string) {
	c.t.Helper()
	full := filepath.Join(c.dir, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		c.t.Fatal(err)
	}
}

func (c *checkout) commit(message string) string {
	c.t.Helper()
	c.git("add", "--all")
	c.git("commit", "--quiet", "--allow-empty", "--message", message)
	return c.git("rev-parse", "HEAD")
}

// message returns the exact message of a commit.
func (c *checkout) message(rev string) string {
	_, message, _ := strings.Cut(c.run(c.dir, "cat-file", "commit", rev), "\n\n")
	return message
}

// changeset reads base..HEAD along the first parents from the clone's objects.
func (c *checkout) changeset() *changeset.Changeset {
	c.t.Helper()
	cs := &changeset.Changeset{Base: c.base, Blobs: map[string][]byte{}}
	for id := range strings.FieldsSeq(c.git("rev-list", "--reverse", "--first-parent", c.base+"..HEAD")) {
		k := changeset.Commit{ID: id, Tree: c.git("rev-parse", id+"^{tree}"), Message: c.message(id)}
		k.Parents = strings.Fields(c.git("log", "-1", "--format=%P", id))
		parts := strings.Split(c.run(c.dir, "diff-tree", "-r", "-z", "--no-renames", k.Parents[0], id), "\x00")
		for i := 0; i+1 < len(parts); i += 2 {
			f := strings.Fields(parts[i]) // :MODE MODE OLD NEW STATUS
			change := changeset.Change{Path: parts[i+1], OldMode: changeset.Mode(strings.TrimLeft(f[0], ":")), Mode: changeset.Mode(f[1]), Blob: f[3]}
			if change.OldMode == "000000" {
				change.OldMode = ""
			}
			if change.Mode == "000000" {
				change.Mode, change.Blob = "", ""
			} else if change.Mode != changeset.ModeSubmodule {
				cs.Blobs[change.Blob] = []byte(c.run(c.dir, "cat-file", "blob", change.Blob))
			}
			k.Changes = append(k.Changes, change)
		}
		cs.Commits = append(cs.Commits, k)
	}
	return cs
}

// kindsOfWork returns the kinds of changes that a commit can make, each for a new clone.
func kindsOfWork() map[string]func(c *checkout) {
	return map[string]func(c *checkout){
		"add and edit": func(c *checkout) {
			c.write("README.md", "# app\n\nWith \"quotes\", \ttabs and ünïcode 👍\r\n")
			c.write("new/deep/file.go", "package deep\n")
		},
		"delete":          func(c *checkout) { c.git("rm", "--quiet", "old.txt") },
		"delete a folder": func(c *checkout) { c.git("rm", "--quiet", "-r", "dir") },
		"rename":          func(c *checkout) { c.git("mv", "old.txt", "renamed.txt") },
		"file to folder":  func(c *checkout) { c.git("rm", "--quiet", "old.txt"); c.write("old.txt/now", "a folder\n") },
		"folder to file":  func(c *checkout) { c.git("rm", "--quiet", "-r", "dir"); c.write("dir", "a file\n") },
		"empty file":      func(c *checkout) { c.write("empty", "") },
		"binary": func(c *checkout) {
			c.write("bin", "\x00\x01\xff\xfe")
			c.write("nul", "a\x00b")
			c.write("latin1", "caf\xe9\n")
		},
		"over a megabyte":   func(c *checkout) { c.write("big.txt", strings.Repeat("0123456789abcde\n", 70_000)) },
		"no newline at end": func(c *checkout) { c.write("x", "no newline") },
		"odd names":         func(c *checkout) { c.write("a b/ü\"'$.txt", "odd\n") },
		"the same twice":    func(c *checkout) { c.write("one", "same\n"); c.write("two", "same\n") },
		"executable": func(c *checkout) {
			if err := os.Chmod(filepath.Join(c.dir, "old.txt"), 0o755); err != nil {
				c.t.Fatal(err)
			}
			c.write("run.sh", "#!/bin/sh\n")
			c.git("add", "run.sh")
			c.git("update-index", "--chmod=+x", "run.sh")
			if err := os.Chmod(filepath.Join(c.dir, "run.sh"), 0o755); err != nil {
				c.t.Fatal(err)
			}
		},
		"symlink": func(c *checkout) {
			if err := os.Symlink("dir/a.txt", filepath.Join(c.dir, "link")); err != nil {
				c.t.Fatal(err)
			}
		},
		"many files": func(c *checkout) {
			for i := range 110 {
				c.write(fmt.Sprintf("many/%03d.txt", i), fmt.Sprintf("number %d\n", i))
			}
		},
		"much text": func(c *checkout) {
			for i := range 5 {
				c.write(fmt.Sprintf("much/%d.txt", i), strings.Repeat(fmt.Sprintf("%d\n", i), 200_000))
			}
		},
		"nothing": func(*checkout) {},
	}
}

// TestPublish publishes every kind of change and compares the trees and files with those of the clone.
func TestPublish(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	for name, work := range kindsOfWork() {
		branch := "errand/" + strings.ReplaceAll(name, " ", "-")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clone(t, w)
			work(c)
			c.commit("Do the work\n\nWith a body.")
			cs := c.changeset()
			p := forgetest.Must(w.Forge.CreateCommits(t.Context(), w.Repo, cs, c.base, nil))(t)
			if p.Tree != c.git("rev-parse", "HEAD^{tree}") || p.IDs[cs.Head()] != p.Head {
				t.Errorf("got %+v", p)
			}
			if err := w.Forge.MoveBranch(t.Context(), w.Repo, branch, "", p.Head); err != nil {
				t.Fatal(err)
			}
			c.git("fetch", "--quiet", "origin", branch)
			if diff := c.git("diff", "--stat", "HEAD", "FETCH_HEAD"); diff != "" {
				t.Error(diff)
			}
			if got := c.message("FETCH_HEAD"); got != "Do the work\n\nWith a body.\n" {
				t.Errorf("got message %q", got)
			}
			if got := c.git("log", "-1", "--format=%an %P", "FETCH_HEAD"); got != "errand[bot] "+c.base {
				t.Errorf("author and parents are %q", got)
			}
		})
	}
}

func TestPublishSeveralCommits(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	onBase := forgetest.Must(w.As("wendy").PushCommit(forgetest.FullName, simgithub.Commit{Branch: "main", Message: "Meanwhile", Files: map[string]string{"theirs.txt": "theirs\n"}}))(t)
	c := clone(t, w)
	c.git("reset", "--quiet", "--hard", "HEAD~1") // the VM started before that
	c.base = c.git("rev-parse", "HEAD")
	c.write("one.txt", "1\n")
	one := c.commit("One")
	c.git("merge", "--quiet", "--no-ff", "-m", "Take main in", onBase)
	merge := c.git("rev-parse", "HEAD")
	c.write("one.txt", "2\n")
	two := c.commit("Two")
	cs := c.changeset()

	first := forgetest.Must(w.Forge.CreateCommits(t.Context(), w.Repo, cs, c.base, nil))(t)
	if len(first.IDs) != 3 || first.Head != first.IDs[two] || first.Tree != c.git("rev-parse", "HEAD^{tree}") {
		t.Fatalf("got %+v", first)
	}
	if err := w.Forge.MoveBranch(t.Context(), w.Repo, "errand/1", "", first.Head); err != nil {
		t.Fatal(err)
	}
	c.git("fetch", "--quiet", "origin", "errand/1")
	if got := strings.Fields(c.git("log", "-1", "--format=%P", "FETCH_HEAD^")); !cmp.Equal(got, []string{first.IDs[one], onBase}) {
		t.Errorf("the parents of the merge are %v", got)
	}

	before := w.Forge.Calls(forge.ForTask)
	again := forgetest.Must(w.Forge.CreateCommits(t.Context(), w.Repo, cs, c.base, first.IDs))(t)
	if diff := cmp.Diff(first, again); diff != "" {
		t.Error(diff)
	}
	if n := w.Forge.Calls(forge.ForTask) - before; n != 0 {
		t.Errorf("got %d calls for commits that are already published", n)
	}
	known := maps.Clone(first.IDs)
	delete(known, two)
	rest := forgetest.Must(w.Forge.CreateCommits(t.Context(), w.Repo, cs, c.base, known))(t)
	if rest.IDs[merge] != first.IDs[merge] || rest.Tree != first.Tree {
		t.Errorf("got %+v, want to build on %+v", rest, first)
	}
}

func TestPublishResumesAfterFailure(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	c := clone(t, w)
	c.write("bin", "\x00")
	c.commit("One")
	c.write("text", "t\n")
	c.commit("Two")
	w.Inject(t, simgithub.Fault{Method: "POST", Path: "/git/", Status: 502, Count: 1})
	w.Inject(t, simgithub.Fault{Method: "POST", Path: "/git/commits", Nth: 2, Count: 1, Status: 422})
	cs := c.changeset()
	p, err := w.Forge.CreateCommits(t.Context(), w.Repo, cs, c.base, nil)
	if class, _ := forge.Classify(err); class != forge.ClassPermanent || len(p.IDs) != 1 {
		t.Fatalf("got class %s, %d commits: %v", class, len(p.IDs), err)
	}
	p = forgetest.Must(w.Forge.CreateCommits(t.Context(), w.Repo, cs, c.base, p.IDs))(t)
	if p.Tree != c.git("rev-parse", "HEAD^{tree}") {
		t.Errorf("got %+v", p)
	}
}

// TestPublishRefuses checks that an inconsistent changeset is not published.
func TestPublishRefuses(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		lie  func(cs *changeset.Changeset)
		want error
	}{
		"wrong tree": {func(cs *changeset.Changeset) { cs.Commits[0].Tree = strings.Repeat("a", 40) }, forge.ErrTreeMismatch},
		"wrong content": {func(cs *changeset.Changeset) {
			for id := range cs.Blobs {
				cs.Blobs[id] = []byte("not that\n")
			}
		}, forge.ErrTreeMismatch},
		"wrong binary content": {func(cs *changeset.Changeset) {
			for id := range cs.Blobs {
				cs.Blobs[id] = []byte("\x00")
			}
		}, forge.ErrTreeMismatch},
		"missing content": {func(cs *changeset.Changeset) { clear(cs.Blobs) }, forge.ErrIncomplete},
		"missing parents": {func(cs *changeset.Changeset) { cs.Commits[0].Parents = nil }, forge.ErrIncomplete},
		"wrong parents":   {func(cs *changeset.Changeset) { cs.Commits[0].Parents = []string{strings.Repeat("b", 40)} }, forge.ErrIncomplete},
		"invalid mode":    {func(cs *changeset.Changeset) { cs.Commits[0].Changes[0].Mode = "100666" }, forge.ErrIncomplete},
		"hidden change":   {func(cs *changeset.Changeset) { cs.Commits[0].Changes = nil }, forge.ErrTreeMismatch},
	}
	w := forgetest.NewWorld(t)
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := clone(t, w)
			c.write("new.txt", "new\n")
			c.commit("One")
			cs := c.changeset()
			tt.lie(cs)
			_, err := w.Forge.CreateCommits(t.Context(), w.Repo, cs, c.base, nil)
			if class, _ := forge.Classify(err); !errors.Is(err, tt.want) || class != forge.ClassPermanent {
				t.Errorf("got class %s: %v", class, err)
			}
		})
	}
}

func TestMoveBranch(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	push := func(branch, content string) string {
		t.Helper()
		return forgetest.Must(w.As("wendy").PushCommit(forgetest.FullName, simgithub.Commit{Branch: branch, From: "main", Message: content, Files: map[string]string{"f": content}}))(t)
	}
	a, b := push("side", "a"), push("side", "b")
	move := func(before, after string) error {
		return w.Forge.MoveBranch(t.Context(), w.Repo, "errand/1", before, after)
	}
	check := func(want string) {
		t.Helper()
		head, err := w.Forge.Head(t.Context(), w.Repo, "errand/1")
		if head != want || (want == "") != errors.Is(err, forge.ErrNotFound) {
			t.Errorf("the branch is at %q, want %q: %v", head, want, err)
		}
	}
	check("")
	for range 2 { // can be repeated
		if err := move("", a); err != nil {
			t.Fatal(err)
		}
	}
	check(a)
	if err := move(a, b); err != nil {
		t.Fatal(err)
	}
	theirs := push("errand/1", "theirs")
	err := move(b, a)
	var moved *forge.MovedError
	if !errors.Is(err, forge.ErrMoved) || !errors.As(err, &moved) || moved.Head != theirs || moved.Want != b {
		t.Errorf("got %v", err)
	}
	check(theirs)
	if err := move("", a); !errors.Is(err, forge.ErrMoved) {
		t.Errorf("replaced an existing branch: %v", err)
	}
	if err := w.As("wendy").DeleteBranch(forgetest.FullName, "errand/1"); err != nil {
		t.Fatal(err)
	}
	check("")
	if err := move(b, a); !errors.Is(err, forge.ErrMoved) {
		t.Errorf("a deleted branch was moved: %v", err)
	}
}

func TestMoveBranchSettlesUnknownOutcomes(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	main := forgetest.Must(w.Forge.Head(t.Context(), w.Repo, "main"))(t)
	if err := w.Forge.MoveBranch(t.Context(), w.Repo, "warm-up", "", main); err != nil {
		t.Fatal(err)
	}
	w.Inject(t, simgithub.Fault{Path: "graphql", Count: 1, After: true, Cut: true})
	if err := w.Forge.MoveBranch(t.Context(), w.Repo, "errand/1", "", main); err != nil {
		t.Errorf("the effect was not found: %v", err)
	}
	w.Inject(t, simgithub.Fault{Path: "graphql", Count: 1, Status: 502})
	err := w.Forge.MoveBranch(t.Context(), w.Repo, "errand/2", "", main)
	if class, _ := forge.Classify(err); class != forge.ClassUnknown {
		t.Errorf("got class %s: %v", class, err)
	}
}

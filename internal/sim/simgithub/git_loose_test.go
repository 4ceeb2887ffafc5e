package simgithub

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestLooseAnswersMatchGit: what is read without git is what git says, also of what only git can read.
func TestLooseAnswersMatchGit(t *testing.T) {
	t.Parallel()
	for name, pack := range map[string][]string{"loose": nil, "packed references": {"pack-refs", "--all"}, "packed": {"gc", "--quiet"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, r := looseRepo(t)
			if pack != nil {
				git(t, s, r, pack...)
			}
			sameNames(t, s, r)
			sameHistory(t, s, r)
			sameTrees(t, s, r)
		})
	}
}

var looseKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

// looseRepo has two branches that were merged, a third one apart, tags, folders, a link and a submodule.
func looseRepo(t *testing.T) (*Sim, *Repo) {
	t.Helper()
	key, err := looseKey()
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Config{Dir: t.TempDir(), Key: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	r, err := s.SeedRepo(RepoSeed{Owner: "acme", Name: "x", Files: map[string]string{"a": "1\n", "a.b": "2\n", "a-b/c/d": "3\n", "a-b/e": "4\n", "docs/x": ""}})
	if err != nil {
		t.Fatal(err)
	}
	ada := s.As("acme")
	for _, c := range []Commit{
		{Branch: "side", Message: "One\n\nwith a body\n\n", Files: map[string]string{"a-b/c/d": "5\n", "new/deep/file": "6\n"}},
		{Branch: "main", Message: "Two", Files: map[string]string{"z": "7\n"}, Delete: []string{"docs/x", "missing"}},
		{Branch: "apart", From: "side", Message: "Three: Ü", Files: map[string]string{"a": "8\n", "run": "#!"}, Modes: map[string]string{"run": "100755"}},
	} {
		if _, err := ada.PushCommit("acme/x", c); err != nil {
			t.Fatal(err)
		}
	}
	id := []string{"-c", "user.name=Eve  E", "-c", "user.email=eve@example.org"}
	tree := strings.Fields(git(t, s, r, "rev-parse", "main^{tree}", "side", "main"))
	merge := git(t, s, r, append(id, "commit-tree", tree[0], "-p", tree[2], "-p", tree[1], "-m", "Merge\n\n  indented ")...)
	git(t, s, r, "update-ref", "refs/heads/main", merge)
	git(t, s, r, "update-ref", "refs/heads/deep/er", merge)
	git(t, s, r, append(id, "tag", "-a", "-m", "annotated", "v1", "side")...)
	git(t, s, r, "tag", "v0", "side")
	return s, r
}

func git(t *testing.T, s *Sim, r *Repo, args ...string) string {
	t.Helper()
	out, err := r.Git.out(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// asked is git's answer, empty if it fails.
func asked(s *Sim, r *Repo, args ...string) string {
	out, err := r.Git.out(args...)
	if err != nil {
		return ""
	}
	return out
}

func sameNames(t *testing.T, s *Sim, r *Repo) {
	t.Helper()
	main := asked(s, r, "rev-parse", "refs/heads/main")
	for _, rev := range []string{
		"refs/heads/main", "refs/heads/side", "refs/heads/none", "refs/heads/deep", "refs/heads/deep/er", "refs/tags/v0", "refs/tags/v1", "main", "HEAD", main, main[:10],
		strings.Repeat("1", 40), "main:a", main + ":a-b/c", main + ":", main + ":none", "refs/heads/main:a-b/c/d", "refs/heads/none:a", main + ":a/b", main + "^{tree}",
		main + "^{}", asked(s, r, "rev-parse", "refs/tags/v1") + "^{}", asked(s, r, "rev-parse", "main^{tree}"), "refs/heads/main/x", "refs/heads/main~1", "side...main",
	} {
		if got, want := r.Git.ref(rev), asked(s, r, "rev-parse", "--verify", "--quiet", rev); got != want {
			t.Errorf("%s is %q, want %q", rev, got, want)
		}
		if got, want := r.Git.resolve(rev), asked(s, r, "rev-parse", "--verify", "--quiet", rev+"^{commit}"); got != want {
			t.Errorf("%s is commit %q, want %q", rev, got, want)
		}
	}
	for _, prefix := range []string{"refs/", "refs/heads/", "refs/heads", "refs/heads/main", "refs/heads/dee", "refs/heads/deep", "refs/tags/"} {
		refs, err := r.Git.refs(prefix)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range refs {
			got = append(got, f.Name+" "+f.SHA+" "+f.Type)
		}
		if diff := cmp.Diff(asked(s, r, "for-each-ref", "--format=%(refname) %(objectname) %(objecttype)", prefix), strings.Join(got, "\n")); diff != "" {
			t.Errorf("references below %s (-git +got):\n%s", prefix, diff)
		}
	}
}

func sameHistory(t *testing.T, s *Sim, r *Repo) {
	t.Helper()
	all := strings.Fields(asked(s, r, "rev-list", "--all"))
	for _, a := range all {
		list, err := r.Git.commits(1, a)
		if err != nil || len(list) != 1 {
			t.Fatalf("%d commits: %v", len(list), err)
		}
		if diff := cmp.Diff(&list[0], r.Git.commit(a), cmp.AllowUnexported(gitIdentity{})); diff != "" {
			t.Errorf("commit %s (-git +got):\n%s", a, diff)
		}
		for _, b := range all {
			_, code, _ := r.Git.git.run(gitCmd{dir: r.Git.Dir, args: []string{"merge-base", "--is-ancestor", a, b}})
			if got := r.Git.isAncestor(a, b); got != (code == 0) {
				t.Errorf("%s is an ancestor of %s: %v", a, b, got)
			}
			if got, want := r.Git.mergeBase(a, b), asked(s, r, "merge-base", a, b); got != want {
				t.Errorf("merge base of %s and %s: %s, want %s", a, b, got, want)
			}
		}
	}
}

func sameTrees(t *testing.T, s *Sim, r *Repo) {
	t.Helper()
	apart := asked(s, r, "rev-parse", "refs/heads/apart")
	for _, path := range []string{"", "a", "a-b", "a-b/", "a-b/c/d", "none", "none/", "a/b", "run"} {
		args, paths := []string{"ls-tree", "-l", apart}, []string(nil)
		if path != "" {
			args, paths = append(args, "--", path), []string{path}
		}
		list, err := r.Git.list(apart, false, paths...)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range list {
			size := fmt.Sprint(l.size)
			if l.kind != "blob" {
				size = "-"
			}
			got = append(got, fmt.Sprintf("%s %s %s %7s\t%s", l.mode, l.kind, l.sha, size, l.path))
		}
		if diff := cmp.Diff(asked(s, r, args...), strings.Join(got, "\n")); diff != "" {
			t.Errorf("tree at %q (-git +got):\n%s", path, diff)
		}
	}
	sameChanges(t, s, r, apart)
}

// sameChanges makes trees in both ways.
func sameChanges(t *testing.T, s *Sim, r *Repo, base string) {
	t.Helper()
	one, commit := asked(s, r, "rev-parse", base+":a"), base
	for name, entries := range map[string][]treeEntry{
		"a new file in a new folder":           {{Path: "x/y/z", Mode: "100755", SHA: &one}},
		"a file instead of a folder":           {{Path: "a-b", Mode: "100644", SHA: &one}},
		"a folder instead of a file":           {{Path: "a/b", Mode: "120000", SHA: &one}},
		"the last file of a folder goes":       {{Path: "new/deep/file"}},
		"a folder cannot be deleted":           {{Path: "a-b"}, {Path: "a/none"}},
		"a submodule":                          {{Path: "a-b/sub", Mode: "160000", SHA: &commit}},
		"sorted as git sorts":                  {{Path: "a0", Mode: "100644", SHA: &one}, {Path: "a-", Mode: "100644", SHA: &one}, {Path: "a-b.c", Mode: "100644", SHA: &one}},
		"names that git is careful about":      {{Path: ".gitmodules", Mode: "100644", SHA: &one}, {Path: ".github/x", Mode: "100644", SHA: &one}},
		"deleted and put again as a folder":    {{Path: "a"}, {Path: "a/b", Mode: "100644", SHA: &one}},
		"everything goes":                      {{Path: "a"}, {Path: "a.b"}, {Path: "a-b/c/d"}, {Path: "a-b/e"}, {Path: "docs/x"}, {Path: "new/deep/file"}, {Path: "run"}},
		"a folder by the id of another":        {{Path: "copy", Mode: "040000", SHA: ptr(asked(s, r, "rev-parse", base+":a-b"))}},
		"nothing changes":                      nil,
		"what was put goes again, with others": {{Path: "q", Mode: "100644", SHA: &one}, {Path: "q"}, {Path: "p", Mode: "100644", SHA: &one}},
	} {
		got, err := r.Git.writeTree(base, entries)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want := byIndex(t, s, r, base, entries); got != want {
			t.Errorf("%s: %s, want %s:\n%s", name, got, want, asked(s, r, "diff", want, got))
		}
	}
	none := strings.Repeat("1", 40)
	for name, e := range map[string]treeEntry{
		"a missing blob": {Path: "a", Mode: "100644", SHA: &none}, "git's own folder": {Path: ".git/config", Mode: "100644", SHA: &one},
		"an unknown mode": {Path: "a", Mode: "100600", SHA: &one},
	} {
		if sha, err := r.Git.writeTree(base, []treeEntry{e}); err == nil {
			t.Errorf("%s was taken: %s", name, sha)
		}
	}
	if out := asked(s, r, "fsck", "--strict", "--no-dangling", "--no-progress"); out != "" {
		t.Error(out)
	}
}

// byIndex makes a tree as git alone does it.
func byIndex(t *testing.T, s *Sim, r *Repo, base string, entries []treeEntry) string {
	t.Helper()
	index := []string{"GIT_INDEX_FILE=" + filepath.Join(t.TempDir(), "index")}
	run := func(in string, args ...string) string {
		out, _, err := r.Git.git.run(gitCmd{dir: r.Git.Dir, env: index, stdin: []byte(in), args: args})
		if err != nil {
			t.Fatal(err)
		}
		return string(bytes.TrimSpace(out))
	}
	run("", "read-tree", base)
	for _, e := range entries {
		switch {
		case e.SHA == nil:
			run("0 "+zeroSHA+"\t"+e.Path+"\n", "update-index", "--index-info")
		case e.Mode == "040000":
			run("", "read-tree", "-i", "--prefix="+e.Path+"/", *e.SHA)
		default:
			run(e.Mode+" "+*e.SHA+"\t"+e.Path+"\n", "update-index", "--index-info")
		}
	}
	return run("", "write-tree")
}

func ptr[T any](v T) *T { return &v }

// TestLooseRefs: a reference is written where git finds it, and not where another is in the way.
func TestLooseRefs(t *testing.T) {
	t.Parallel()
	s, r := looseRepo(t)
	main, side := r.Git.branch("main"), r.Git.branch("side")
	for _, name := range []string{"refs/heads/new/one", "refs/heads/side"} {
		if err := r.Git.updateRef(name, main, ""); err != nil || asked(s, r, "rev-parse", name) != main {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, before := range map[string]string{"refs/heads/new": "", "refs/heads/main/x": "", "refs/heads/apart": main, "refs/heads/..": ""} {
		if err := r.Git.updateRef(name, side, before); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	if err := r.Git.updateRef("refs/heads/blob", r.Git.ref(main+":a"), ""); err == nil {
		t.Error("a branch points at a blob")
	}
	left, err := filepath.Glob(filepath.Join(r.Git.Dir, "refs", "heads", "*.lock"))
	if err != nil || slices.ContainsFunc(left, func(p string) bool { _, err := os.Stat(p); return err == nil }) {
		t.Errorf("locks are left: %v %v", left, err)
	}
}

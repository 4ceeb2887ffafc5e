package git

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestLooseAnswersMatchGit(t *testing.T) {
	t.Parallel()
	for name, pack := range map[string][]string{"loose": nil, "packed references": {"pack-refs", "--all"}, "packed": {"gc", "--quiet"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testRepo(t)
			if pack != nil {
				runGit(t, r, pack...)
			}
			sameNames(t, r)
			sameHistory(t, r)
			sameTrees(t, r)
		})
	}
}

// testRepo returns a repository with two merged branches, a third branch, tags and folders.
func testRepo(t *testing.T) *Repository {
	t.Helper()
	r := emptyRepo(t)
	commit(t, r, "", "main", "Initial commit\n", map[string]string{"a": "1\n", "a.b": "2\n", "a-b/c/d": "3\n", "a-b/e": "4\n", "docs/x": ""})
	commit(t, r, "main", "side", "One\n\nwith a body\n\n", map[string]string{"a-b/c/d": "5\n", "new/deep/file": "6\n"})
	commit(t, r, "main", "main", "Two", map[string]string{"z": "7\n"}, "docs/x", "missing")
	commit(t, r, "side", "apart", "Three: Ü", map[string]string{"a": "8\n", "run": "#!"})
	id := []string{"-c", "user.name=Eve  E", "-c", "user.email=eve@example.org"}
	tree := strings.Fields(runGit(t, r, "rev-parse", "main^{tree}", "side", "main"))
	merge := runGit(t, r, append(id, "commit-tree", tree[0], "-p", tree[2], "-p", tree[1], "-m", "Merge\n\n  indented ")...)
	runGit(t, r, "update-ref", "refs/heads/main", merge)
	runGit(t, r, "update-ref", "refs/heads/deep/er", merge)
	runGit(t, r, append(id, "tag", "-a", "-m", "annotated", "v1", "side")...)
	runGit(t, r, "tag", "v0", "side")
	return r
}

// emptyRepo returns a repository without commits.
func emptyRepo(t *testing.T) *Repository {
	t.Helper()
	dir := t.TempDir()
	r, err := Init(dir, filepath.Join(dir, "x.git"), "main")
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// commit writes a commit on top of the branch from, adds files, deletes the files in gone, and points the branch to at
// the commit. A file named run is executable.
func commit(t *testing.T, r *Repository, from, to, message string, files map[string]string, gone ...string) {
	t.Helper()
	who := Identity{Name: "ada", Email: "ada@example.org", At: time.Unix(1790000000, 0).UTC()}
	c := NewCommit{Message: message, Author: who, Committer: who}
	if from != "" {
		c.Parents = []string{r.Branch(from)}
	}
	var entries []TreeEntry
	for path, content := range files {
		mode := "100644"
		if path == "run" {
			mode = "100755"
		}
		entries = append(entries, TreeEntry{Path: path, Mode: mode, Content: &content})
	}
	for _, path := range gone {
		entries = append(entries, TreeEntry{Path: path, Mode: "100644"})
	}
	var err error
	if c.Tree, err = r.WriteTree(strings.Join(c.Parents, ""), entries); err != nil {
		t.Fatal(err)
	}
	sha, err := r.WriteCommit(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.UpdateRef("refs/heads/"+to, sha, ""); err != nil {
		t.Fatal(err)
	}
}

func runGit(t *testing.T, r *Repository, args ...string) string {
	t.Helper()
	out, err := r.Output(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// asked returns the output of a git command, or "" if the command failed.
func asked(r *Repository, args ...string) string {
	out, err := r.Output(args...)
	if err != nil {
		return ""
	}
	return out
}

func sameNames(t *testing.T, r *Repository) {
	t.Helper()
	main := asked(r, "rev-parse", "refs/heads/main")
	for _, rev := range []string{
		"refs/heads/main", "refs/heads/side", "refs/heads/none", "refs/heads/deep", "refs/heads/deep/er", "refs/tags/v0", "refs/tags/v1", "main", "HEAD", main, main[:10],
		strings.Repeat("1", 40), "main:a", main + ":a-b/c", main + ":", main + ":none", "refs/heads/main:a-b/c/d", "refs/heads/none:a", main + ":a/b", main + "^{tree}",
		main + "^{}", asked(r, "rev-parse", "refs/tags/v1") + "^{}", asked(r, "rev-parse", "main^{tree}"), "refs/heads/main/x", "refs/heads/main~1", "side...main",
	} {
		if got, want := r.Object(rev), asked(r, "rev-parse", "--verify", "--quiet", rev); got != want {
			t.Errorf("got %s = %q, want %q", rev, got, want)
		}
		if got, want := r.Resolve(rev), asked(r, "rev-parse", "--verify", "--quiet", rev+"^{commit}"); got != want {
			t.Errorf("got %s = commit %q, want %q", rev, got, want)
		}
	}
	for _, prefix := range []string{"refs/", "refs/heads/", "refs/heads", "refs/heads/main", "refs/heads/dee", "refs/heads/deep", "refs/tags/"} {
		refs, err := r.Refs(prefix)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range refs {
			got = append(got, f.Name+" "+f.SHA+" "+f.Type)
		}
		if diff := cmp.Diff(asked(r, "for-each-ref", "--format=%(refname) %(objectname) %(objecttype)", prefix), strings.Join(got, "\n")); diff != "" {
			t.Errorf("references below %s (-git +got):\n%s", prefix, diff)
		}
	}
}

func sameHistory(t *testing.T, r *Repository) {
	t.Helper()
	all := strings.Fields(asked(r, "rev-list", "--all"))
	for _, a := range all {
		list, err := r.Commits(1, a)
		if err != nil || len(list) != 1 {
			t.Fatalf("got %d commits: %v", len(list), err)
		}
		if diff := cmp.Diff(&list[0], r.Commit(a), cmp.AllowUnexported(Identity{})); diff != "" {
			t.Errorf("commit %s (-git +got):\n%s", a, diff)
		}
		for _, b := range all {
			_, code, _ := r.git.run(command{dir: r.Dir, args: []string{"merge-base", "--is-ancestor", a, b}})
			if got := r.IsAncestor(a, b); got != (code == 0) {
				t.Errorf("got %s is an ancestor of %s: %v", a, b, got)
			}
			if got, want := r.MergeBase(a, b), asked(r, "merge-base", a, b); got != want {
				t.Errorf("merge base of %s and %s: got %s, want %s", a, b, got, want)
			}
		}
	}
}

func sameTrees(t *testing.T, r *Repository) {
	t.Helper()
	apart := asked(r, "rev-parse", "refs/heads/apart")
	for _, path := range []string{"", "a", "a-b", "a-b/", "a-b/c/d", "none", "none/", "a/b", "run"} {
		args, paths := []string{"ls-tree", "-l", apart}, []string(nil)
		if path != "" {
			args, paths = append(args, "--", path), []string{path}
		}
		list, err := r.List(apart, false, paths...)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range list {
			size := fmt.Sprint(l.Size)
			if l.Kind != "blob" {
				size = "-"
			}
			got = append(got, fmt.Sprintf("%s %s %s %7s\t%s", l.Mode, l.Kind, l.SHA, size, l.Path))
		}
		if diff := cmp.Diff(asked(r, args...), strings.Join(got, "\n")); diff != "" {
			t.Errorf("tree at %q (-git +got):\n%s", path, diff)
		}
	}
	sameChanges(t, r, apart)
}

// sameChanges writes trees without and with git, and compares them.
func sameChanges(t *testing.T, r *Repository, base string) {
	t.Helper()
	one, commit := asked(r, "rev-parse", base+":a"), base
	for name, entries := range map[string][]TreeEntry{
		"a new file in a new folder":               {{Path: "x/y/z", Mode: "100755", SHA: &one}},
		"a file instead of a folder":               {{Path: "a-b", Mode: "100644", SHA: &one}},
		"a folder instead of a file":               {{Path: "a/b", Mode: "120000", SHA: &one}},
		"the last file of a folder is deleted":     {{Path: "new/deep/file"}},
		"a folder cannot be deleted":               {{Path: "a-b"}, {Path: "a/none"}},
		"a submodule":                              {{Path: "a-b/sub", Mode: "160000", SHA: &commit}},
		"sorted as git sorts":                      {{Path: "a0", Mode: "100644", SHA: &one}, {Path: "a-", Mode: "100644", SHA: &one}, {Path: "a-b.c", Mode: "100644", SHA: &one}},
		"names that git quotes or refuses":         {{Path: ".gitmodules", Mode: "100644", SHA: &one}, {Path: ".github/x", Mode: "100644", SHA: &one}},
		"deleted and put again as a folder":        {{Path: "a"}, {Path: "a/b", Mode: "100644", SHA: &one}},
		"everything goes":                          {{Path: "a"}, {Path: "a.b"}, {Path: "a-b/c/d"}, {Path: "a-b/e"}, {Path: "docs/x"}, {Path: "new/deep/file"}, {Path: "run"}},
		"a folder by the id of another":            {{Path: "copy", Mode: "040000", SHA: new(asked(r, "rev-parse", base+":a-b"))}},
		"nothing changes":                          nil,
		"a new file is deleted again, with others": {{Path: "q", Mode: "100644", SHA: &one}, {Path: "q"}, {Path: "p", Mode: "100644", SHA: &one}},
	} {
		got, err := r.WriteTree(base, entries)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if want := byIndex(t, r, base, entries); got != want {
			t.Errorf("%s: got %s, want %s:\n%s", name, got, want, asked(r, "diff", want, got))
		}
	}
	none := strings.Repeat("1", 40)
	for name, e := range map[string]TreeEntry{
		"a missing blob": {Path: "a", Mode: "100644", SHA: &none}, "git's directory": {Path: ".git/config", Mode: "100644", SHA: &one},
		"an unknown mode": {Path: "a", Mode: "100600", SHA: &one},
	} {
		if sha, err := r.WriteTree(base, []TreeEntry{e}); err == nil {
			t.Errorf("%s was accepted: %s", name, sha)
		}
	}
	if out := asked(r, "fsck", "--strict", "--no-dangling", "--no-progress"); out != "" {
		t.Error(out)
	}
}

// byIndex writes a tree with git commands only.
func byIndex(t *testing.T, r *Repository, base string, entries []TreeEntry) string {
	t.Helper()
	index := []string{"GIT_INDEX_FILE=" + filepath.Join(t.TempDir(), "index")}
	run := func(in string, args ...string) string {
		out, _, err := r.git.run(command{dir: r.Dir, env: index, stdin: []byte(in), args: args})
		if err != nil {
			t.Fatal(err)
		}
		return string(bytes.TrimSpace(out))
	}
	run("", "read-tree", base)
	for _, e := range entries {
		switch {
		case e.SHA == nil:
			run("0 "+ZeroSHA+"\t"+e.Path+"\n", "update-index", "--index-info")
		case e.Mode == "040000":
			run("", "read-tree", "-i", "--prefix="+e.Path+"/", *e.SHA)
		default:
			run(e.Mode+" "+*e.SHA+"\t"+e.Path+"\n", "update-index", "--index-info")
		}
	}
	return run("", "write-tree")
}

// A reference is written where git finds it, unless another reference conflicts with it.
func TestLooseRefsAreWritten(t *testing.T) {
	t.Parallel()
	r := testRepo(t)
	main, side := r.Branch("main"), r.Branch("side")
	for _, name := range []string{"refs/heads/new/one", "refs/heads/side"} {
		if err := r.UpdateRef(name, main, ""); err != nil || asked(r, "rev-parse", name) != main {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, before := range map[string]string{"refs/heads/new": "", "refs/heads/main/x": "", "refs/heads/apart": main, "refs/heads/..": ""} {
		if err := r.UpdateRef(name, side, before); err == nil {
			t.Errorf("got no error when writing %s", name)
		}
	}
	if err := r.UpdateRef("refs/heads/blob", r.Object(main+":a"), ""); err == nil {
		t.Error("got no error for a branch that points at a blob")
	}
	left, err := filepath.Glob(filepath.Join(r.Dir, "refs", "heads", "*.lock"))
	if err != nil || slices.ContainsFunc(left, func(p string) bool { _, err := os.Stat(p); return err == nil }) {
		t.Errorf("got remaining locks: %v %v", left, err)
	}
}

package simgithub_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/sim/simgithub/git"
)

func TestSeeding(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	check(t, os.MkdirAll(filepath.Join(dir, "bin"), 0o755))
	check(t, os.WriteFile(filepath.Join(dir, "bin", "run"), []byte("#!/bin/sh\n"), 0o755))
	check(t, os.WriteFile(filepath.Join(dir, "doc.md"), []byte("# doc\n"), 0o644))
	check(t, os.Symlink("doc.md", filepath.Join(dir, "link")))
	_, err := w.Sim.SeedRepo(simgithub.RepoSeed{Owner: "octo", Name: "fromdir", FromDir: dir})
	check(t, err)
	_, err = w.Owner.PushCommit("octo/fromdir", simgithub.Commit{
		Branch: "main", Message: "Second", Files: map[string]string{"tool": "x", "to": "doc.md"},
		Modes: map[string]string{"tool": "100755", "to": "120000"}, Delete: []string{"doc.md"},
	})
	check(t, err)
	clone := t.TempDir()
	w.mustGit(clone, "clone", "-q", w.URL+"/octo/fromdir", "work") // also without .git
	work := filepath.Join(clone, "work")
	var got []string
	for line := range strings.Lines(w.mustGit(work, "ls-tree", "-r", "HEAD")) {
		f := strings.Fields(line)
		got = append(got, f[0]+" "+f[3])
	}
	if diff := cmp.Diff([]string{"100755 bin/run", "120000 link", "120000 to", "100755 tool"}, got); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	_, err = w.Sim.SeedRepo(simgithub.RepoSeed{Owner: "octo", Name: "fromgit", FromGit: work})
	check(t, err)
	branches, err := w.Owner.Branches("octo/fromgit")
	check(t, err)
	if want := w.mustGit(work, "rev-parse", "HEAD"); branches["main"] != want {
		t.Errorf("history copied to %s, want %s", branches["main"], want)
	}
	for name, seed := range map[string]simgithub.RepoSeed{
		"the same name again": {Owner: "octo", Name: "Calc"},
		"no such folder":      {Owner: "octo", Name: "x", FromDir: filepath.Join(dir, "none")},
		"no such branch":      {Owner: "octo", Name: "y", FromGit: work, DefaultBranch: "trunk"},
	} {
		if _, err := w.Sim.SeedRepo(seed); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}

// TestEmptyRepository: until its first commit, the git database of a repository answers 409, and it has no contents.
func TestEmptyRepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.Sim.SeedRepo(simgithub.RepoSeed{Owner: "octo", Name: "fresh", Empty: true})
	check(t, err)
	calls := func(t *testing.T, wants ...int) {
		t.Helper()
		_, ref, _ := w.bot.Git.GetRef(t.Context(), "octo", "fresh", "heads/main")
		_, blob, _ := w.bot.Git.CreateBlob(t.Context(), "octo", "fresh", &github.Blob{Content: ptr("x"), Encoding: ptr("utf-8")})
		_, _, contents, _ := w.bot.Repositories.GetContents(t.Context(), "octo", "fresh", "README.md", nil)
		for i, resp := range []*github.Response{ref, blob, contents} {
			if resp == nil || resp.StatusCode != wants[i] {
				t.Errorf("call %d: got %v, want %d", i, resp, wants[i])
			}
		}
	}
	calls(t, http.StatusConflict, http.StatusConflict, http.StatusNotFound)
	r, ok := w.Sim.Snapshot().Repo("octo/fresh")
	if !ok {
		t.Fatal("no repository")
	}
	tree, err := r.Git.WriteTree("", []git.TreeEntry{{Path: "README.md", Mode: "100644", Type: "blob", Content: ptr("x")}})
	check(t, err)
	who := git.Identity{Name: "Octo", Email: "octo@example.org"}
	sha, err := r.Git.WriteCommit(git.NewCommit{Tree: tree, Message: "First\n", Author: who, Committer: who})
	check(t, err)
	check(t, r.Git.UpdateRef("refs/heads/main", sha, git.ZeroSHA))
	calls(t, http.StatusOK, http.StatusCreated, http.StatusOK)
}

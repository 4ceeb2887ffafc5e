package simgithub_test

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// head returns the head of a branch.
func (w *world) head(branch string) string {
	w.T.Helper()
	all, err := w.Owner.Branches(repo)
	check(w.T, err)
	return all[branch]
}

// commitAsApp creates blobs, a tree and a commit on top of a branch with the Git Data API.
func (w *world) commitAsApp(parent string, entries ...*github.TreeEntry) *github.Commit {
	w.T.Helper()
	ctx := w.T.Context()
	tree, _, err := w.bot.Git.CreateTree(ctx, "octo", "calc", parent, entries)
	check(w.T, err)
	c, _, err := w.bot.Git.CreateCommit(ctx, "octo", "calc", &github.Commit{
		Message: ptr("By the App"), Tree: tree, Parents: []*github.Commit{{SHA: &parent}},
	}, nil)
	check(w.T, err)
	return c
}

func TestGitDataMakesRealObjects(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	blob, _, err := w.bot.Git.CreateBlob(ctx, "octo", "calc", &github.Blob{
		Content: ptr(base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\n\x00"))), Encoding: ptr("base64"),
	})
	check(t, err)
	c := w.commitAsApp(w.head("main"),
		&github.TreeEntry{Path: ptr("bin/run"), Mode: ptr("100755"), Type: ptr("blob"), SHA: blob.SHA},
		&github.TreeEntry{Path: ptr("link"), Mode: ptr("120000"), Type: ptr("blob"), Content: ptr("bin/run")},
		&github.TreeEntry{Path: ptr("calc.go"), Mode: ptr("100644"), Type: ptr("blob")}, // no sha, no content: sha null
	)
	if !c.GetVerification().GetVerified() || c.GetAuthor().GetName() != "errand[bot]" || c.GetCommitter().GetEmail() != "noreply@github.com" {
		t.Errorf("got commit by the App: verified=%v author=%v committer=%v", c.GetVerification().GetVerified(), c.GetAuthor(), c.GetCommitter())
	}
	_, _, err = w.bot.Git.CreateRef(ctx, "octo", "calc", &github.Reference{
		Ref: ptr("refs/heads/errand/1"), Object: &github.GitObject{SHA: c.SHA},
	})
	check(t, err)
	dir := t.TempDir()
	w.mustGit(dir, "clone", "-q", w.URL+"/octo/calc.git", "-b", "errand/1", "work")
	work := filepath.Join(dir, "work")
	var got []string
	for line := range strings.Lines(w.mustGit(work, "ls-tree", "-r", "HEAD")) {
		f := strings.Fields(line)
		got = append(got, f[0]+" "+f[3])
	}
	if diff := cmp.Diff([]string{"100644 README.md", "100755 bin/run", "120000 link"}, got); diff != "" {
		t.Errorf("the tree in a clone (-want +got):\n%s", diff)
	}
	if got := w.mustGit(work, "rev-parse", "HEAD^{tree}"); got != c.GetTree().GetSHA() {
		t.Errorf("got tree %s, want %s", got, c.GetTree().GetSHA())
	}
}

func TestGitDataRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, main := t.Context(), w.head("main")
	tree := func(e *github.TreeEntry) error {
		_, _, err := w.bot.Git.CreateTree(ctx, "octo", "calc", main, []*github.TreeEntry{e})
		return err
	}
	ref := func(name, sha string) error {
		_, _, err := w.bot.Git.CreateRef(ctx, "octo", "calc", &github.Reference{Ref: &name, Object: &github.GitObject{SHA: &sha}})
		return err
	}
	none := strings.Repeat("1", 40)
	for name, err := range map[string]error{
		"a missing blob":              tree(&github.TreeEntry{Path: ptr("x"), Mode: ptr("100644"), SHA: &none}),
		"a path outside the tree":     tree(&github.TreeEntry{Path: ptr("../x"), Mode: ptr("100644"), Content: ptr("x")}),
		"deleting a missing file":     tree(&github.TreeEntry{Path: ptr("gone"), Mode: ptr("100644"), Type: ptr("blob")}),
		"an unknown mode":             tree(&github.TreeEntry{Path: ptr("x"), Mode: ptr("100600"), Content: ptr("x")}),
		"an existing branch":          ref("refs/heads/main", main),
		"a branch without its object": ref("refs/heads/new", none),
		"a name that git forbids":     ref("refs/heads/a..b", main),
		"a pull request's own ref":    ref("refs/pull/9/head", main),
	} {
		if status(err) != 422 {
			t.Errorf("%s: got %v, want 422", name, err)
		}
	}
}

func TestUpdateRefsIsAtomicAndGuarded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	main := w.head("main")
	c := w.commitAsApp(main, &github.TreeEntry{Path: ptr("new.txt"), Mode: ptr("100644"), Type: ptr("blob"), Content: ptr("new")})
	zero := strings.Repeat("0", 40)
	update := func(list ...map[string]any) []gqlError {
		t.Helper()
		id, _ := w.Sim.Snapshot().Repo(repo)
		return w.graphql(`mutation($in:UpdateRefsInput!){ updateRefs(input:$in){ clientMutationId } }`,
			map[string]any{"in": map[string]any{"repositoryId": id.NodeID, "refUpdates": list}}, nil)
	}
	move := func(name, before, after string) map[string]any {
		return map[string]any{"name": "refs/heads/" + name, "beforeOid": before, "afterOid": after}
	}
	if errs := update(move("a", zero, c.GetSHA()), move("main", c.GetSHA(), c.GetSHA())); len(errs) != 1 || errs[0].Type != "UNPROCESSABLE" {
		t.Fatalf("a wrong beforeOid: %+v", errs)
	}
	if w.head("a") != "" {
		t.Fatal("one of two moves took effect")
	}
	w.Settled()
	if errs := update(move("a", zero, c.GetSHA()), move("main", main, c.GetSHA())); len(errs) != 0 {
		t.Fatalf("both moves: %+v", errs)
	}
	if w.head("a") != c.GetSHA() || w.head("main") != c.GetSHA() {
		t.Error("the branches did not move")
	}
	if diff := cmp.Diff([]string{"push", "create", "check_suite.requested", "push"}, w.Settled()); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
	if errs := update(move("main", c.GetSHA(), main)); len(errs) != 1 {
		t.Errorf("moving backwards without force: %+v", errs)
	}
	if errs := update(move("a", c.GetSHA(), zero)); len(errs) != 0 || w.head("a") != "" {
		t.Errorf("deleting a branch: %+v", errs)
	}
}

func TestPushOverHTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	as := func(cred string) string {
		return "http.extraHeader=Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("x-access-token:"+cred))
	}
	alice := w.Sim.AddUser("alice").Token
	w.mustGit(dir, "clone", "-q", w.URL+"/octo/calc.git", "work")
	work := filepath.Join(dir, "work")
	big := strings.Repeat("0123456789abcdef", 200_000) // over 1 MB: git sends it in chunks
	check(t, os.WriteFile(filepath.Join(work, "big.txt"), []byte(randomText(big)), 0o644))
	w.mustGit(work, "checkout", "-q", "-b", "feature")
	w.mustGit(work, "add", ".")
	w.mustGit(work, "commit", "-q", "-m", "Big")
	w.Settled()
	if out, err := w.git(work, "push", "-q", "origin", "feature"); err == nil {
		t.Errorf("a push without a token succeeded: %s", out)
	}
	if out, err := w.git(work, "-c", as(w.Sim.AddUser("rob").Token), "push", "-q", "origin", "feature"); err == nil || !strings.Contains(out, "403") {
		t.Errorf("push by a reader: %v %s", err, out)
	}
	w.mustGit(work, "-c", as(alice), "push", "-q", "origin", "feature")
	if got, want := w.head("feature"), w.mustGit(work, "rev-parse", "HEAD"); got != want {
		t.Errorf("got feature at %s, want %s", got, want)
	}
	if diff := cmp.Diff([]string{"push", "create", "check_suite.requested"}, w.Settled()); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
	w.mustGit(work, "-c", as(alice), "push", "-q", "origin", ":feature")
	if w.head("feature") != "" {
		t.Error("the branch still exists")
	}
}

// randomText returns a nearly incompressible text.
func randomText(seed string) string {
	var b strings.Builder
	state := uint32(1)
	for _, r := range seed {
		state = state*1664525 + 1013904223
		b.WriteByte("abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ\n"[(state>>16)%63])
		_ = r
	}
	return b.String()
}

func TestWorkflowFilesNeedAPermission(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	entry := &github.TreeEntry{Path: ptr(".github/workflows/ci.yml"), Mode: ptr("100644"), Type: ptr("blob"), Content: ptr("on: push\n")}
	c := w.commitAsApp(w.head("main"), entry)
	_, _, err := w.bot.Git.CreateRef(t.Context(), "octo", "calc", &github.Reference{
		Ref: ptr("refs/heads/ci"), Object: &github.GitObject{SHA: c.SHA},
	})
	if status(err) != 403 || !strings.Contains(err.Error(), "`workflows` permission") {
		t.Errorf("a reference to a workflow file: %v", err)
	}
	token, err := w.trans.Token(t.Context())
	check(t, err)
	dir := t.TempDir()
	remote := strings.Replace(w.URL, "://", "://x-access-token:"+token+"@", 1) + "/octo/calc.git"
	w.mustGit(dir, "clone", "-q", remote, "work")
	work := filepath.Join(dir, "work")
	check(t, os.MkdirAll(filepath.Join(work, ".github/workflows"), 0o755))
	check(t, os.WriteFile(filepath.Join(work, ".github/workflows/ci.yml"), []byte("on: push\n"), 0o644))
	w.mustGit(work, "add", ".")
	w.mustGit(work, "commit", "-q", "-m", "CI")
	out, err := w.git(work, "push", "origin", "HEAD:refs/heads/ci")
	if err == nil || !strings.Contains(out, "without `workflows` permission") {
		t.Errorf("a push of a workflow file: %v %s", err, out)
	}
	w.mustGit(work, "push", "-q", "origin", "HEAD~1:refs/heads/fine")
	if _, err := w.Sim.As("alice").PushCommit(repo, simgithub.Commit{
		Branch: "ci", Message: "CI", Files: map[string]string{".github/workflows/ci.yml": "on: push\n"},
	}); err != nil {
		t.Errorf("push by a person: %v", err)
	}
}

func TestReadingContents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	file, _, _, err := w.bot.Repositories.GetContents(ctx, "octo", "calc", "calc.go", nil)
	check(t, err)
	text, err := file.GetContent()
	check(t, err)
	if !strings.Contains(text, "func Add") {
		t.Errorf("got content %q", text)
	}
	_, dir, _, err := w.bot.Repositories.GetContents(ctx, "octo", "calc", "", nil)
	check(t, err)
	if len(dir) != 2 || dir[0].GetName() != "README.md" || dir[0].GetType() != "file" {
		t.Errorf("got root folder %v", dir)
	}
	_, _, _, err = w.bot.Repositories.GetContents(ctx, "octo", "calc", ".errand.yml", nil)
	if status(err) != 404 {
		t.Errorf("a missing file: %v", err)
	}
	b, _, err := w.bot.Repositories.GetBranch(ctx, "octo", "calc", "main", 0)
	check(t, err)
	if b.GetCommit().GetSHA() != w.head("main") {
		t.Errorf("got branch at %s", b.GetCommit().GetSHA())
	}
	_, err = w.Owner.PushCommit(repo, simgithub.Commit{Branch: "a/b", Message: "More", Files: map[string]string{"x": "1"}})
	check(t, err)
	cmpd, _, err := w.bot.Repositories.CompareCommits(ctx, "octo", "calc", "main", "a/b", nil)
	check(t, err)
	if cmpd.GetAheadBy() != 1 || cmpd.GetBehindBy() != 0 || cmpd.GetStatus() != "ahead" || len(cmpd.Files) != 1 {
		t.Errorf("got comparison: %d ahead, %d behind, %s, %d files", cmpd.GetAheadBy(), cmpd.GetBehindBy(), cmpd.GetStatus(), len(cmpd.Files))
	}
	tree, _, err := w.bot.Git.GetTree(ctx, "octo", "calc", "a/b", true)
	check(t, err)
	if len(tree.Entries) != 3 {
		t.Errorf("got tree %v", tree.Entries)
	}
	refs, _, err := w.bot.Git.ListMatchingRefs(ctx, "octo", "calc", &github.ReferenceListOptions{Ref: "heads/a"})
	check(t, err)
	if len(refs) != 1 || refs[0].GetRef() != "refs/heads/a/b" {
		t.Errorf("got matching references %v", refs)
	}
}

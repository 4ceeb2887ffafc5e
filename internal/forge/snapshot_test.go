package forge_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/forgetest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// orgRepo creates octo/.github with one file.
func orgRepo(t *testing.T, w *forgetest.World, path, text string) {
	t.Helper()
	forgetest.Must(w.SeedRepo(simgithub.RepoSeed{Owner: "octo", Name: ".github", Files: map[string]string{path: text}}))(t)
	forgetest.Must(w.Install("octo/.github"))(t)
}

// TestIssueSnapshotIsOneRequest checks that the body, discussion, settings and default branch are read in one request.
func TestIssueSnapshotIsOneRequest(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	i := w.OpenIssue(t, "A bug")
	forgetest.Must(w.As("wendy").Comment(forgetest.FullName, i.Number, "Look at dir."))(t)
	head := forgetest.Must(w.As("octo").PushCommit(forgetest.FullName, simgithub.Commit{Branch: "main", Message: "x", Files: map[string]string{".errand.yml": "plan: none\n"}}))(t)
	forgetest.Must(w.Forge.Issue(t.Context(), w.Repo, i.Number))(t) // has a token made
	before := w.Forge.Calls(forge.ForTask)
	got := forgetest.Must(w.Forge.IssueSnapshot(t.Context(), w.Repo, i.Number, ".errand.yml"))(t)
	if n := w.Forge.Calls(forge.ForTask) - before; n != 1 {
		t.Errorf("got %d requests", n)
	}
	if got.DefaultBranch != "main" || got.Head != head || string(got.Config) != "plan: none\n" || got.OrgConfig != nil {
		t.Errorf("got branch %s at %s, settings %q and %q", got.DefaultBranch, got.Head, got.Config, got.OrgConfig)
	}
	if got.Text.Body != "It breaks." || got.Text.ID != 0 || got.Text.Node != i.NodeID || len(got.Comments) != 1 || got.Comments[0].Author.Login != "wendy" || len(got.Linked) != 0 {
		t.Errorf("got %+v", got)
	}
	if _, err := w.Forge.IssueSnapshot(t.Context(), w.Repo, 999, ".errand.yml"); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("got missing issue %v", err)
	}
	gone := w.Repo
	gone.Name = "other"
	if _, err := w.Forge.IssueSnapshot(t.Context(), gone, i.Number, ".errand.yml"); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("missing repository: %v", err)
	}
}

func TestIssueSnapshotReadsOrgFile(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	i := w.OpenIssue(t, "A bug")
	orgRepo(t, w, ".errand.yml", "plan: one-step\n")
	got := forgetest.Must(w.Forge.IssueSnapshot(t.Context(), w.Repo, i.Number, ".errand.yml"))(t)
	if got.Config != nil || string(got.OrgConfig) != "plan: one-step\n" {
		t.Errorf("got settings %q and %q", got.Config, got.OrgConfig)
	}
	w.Inject(t, simgithub.Fault{Path: "/graphql", Count: 1, Status: http.StatusOK, Body: fmt.Sprintf(
		`{"data":{"repository":{"id":"R","defaultBranchRef":null,"object":null,"issue":{"id":%q,"url":"","body":""}},"org":null},"errors":[{"type":"FORBIDDEN","path":["org"],"message":"no"}]}`, i.NodeID)})
	if got = forgetest.Must(w.Forge.IssueSnapshot(t.Context(), w.Repo, i.Number, ".errand.yml"))(t); string(got.OrgConfig) != "plan: one-step\n" {
		t.Errorf("got settings %q, although REST can read the file", got.OrgConfig)
	}
	if got = forgetest.Must(w.Forge.IssueSnapshot(t.Context(), w.Repo, i.Number, "dir"))(t); got.Config != nil {
		t.Errorf("a directory has content: got %q", got.Config)
	}
}

// TestIssueSnapshotReadsAllPages checks that all 👍, comments and pull requests are read if there are several pages.
func TestIssueSnapshotReadsAllPages(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	i := w.OpenIssue(t, "A bug")
	c := forgetest.Must(w.As("sam").Comment(forgetest.FullName, i.Number, "Me too."))(t)
	for n := range 30 {
		react(t, w, fmt.Sprintf("fan%d", n), c.ID)
	}
	for n := range 105 {
		from := w.OpenIssue(t, fmt.Sprintf("Other %d", n))
		forgetest.Must(w.As("sam").Comment(forgetest.FullName, from.Number, fmt.Sprintf("like #%d", i.Number)))(t)
	}
	pushBranch(t, w, "late")
	late := forgetest.Must(w.As("tom").OpenPull(forgetest.FullName, simgithub.NewPull{Title: "See", Body: fmt.Sprintf("About #%d", i.Number), Head: "late"}))(t)
	got := forgetest.Must(w.Forge.IssueSnapshot(t.Context(), w.Repo, i.Number, ".errand.yml"))(t)
	if len(got.Comments) != 1 || len(got.Comments[0].ThumbsUp) != 30 {
		t.Errorf("%d comments, the first with %d 👍", len(got.Comments), len(got.Comments[0].ThumbsUp))
	}
	if len(got.Linked) != 1 || got.Linked[0].Number != late.Number {
		t.Errorf("got linked pull requests %+v", got.Linked)
	}
}

// TestPlanSnapshot checks that a plan's comment, its 👍, its issue and the head of a branch are read in one request.
func TestPlanSnapshot(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	i := w.OpenIssue(t, "A bug")
	plan := forgetest.Must(w.Forge.CreateComment(t.Context(), w.Repo, i.Number, "The plan."))(t)
	react(t, w, "wendy", plan.ID)
	head := forgetest.Must(w.Forge.Head(t.Context(), w.Repo, "main"))(t)
	before := w.Forge.Calls(forge.ForTask)
	got := forgetest.Must(w.Forge.PlanSnapshot(t.Context(), w.Repo, plan.Node, "", "main"))(t)
	if n := w.Forge.Calls(forge.ForTask) - before; n != 1 {
		t.Errorf("got %d requests", n)
	}
	if got.Deleted || got.Comment.Body != "The plan." || len(got.Comment.ThumbsUp) != 1 || got.Title != "A bug" || got.Body != "It breaks." || got.Closed || got.Head != head {
		t.Errorf("got %+v", got)
	}
	if err := w.As("octo").Close(forgetest.FullName, i.Number, "completed"); err != nil {
		t.Fatal(err)
	}
	if got = forgetest.Must(w.Forge.PlanSnapshot(t.Context(), w.Repo, plan.Node, "", "nothing"))(t); !got.Closed || got.Head != "" {
		t.Errorf("got %+v", got)
	}
	if err := w.Forge.DeleteComment(t.Context(), w.Repo, plan.ID); err != nil {
		t.Fatal(err)
	}
	if got = forgetest.Must(w.Forge.PlanSnapshot(t.Context(), w.Repo, plan.Node, "", "main"))(t); !got.Deleted || got.Head != head {
		t.Errorf("got %+v", got)
	}
}

// TestPlanSnapshotHasApprovingComment checks that the comment that approved a plan is read in the same request.
func TestPlanSnapshotHasApprovingComment(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	i := w.OpenIssue(t, "A bug")
	plan := forgetest.Must(w.Forge.CreateComment(t.Context(), w.Repo, i.Number, "The plan."))(t)
	approval := forgetest.Must(w.As("wendy").Comment(forgetest.FullName, i.Number, "@errand approve"))(t)
	fromPlan := func() *forge.Comment {
		t.Helper()
		before := w.Forge.Calls(forge.ForTask)
		got := forgetest.Must(w.Forge.PlanSnapshot(t.Context(), w.Repo, plan.Node, approval.NodeID, "main"))(t)
		if n := w.Forge.Calls(forge.ForTask) - before; n != 1 {
			t.Errorf("got %d requests", n)
		}
		if got.Deleted || got.Comment.Body != "The plan." || got.Title != "A bug" {
			t.Errorf("got %+v", got)
		}
		return got.Approval
	}
	head := forgetest.Must(w.Forge.Head(t.Context(), w.Repo, "main"))(t)
	alone := func() *forge.Comment {
		t.Helper()
		v, at, err := w.Forge.CommentAndHead(t.Context(), w.Repo, approval.NodeID, "main")
		if err != nil || at != head {
			t.Errorf("the branch is at %q, error %v", at, err)
		}
		return v
	}
	if v := fromPlan(); v == nil || v.Body != "@errand approve" || v.Author.Login != "wendy" || v.Editor != nil || v.Minimized {
		t.Errorf("unedited comment: got %+v", v)
	}
	if err := w.As("octo").EditComment(forgetest.FullName, approval.ID, "Wait."); err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]*forge.Comment{"with the plan": fromPlan(), "alone": alone()} {
		if v.Body != "Wait." || v.Author.Login != "wendy" || v.Editor == nil || v.Editor.Login != "octo" {
			t.Errorf("%s, edited by another person: %+v", name, v)
		}
	}
	if err := w.Forge.Minimize(t.Context(), w.Repo.Installation, approval.NodeID); err != nil {
		t.Fatal(err)
	}
	if v := fromPlan(); v == nil || !v.Minimized {
		t.Errorf("hidden: got %+v", v)
	}
	if err := w.As("wendy").DeleteComment(forgetest.FullName, approval.ID); err != nil {
		t.Fatal(err)
	}
	if v := fromPlan(); v != nil {
		t.Errorf("deleted: got %+v", v)
	}
	if v := alone(); v != nil {
		t.Errorf("deleted: got %+v", v)
	}
	if v, at, err := w.Forge.CommentAndHead(t.Context(), w.Repo, i.NodeID, "no-such"); at != "" || err != nil {
		t.Errorf("got missing branch %+v at %q, error %v", v, at, err)
	}
}

// TestNoRelations checks that an issue has no relations only if GitHub says so.
func TestNoRelations(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	i, other := w.OpenIssue(t, "A bug"), w.OpenIssue(t, "Another")
	if got := forgetest.Must(w.Forge.Issue(t.Context(), w.Repo, i.Number))(t); !got.NoRelations {
		t.Error("NoRelations is not set for an issue without dependencies")
	}
	if err := w.As("octo").AddBlockedBy(forgetest.FullName, i.Number, other.ID); err != nil {
		t.Fatal(err)
	}
	if got := forgetest.Must(w.Forge.Issue(t.Context(), w.Repo, i.Number))(t); got.NoRelations {
		t.Error("NoRelations is set for an issue with a dependency")
	}
}

// TestCommitFilesIsOneRequest checks that the contents of files are read in one request.
func TestCommitFilesIsOneRequest(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	head := forgetest.Must(w.As("octo").PushCommit(forgetest.FullName, simgithub.Commit{Branch: "main", Message: "x", Files: map[string]string{
		"AGENTS.md": "Be brief.\n", "docs/AGENTS.md": "Be long.\n", "go.mod": "module x\n", "logo.png": "\x00",
	}}))(t)
	forgetest.Must(w.Forge.CommitFiles(t.Context(), w.Repo, head, nil))(t) // has a token made
	before := w.Forge.Calls(forge.ForTask)
	got := forgetest.Must(w.Forge.CommitFiles(t.Context(), w.Repo, head, []string{"AGENTS.md", "docs/AGENTS.md", "logo.png", "docs", "none.md"}))(t)
	if n := w.Forge.Calls(forge.ForTask) - before; n != 1 {
		t.Errorf("got %d requests", n)
	}
	if diff := cmp.Diff(map[string]string{"AGENTS.md": "Be brief.\n", "docs/AGENTS.md": "Be long.\n"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if bare := forgetest.Must(w.Forge.CommitFiles(t.Context(), w.Repo, head, nil))(t); len(bare) != 0 {
		t.Errorf("without files: got %+v", bare)
	}
	if _, err := w.Forge.CommitFiles(t.Context(), w.Repo, "0123456789012345678901234567890123456789", nil); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("missing commit: %v", err)
	}
}

// TestFilePathsOfALargeRepository: files are found although GitHub lists only a part of them at a time.
func TestFilePathsOfALargeRepository(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	files := map[string]string{"Makefile": "x\n", "web/app/package.json": "{}\n", "zoo/deep/er/Cargo.toml": "x\n"}
	for _, folder := range []string{"a", "a/b", "web/app", "zoo"} {
		for i := range 6 {
			files[fmt.Sprintf("%s/%d.txt", folder, i)] = "x\n"
		}
	}
	head := forgetest.Must(w.As("octo").PushCommit(forgetest.FullName, simgithub.Commit{Branch: "main", Message: "x", Files: files}))(t)
	all := forgetest.Must(w.Forge.FilePaths(t.Context(), w.Repo, head))(t)
	for _, most := range []int{4, 8, 12, 1000} {
		w.SetMaxTree(most)
		got := forgetest.Must(w.Forge.FilePaths(t.Context(), w.Repo, head))(t)
		slices.Sort(got)
		if !slices.Equal(got, slices.Sorted(slices.Values(all))) {
			t.Errorf("%d entries at a time: got %q, want %q", most, got, all)
		}
	}
}

// TestFilePaths checks that the paths of all files of a commit are listed, without directories.
func TestFilePaths(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	head := forgetest.Must(w.As("octo").PushCommit(forgetest.FullName, simgithub.Commit{Branch: "main", Message: "x", Files: map[string]string{
		"web/app/package.json": "{}\n", "api/go.mod": "module x\n",
	}}))(t)
	got := forgetest.Must(w.Forge.FilePaths(t.Context(), w.Repo, head))(t)
	for path, want := range map[string]bool{"web/app/package.json": true, "api/go.mod": true, "web": false, "api": false} {
		if slices.Contains(got, path) != want {
			t.Errorf("got %q, want %s among them: %v", got, path, want)
		}
	}
	if _, err := w.Forge.FilePaths(t.Context(), w.Repo, "0123456789012345678901234567890123456789"); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("missing commit: got %v, want ErrNotFound", err)
	}
}

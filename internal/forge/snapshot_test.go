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

// orgRepo makes octo/.github with one file.
func orgRepo(t *testing.T, w *forgetest.World, path, text string) {
	t.Helper()
	forgetest.Must(w.SeedRepo(simgithub.RepoSeed{Owner: "octo", Name: ".github", Files: map[string]string{path: text}}))(t)
	forgetest.Must(w.Install("octo/.github"))(t)
}

// TestOutsetIsOneRequest: text, discussion, settings and base come together, and are what they are.
func TestOutsetIsOneRequest(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	i := w.OpenIssue(t, "A bug")
	forgetest.Must(w.As("wendy").Comment(forgetest.FullName, i.Number, "Look at dir."))(t)
	head := forgetest.Must(w.As("octo").PushCommit(forgetest.FullName, simgithub.Commit{Branch: "main", Message: "x", Files: map[string]string{".errand.yml": "plan: none\n"}}))(t)
	forgetest.Must(w.Forge.Issue(t.Context(), w.Repo, i.Number))(t) // has a token made
	before := w.Forge.Calls(forge.ForTask)
	got := forgetest.Must(w.Forge.IssueSnapshot(t.Context(), w.Repo, i.Number, ".errand.yml"))(t)
	if n := w.Forge.Calls(forge.ForTask) - before; n != 1 {
		t.Errorf("%d requests", n)
	}
	if got.DefaultBranch != "main" || got.Head != head || string(got.Config) != "plan: none\n" || got.OrgConfig != nil {
		t.Errorf("branch %s at %s, settings %q and %q", got.DefaultBranch, got.Head, got.Config, got.OrgConfig)
	}
	if got.Text.Body != "It breaks." || got.Text.ID != 0 || got.Text.Node != i.NodeID || len(got.Comments) != 1 || got.Comments[0].Author.Login != "wendy" || len(got.Linked) != 0 {
		t.Errorf("got %+v", got)
	}
	if _, err := w.Forge.IssueSnapshot(t.Context(), w.Repo, 999, ".errand.yml"); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("an issue that is not there: %v", err)
	}
	gone := w.Repo
	gone.Name = "other"
	if _, err := w.Forge.IssueSnapshot(t.Context(), gone, i.Number, ".errand.yml"); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("a repository that is not there: %v", err)
	}
}

func TestOutsetReadsTheOwnersFile(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	i := w.OpenIssue(t, "A bug")
	orgRepo(t, w, ".errand.yml", "plan: one-step\n")
	got := forgetest.Must(w.Forge.IssueSnapshot(t.Context(), w.Repo, i.Number, ".errand.yml"))(t)
	if got.Config != nil || string(got.OrgConfig) != "plan: one-step\n" {
		t.Errorf("settings %q and %q", got.Config, got.OrgConfig)
	}
	w.Inject(t, simgithub.Fault{Path: "/graphql", Count: 1, Status: http.StatusOK, Body: fmt.Sprintf(
		`{"data":{"repository":{"id":"R","defaultBranchRef":null,"object":null,"issue":{"id":%q,"url":"","body":""}},"org":null},"errors":[{"type":"FORBIDDEN","path":["org"],"message":"no"}]}`, i.NodeID)})
	if got = forgetest.Must(w.Forge.IssueSnapshot(t.Context(), w.Repo, i.Number, ".errand.yml"))(t); string(got.OrgConfig) != "plan: one-step\n" {
		t.Errorf("GraphQL may not read it, REST may: settings %q", got.OrgConfig)
	}
	if got = forgetest.Must(w.Forge.IssueSnapshot(t.Context(), w.Repo, i.Number, "dir"))(t); got.Config != nil {
		t.Errorf("a folder has content: %q", got.Config)
	}
}

// TestOutsetOfACrowd: no 👍, no comment and no pull request is cut off, however many there are.
func TestOutsetOfACrowd(t *testing.T) {
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
		t.Errorf("linked: %+v", got.Linked)
	}
}

// TestStanding: a plan's comment, its 👍, its issue and the base in one request.
func TestStanding(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	i := w.OpenIssue(t, "A bug")
	plan := forgetest.Must(w.Forge.CreateComment(t.Context(), w.Repo, i.Number, "The plan."))(t)
	react(t, w, "wendy", plan.ID)
	head := forgetest.Must(w.Forge.Head(t.Context(), w.Repo, "main"))(t)
	before := w.Forge.Calls(forge.ForTask)
	got := forgetest.Must(w.Forge.PlanSnapshot(t.Context(), w.Repo, plan.Node, "", "main"))(t)
	if n := w.Forge.Calls(forge.ForTask) - before; n != 1 {
		t.Errorf("%d requests", n)
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

// TestStandingOfWhatWasSaid: with a plan's comment, the comment that approved it is read as it is now, in the same request.
func TestStandingOfWhatWasSaid(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	i := w.OpenIssue(t, "A bug")
	plan := forgetest.Must(w.Forge.CreateComment(t.Context(), w.Repo, i.Number, "The plan."))(t)
	said := forgetest.Must(w.As("wendy").Comment(forgetest.FullName, i.Number, "@errand approve"))(t)
	standing := func() *forge.Comment {
		t.Helper()
		before := w.Forge.Calls(forge.ForTask)
		got := forgetest.Must(w.Forge.PlanSnapshot(t.Context(), w.Repo, plan.Node, said.NodeID, "main"))(t)
		if n := w.Forge.Calls(forge.ForTask) - before; n != 1 {
			t.Errorf("%d requests", n)
		}
		if got.Deleted || got.Comment.Body != "The plan." || got.Title != "A bug" {
			t.Errorf("got %+v", got)
		}
		return got.Approval
	}
	head := forgetest.Must(w.Forge.Head(t.Context(), w.Repo, "main"))(t)
	alone := func() *forge.Comment {
		t.Helper()
		v, at, err := w.Forge.CommentAndHead(t.Context(), w.Repo, said.NodeID, "main")
		if err != nil || at != head {
			t.Errorf("the branch is at %q, error %v", at, err)
		}
		return v
	}
	if v := standing(); v == nil || v.Body != "@errand approve" || v.Author.Login != "wendy" || v.Editor != nil || v.Minimized {
		t.Errorf("as it was written: %+v", v)
	}
	if err := w.As("octo").EditComment(forgetest.FullName, said.ID, "Wait."); err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]*forge.Comment{"standing": standing(), "alone": alone()} {
		if v.Body != "Wait." || v.Author.Login != "wendy" || v.Editor == nil || v.Editor.Login != "octo" {
			t.Errorf("%s, edited by somebody else: %+v", name, v)
		}
	}
	if err := w.Forge.Minimize(t.Context(), w.Repo.Installation, said.NodeID); err != nil {
		t.Fatal(err)
	}
	if v := standing(); v == nil || !v.Minimized {
		t.Errorf("hidden: %+v", v)
	}
	if err := w.As("wendy").DeleteComment(forgetest.FullName, said.ID); err != nil {
		t.Fatal(err)
	}
	if v := standing(); v != nil {
		t.Errorf("deleted: %+v", v)
	}
	if v := alone(); v != nil {
		t.Errorf("deleted: %+v", v)
	}
	if v, at, err := w.Forge.CommentAndHead(t.Context(), w.Repo, i.NodeID, "no-such"); at != "" || err != nil {
		t.Errorf("no such branch: %+v at %q, error %v", v, at, err)
	}
}

// TestAlone: only a GitHub that says so makes an issue one without dependencies.
func TestAlone(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	i, other := w.OpenIssue(t, "A bug"), w.OpenIssue(t, "Another")
	if got := forgetest.Must(w.Forge.Issue(t.Context(), w.Repo, i.Number))(t); !got.NoRelations {
		t.Error("dependencies from nowhere")
	}
	if err := w.As("octo").AddBlockedBy(forgetest.FullName, i.Number, other.ID); err != nil {
		t.Fatal(err)
	}
	if got := forgetest.Must(w.Forge.Issue(t.Context(), w.Repo, i.Number))(t); got.NoRelations {
		t.Error("a dependency is overlooked")
	}
}

// TestBaseIsOneRequest: what is at the root and what files say come together, without files too.
func TestBaseIsOneRequest(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	head := forgetest.Must(w.As("octo").PushCommit(forgetest.FullName, simgithub.Commit{Branch: "main", Message: "x", Files: map[string]string{
		"AGENTS.md": "Be brief.\n", "docs/AGENTS.md": "Be long.\n", "go.mod": "module x\n", "logo.png": "\x00",
	}}))(t)
	forgetest.Must(w.Forge.CommitFiles(t.Context(), w.Repo, head, nil))(t) // has a token made
	before := w.Forge.Calls(forge.ForTask)
	got := forgetest.Must(w.Forge.CommitFiles(t.Context(), w.Repo, head, []string{"AGENTS.md", "docs/AGENTS.md", "logo.png", "docs", "none.md"}))(t)
	if n := w.Forge.Calls(forge.ForTask) - before; n != 1 {
		t.Errorf("%d requests", n)
	}
	for _, name := range []string{"AGENTS.md", "docs", "go.mod", "logo.png"} {
		if !slices.Contains(got.Names, name) {
			t.Errorf("%s is not among %q", name, got.Names)
		}
	}
	if diff := cmp.Diff(map[string]string{"AGENTS.md": "Be brief.\n", "docs/AGENTS.md": "Be long.\n"}, got.Texts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if bare := forgetest.Must(w.Forge.CommitFiles(t.Context(), w.Repo, head, nil))(t); !slices.Equal(bare.Names, got.Names) || len(bare.Texts) != 0 {
		t.Errorf("without files: %+v", bare)
	}
	if _, err := w.Forge.CommitFiles(t.Context(), w.Repo, "0123456789012345678901234567890123456789", nil); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("a commit that is not there: %v", err)
	}
}

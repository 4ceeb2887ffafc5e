package forge_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// orgRepo makes octo/.github with one file.
func orgRepo(t *testing.T, w *world, path, text string) {
	t.Helper()
	must(w.SeedRepo(simgithub.RepoSeed{Owner: "octo", Name: ".github", Files: map[string]string{path: text}}))(t)
	must(w.Install("octo/.github"))(t)
}

// TestOutsetIsOneRequest: text, discussion, settings and base come together, and are what they are.
func TestOutsetIsOneRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.issue(t, "A bug")
	must(w.As("wendy").Comment(fullName, i.Number, "Look at dir."))(t)
	head := must(w.As("octo").PushCommit(fullName, simgithub.Commit{Branch: "main", Message: "x", Files: map[string]string{".errand.yml": "plan: none\n"}}))(t)
	must(w.f.Issue(t.Context(), w.repo, i.Number))(t) // has a token made
	before := w.f.Calls(forge.ForTask)
	got := must(w.f.Outset(t.Context(), w.repo, i.Number, ".errand.yml"))(t)
	if n := w.f.Calls(forge.ForTask) - before; n != 1 {
		t.Errorf("%d requests", n)
	}
	if got.DefaultBranch != "main" || got.Head != head || string(got.Config) != "plan: none\n" || got.OrgConfig != nil {
		t.Errorf("branch %s at %s, settings %q and %q", got.DefaultBranch, got.Head, got.Config, got.OrgConfig)
	}
	if got.Text.Body != "It breaks." || got.Text.ID != 0 || got.Text.Node != i.NodeID || len(got.Comments) != 1 || got.Comments[0].Author.Login != "wendy" || len(got.Linked) != 0 {
		t.Errorf("got %+v", got)
	}
	if _, err := w.f.Outset(t.Context(), w.repo, 999, ".errand.yml"); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("an issue that is not there: %v", err)
	}
	gone := w.repo
	gone.Name = "other"
	if _, err := w.f.Outset(t.Context(), gone, i.Number, ".errand.yml"); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("a repository that is not there: %v", err)
	}
}

func TestOutsetReadsTheOwnersFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.issue(t, "A bug")
	orgRepo(t, w, ".errand.yml", "plan: one-step\n")
	got := must(w.f.Outset(t.Context(), w.repo, i.Number, ".errand.yml"))(t)
	if got.Config != nil || string(got.OrgConfig) != "plan: one-step\n" {
		t.Errorf("settings %q and %q", got.Config, got.OrgConfig)
	}
	w.fault(t, simgithub.Fault{Path: "/graphql", Count: 1, Status: http.StatusOK, Body: fmt.Sprintf(
		`{"data":{"repository":{"id":"R","defaultBranchRef":null,"object":null,"issue":{"id":%q,"url":"","body":""}},"org":null},"errors":[{"type":"FORBIDDEN","path":["org"],"message":"no"}]}`, i.NodeID)})
	if got = must(w.f.Outset(t.Context(), w.repo, i.Number, ".errand.yml"))(t); string(got.OrgConfig) != "plan: one-step\n" {
		t.Errorf("GraphQL may not read it, REST may: settings %q", got.OrgConfig)
	}
	if got = must(w.f.Outset(t.Context(), w.repo, i.Number, "dir"))(t); got.Config != nil {
		t.Errorf("a folder has content: %q", got.Config)
	}
}

// TestOutsetOfACrowd: no 👍, no comment and no pull request is cut off, however many there are.
func TestOutsetOfACrowd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.issue(t, "A bug")
	c := must(w.As("sam").Comment(fullName, i.Number, "Me too."))(t)
	for n := range 30 {
		react(t, w, fmt.Sprintf("fan%d", n), c.ID)
	}
	for n := range 105 {
		from := w.issue(t, fmt.Sprintf("Other %d", n))
		must(w.As("sam").Comment(fullName, from.Number, fmt.Sprintf("like #%d", i.Number)))(t)
	}
	w.branch(t, "late")
	late := must(w.As("tom").OpenPull(fullName, simgithub.NewPull{Title: "See", Body: fmt.Sprintf("About #%d", i.Number), Head: "late"}))(t)
	got := must(w.f.Outset(t.Context(), w.repo, i.Number, ".errand.yml"))(t)
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
	w := newWorld(t)
	i := w.issue(t, "A bug")
	plan := must(w.f.CreateComment(t.Context(), w.repo, i.Number, "The plan."))(t)
	react(t, w, "wendy", plan.ID)
	head := must(w.f.Head(t.Context(), w.repo, "main"))(t)
	before := w.f.Calls(forge.ForTask)
	got := must(w.f.Standing(t.Context(), w.repo, plan.Node, "", "main"))(t)
	if n := w.f.Calls(forge.ForTask) - before; n != 1 {
		t.Errorf("%d requests", n)
	}
	if got.Deleted || got.Comment.Body != "The plan." || len(got.Comment.ThumbsUp) != 1 || got.Title != "A bug" || got.Body != "It breaks." || got.Closed || got.Head != head {
		t.Errorf("got %+v", got)
	}
	if err := w.As("octo").Close(fullName, i.Number, "completed"); err != nil {
		t.Fatal(err)
	}
	if got = must(w.f.Standing(t.Context(), w.repo, plan.Node, "", "nothing"))(t); !got.Closed || got.Head != "" {
		t.Errorf("got %+v", got)
	}
	if err := w.f.DeleteComment(t.Context(), w.repo, plan.ID); err != nil {
		t.Fatal(err)
	}
	if got = must(w.f.Standing(t.Context(), w.repo, plan.Node, "", "main"))(t); !got.Deleted || got.Head != head {
		t.Errorf("got %+v", got)
	}
}

// TestStandingOfWhatWasSaid: with a plan's comment, the comment that approved it is read as it is now, in the same request.
func TestStandingOfWhatWasSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.issue(t, "A bug")
	plan := must(w.f.CreateComment(t.Context(), w.repo, i.Number, "The plan."))(t)
	said := must(w.As("wendy").Comment(fullName, i.Number, "@errand approve"))(t)
	standing := func() *forge.CommentView {
		t.Helper()
		before := w.f.Calls(forge.ForTask)
		got := must(w.f.Standing(t.Context(), w.repo, plan.Node, said.NodeID, "main"))(t)
		if n := w.f.Calls(forge.ForTask) - before; n != 1 {
			t.Errorf("%d requests", n)
		}
		if got.Deleted || got.Comment.Body != "The plan." || got.Title != "A bug" {
			t.Errorf("got %+v", got)
		}
		return got.Said
	}
	head := must(w.f.Head(t.Context(), w.repo, "main"))(t)
	alone := func() *forge.CommentView {
		t.Helper()
		v, at, err := w.f.Said(t.Context(), w.repo, said.NodeID, "main")
		if err != nil || at != head {
			t.Errorf("the branch is at %q, error %v", at, err)
		}
		return v
	}
	if v := standing(); v == nil || v.Body != "@errand approve" || v.Author.Login != "wendy" || v.Editor != nil || v.Minimised {
		t.Errorf("as it was written: %+v", v)
	}
	if err := w.As("octo").EditComment(fullName, said.ID, "Wait."); err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]*forge.CommentView{"standing": standing(), "alone": alone()} {
		if v.Body != "Wait." || v.Author.Login != "wendy" || v.Editor == nil || v.Editor.Login != "octo" {
			t.Errorf("%s, edited by somebody else: %+v", name, v)
		}
	}
	if err := w.f.Minimise(t.Context(), w.repo.Installation, said.NodeID); err != nil {
		t.Fatal(err)
	}
	if v := standing(); v == nil || !v.Minimised {
		t.Errorf("hidden: %+v", v)
	}
	if err := w.As("wendy").DeleteComment(fullName, said.ID); err != nil {
		t.Fatal(err)
	}
	if v := standing(); v != nil {
		t.Errorf("deleted: %+v", v)
	}
	if v := alone(); v != nil {
		t.Errorf("deleted: %+v", v)
	}
	if v, at, err := w.f.Said(t.Context(), w.repo, i.NodeID, "no-such"); at != "" || err != nil {
		t.Errorf("no such branch: %+v at %q, error %v", v, at, err)
	}
}

// TestAlone: only a GitHub that says so makes an issue one without dependencies.
func TestAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i, other := w.issue(t, "A bug"), w.issue(t, "Another")
	if got := must(w.f.Issue(t.Context(), w.repo, i.Number))(t); !got.Alone {
		t.Error("dependencies from nowhere")
	}
	if err := w.As("octo").AddBlockedBy(fullName, i.Number, other.ID); err != nil {
		t.Fatal(err)
	}
	if got := must(w.f.Issue(t.Context(), w.repo, i.Number))(t); got.Alone {
		t.Error("a dependency is overlooked")
	}
}

// TestBaseIsOneRequest: what is at the root and what files say come together, without files too.
func TestBaseIsOneRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	head := must(w.As("octo").PushCommit(fullName, simgithub.Commit{Branch: "main", Message: "x", Files: map[string]string{
		"AGENTS.md": "Be brief.\n", "docs/AGENTS.md": "Be long.\n", "go.mod": "module x\n", "logo.png": "\x00",
	}}))(t)
	must(w.f.Base(t.Context(), w.repo, head, nil))(t) // has a token made
	before := w.f.Calls(forge.ForTask)
	got := must(w.f.Base(t.Context(), w.repo, head, []string{"AGENTS.md", "docs/AGENTS.md", "logo.png", "docs", "none.md"}))(t)
	if n := w.f.Calls(forge.ForTask) - before; n != 1 {
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
	if bare := must(w.f.Base(t.Context(), w.repo, head, nil))(t); !slices.Equal(bare.Names, got.Names) || len(bare.Texts) != 0 {
		t.Errorf("without files: %+v", bare)
	}
	if _, err := w.f.Base(t.Context(), w.repo, "0123456789012345678901234567890123456789", nil); !errors.Is(err, forge.ErrNotFound) {
		t.Errorf("a commit that is not there: %v", err)
	}
}

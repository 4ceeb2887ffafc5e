package simgithub_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// do sends a request for which go-github has no method.
func do(t *testing.T, c *github.Client, method, path string, body any) (status int, out map[string]any) {
	t.Helper()
	req, err := c.NewRequest(method, path, body)
	check(t, err)
	resp, err := c.Do(t.Context(), req, &out)
	if resp == nil {
		t.Fatal(err)
	}
	return resp.StatusCode, out
}

func TestRelationsByREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, second := w.Issue("First"), w.Issue("Second")
	for _, c := range []struct {
		method, path string
		body         any
		want         int
	}{
		{"POST", "repos/octo/calc/issues/1/dependencies/blocked_by", map[string]any{"issue_id": second.ID}, 201},
		{"POST", "repos/octo/calc/issues/1/dependencies/blocked_by", map[string]any{"issue_id": second.ID}, 422},
		{"POST", "repos/octo/calc/issues/1/dependencies/blocked_by", map[string]any{"issue_id": 1}, 404},
		{"DELETE", "repos/octo/calc/issues/1/dependencies/blocked_by/" + strconv.FormatInt(second.ID, 10), nil, 200},
		{"DELETE", "repos/octo/calc/issues/1/dependencies/blocked_by/" + strconv.FormatInt(second.ID, 10), nil, 404},
		{"POST", "repos/octo/calc/issues/1/sub_issues", map[string]any{"sub_issue_id": second.ID}, 201},
		{"POST", "repos/octo/calc/issues/2/sub_issues", map[string]any{"sub_issue_id": second.ID}, 404},
		{"GET", "repos/octo/calc/issues/2/parent", nil, 200},
		{"DELETE", "repos/octo/calc/issues/1/sub_issue", map[string]any{"sub_issue_id": second.ID}, 200},
		{"GET", "repos/octo/calc/issues/2/parent", nil, 404},
		{"PUT", "repos/octo/calc/issues/1/lock", map[string]any{"lock_reason": "rude"}, 422},
		{"PUT", "repos/octo/calc/issues/1/lock", map[string]any{"lock_reason": "spam"}, 204},
		{"DELETE", "repos/octo/calc/issues/1/lock", nil, 204},
	} {
		if got, _ := do(t, w.bot, c.method, c.path, c.body); got != c.want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, got, c.want)
		}
	}
	check(t, w.Owner.AddBlockedBy(repo, first.Number, second.ID))
	if _, out := do(t, w.bot, "GET", "repos/octo/calc/issues/2", nil); out["issue_dependencies_summary"].(map[string]any)["blocking"] != 1.0 {
		t.Errorf("got summary %v", out["issue_dependencies_summary"])
	}
	check(t, w.Owner.RemoveBlockedBy(repo, first.Number, second.ID))
}

func TestLabelsAssigneesAndAccounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	w.Issue("One")
	labels, _, err := w.bot.Issues.AddLabelsToIssue(ctx, "octo", "calc", 1, []string{"bug", "ready"})
	check(t, err)
	if len(labels) != 2 {
		t.Errorf("got labels %v", labels)
	}
	_, err = w.bot.Issues.RemoveLabelForIssue(ctx, "octo", "calc", 1, "bug")
	check(t, err)
	if _, err = w.bot.Issues.RemoveLabelForIssue(ctx, "octo", "calc", 1, "bug"); status(err) != 404 {
		t.Errorf("removing a missing item: %v", err)
	}
	_, _, err = w.bot.Issues.ReplaceLabelsForIssue(ctx, "octo", "calc", 1, []string{"done"})
	check(t, err)
	_, _, err = w.bot.Issues.CreateLabel(ctx, "octo", "calc", &github.Label{Name: ptr("errand"), Color: ptr("00ff00")})
	check(t, err)
	if _, _, err = w.bot.Issues.CreateLabel(ctx, "octo", "calc", &github.Label{Name: ptr("Errand")}); status(err) != 422 {
		t.Errorf("the same label twice: %v", err)
	}
	i, _, err := w.bot.Issues.AddAssignees(ctx, "octo", "calc", 1, []string{"alice"})
	check(t, err)
	if i.GetAssignee().GetLogin() != "alice" || len(i.Labels) != 1 || i.Labels[0].GetName() != "done" {
		t.Errorf("got issue %v", i)
	}
	for login, want := range map[string]bool{"alice": true, "eve": false, "errand[bot]": false} {
		if ok, _, err := w.bot.Issues.IsAssignee(ctx, "octo", "calc", login); err != nil || ok != want {
			t.Errorf("%s assignable: %v, %v", login, ok, err)
		}
	}
	people, _, err := w.bot.Issues.ListAssignees(ctx, "octo", "calc", nil)
	check(t, err)
	if diff := cmp.Diff([]string{"alice", "octo", "rob", "tina"}, logins(people)); diff != "" {
		t.Errorf("assignable (-want +got):\n%s", diff)
	}
	me, _, err := w.human("alice").Users.Get(ctx, "")
	check(t, err)
	if me.GetLogin() != "alice" {
		t.Errorf("got me %v", me)
	}
	limits, _, err := w.bot.RateLimit.Get(ctx)
	check(t, err)
	if limits.GetCore().Limit != 5000 {
		t.Errorf("got limits %v", limits)
	}
}

func TestRenamedAndRemovedRepositories(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Settled()
	check(t, w.Sim.RenameRepo(repo, "calculator"))
	r, _, err := w.bot.Repositories.Get(t.Context(), "octo", "calc")
	check(t, err)
	if r.GetFullName() != "octo/calculator" {
		t.Errorf("the old address redirects to %s", r.GetFullName())
	}
	if diff := cmp.Diff([]string{"repository.renamed"}, w.Settled()); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
	i, err := w.Owner.OpenIssue("octo/calculator", simgithub.NewIssue{Title: "Still here"})
	check(t, err)
	_, err = w.Sim.SeedRepo(simgithub.RepoSeed{Owner: "octo", Name: "old"})
	check(t, err)
	check(t, second(w.Owner.OpenIssue("octo/old", simgithub.NewIssue{Title: "Too late"})))
	check(t, w.Sim.ArchiveRepo("octo/old"))
	_, _, err = w.bot.Issues.CreateComment(t.Context(), "octo", "old", 1, &github.IssueComment{Body: ptr("x")})
	if status(err) != 403 || !strings.Contains(err.Error(), "archived") {
		t.Errorf("the App writes to an archived repository: got %v", err)
	}
	w.Settled()
	check(t, w.Sim.RemoveFromInstallation("octo/calculator"))
	if _, _, err := w.bot.Issues.CreateComment(t.Context(), "octo", "calculator", i.Number, &github.IssueComment{Body: ptr("x")}); status(err) != 403 {
		t.Errorf("writing without installation: %v", err)
	}
	check(t, w.Sim.ArchiveRepo("octo/calculator"))
	if _, err := w.Owner.Comment("octo/calculator", i.Number, "x"); status(err) != 403 {
		t.Errorf("writing into an archived repository: %v", err)
	}
	if diff := cmp.Diff([]string{"installation_repositories.removed"}, w.Settled()); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
}

func TestHistoryOfARepository(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	i := w.Issue("Close me by a commit")
	sha, err := w.Owner.PushCommit(repo, simgithub.Commit{Branch: "main", Message: "Fixes #1", Files: map[string]string{"x": "1"}, Delete: []string{"README.md"}})
	check(t, err)
	if got, _ := w.Owner.Issue(repo, i.Number); got.State != "closed" {
		t.Errorf("the issue is %s", got.State)
	}
	list, _, err := w.bot.Repositories.ListCommits(ctx, "octo", "calc", nil)
	check(t, err)
	if len(list) != 2 || list[0].GetSHA() != sha {
		t.Errorf("got commits %v", list)
	}
	c, _, err := w.bot.Git.GetCommit(ctx, "octo", "calc", sha)
	check(t, err)
	full, _, err := w.bot.Repositories.GetCommit(ctx, "octo", "calc", sha, nil)
	check(t, err)
	if c.GetMessage() != "Fixes #1" || len(full.Files) != 2 || full.GetStats().GetTotal() != 2 {
		t.Errorf("commit %v with %d files, stats %v", c.GetMessage(), len(full.Files), full.GetStats())
	}
	branches, _, err := w.bot.Repositories.ListBranches(ctx, "octo", "calc", nil)
	check(t, err)
	files, err := w.Owner.Files(repo, "main")
	check(t, err)
	if diff := cmp.Diff([]string{"calc.go", "x"}, files); diff != "" || len(branches) != 1 {
		t.Errorf("%d branches; files (-want +got):\n%s", len(branches), diff)
	}
	blob, _, err := w.bot.Git.GetBlob(ctx, "octo", "calc", full.Files[1].GetSHA())
	check(t, err)
	if blob.GetSize() != 1 {
		t.Errorf("got blob %v", blob)
	}
	_, _, err = w.bot.Git.UpdateRef(ctx, "octo", "calc", &github.Reference{Ref: ptr("heads/main"), Object: &github.GitObject{SHA: list[1].SHA}}, false)
	if status(err) != 422 {
		t.Errorf("moving backwards without force: %v", err)
	}
	ref, _, err := w.bot.Git.UpdateRef(ctx, "octo", "calc", &github.Reference{Ref: ptr("heads/main"), Object: &github.GitObject{SHA: list[1].SHA}}, true)
	check(t, err)
	if ref.GetObject().GetSHA() != list[1].GetSHA() || len(w.Owner.Repos()) != 1 {
		t.Errorf("got reference %v", ref)
	}
}

func TestConversationOfAPullRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.Pull("octo", "fix", map[string]string{"a": "a\n"}, "")
	check(t, second(w.Owner.Comment(repo, p.Number, "first")))
	alice := w.Sim.As("alice")
	k, err := alice.CommentOnLine(repo, p.Number, simgithub.NewReviewComment{Path: "a", Line: 1, Body: "second"})
	check(t, err)
	check(t, w.Owner.AddLabels(repo, p.Number, "third"))
	check(t, w.Owner.ReactToReviewComment(repo, p.Number, k.ID, "heart"))
	check(t, w.Owner.ReactToReviewComment(repo, p.Number, k.ID, "eyes"))
	check(t, w.Owner.UnreactToReviewComment(repo, p.Number, k.ID, "eyes"))
	check(t, alice.EditReviewComment(repo, p.Number, k.ID, "second, edited"))
	i, err := w.Owner.Issue(repo, p.Number)
	check(t, err)
	var got []string
	for _, e := range i.Conversation() {
		switch {
		case e.Comment != nil:
			got = append(got, "comment "+e.Comment.Body)
		case e.Event != nil:
			got = append(got, e.Event.Event+" "+e.Event.Label)
		case e.Review != nil:
			got = append(got, "review "+e.Review.State)
		case e.Thread != nil:
			got = append(got, "thread "+e.Thread.Comments[0].Body+" "+e.Thread.Comments[0].Reactions[0].Content)
		}
	}
	want := []string{"comment first", "review COMMENTED", "thread second, edited heart", "labeled third"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conversation (-want +got):\n%s", diff)
	}
	c, files, err := w.Owner.CommitFiles(repo, "fix")
	check(t, err)
	if c.Author != "octo" || len(files) != 1 || files[0].Patch != "@@ -0,0 +1 @@\n+a" {
		t.Errorf("commit %+v with %+v", c, files)
	}
	check(t, alice.DeleteReviewComment(repo, p.Number, k.ID))
	if i, _ = w.Owner.Issue(repo, p.Number); len(i.Pull.Threads) != 0 {
		t.Errorf("got threads %v", i.Pull.Threads)
	}
}

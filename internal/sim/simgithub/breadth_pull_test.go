package simgithub_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v66/github"
)

func TestReviewsByREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	p := w.Pull("octo", "fix", map[string]string{"calc.go": fixed}, "")
	alice := w.human("alice")
	w.Settled()
	v, _, err := alice.PullRequests.CreateReview(ctx, "octo", "calc", p.Number, &github.PullRequestReviewRequest{
		Body: ptr("draft"), Comments: []*github.DraftReviewComment{{Path: ptr("calc.go"), Line: ptr(4), Body: ptr("hm")}},
	})
	check(t, err)
	if v.GetState() != "PENDING" || len(w.Settled()) != 0 {
		t.Errorf("a pending review is silent; state %s", v.GetState())
	}
	if list, _, _ := w.bot.PullRequests.ListReviews(ctx, "octo", "calc", p.Number, nil); len(list) != 0 {
		t.Errorf("others see a pending review: %v", list)
	}
	v, _, err = alice.PullRequests.SubmitReview(ctx, "octo", "calc", p.Number, v.GetID(), &github.PullRequestReviewRequest{Event: ptr("REQUEST_CHANGES")})
	check(t, err)
	comments, _, err := w.bot.PullRequests.ListReviewComments(ctx, "octo", "calc", p.Number, v.GetID(), nil)
	check(t, err)
	if v.GetState() != "CHANGES_REQUESTED" || len(comments) != 1 {
		t.Errorf("got submitted review %s with %d comments", v.GetState(), len(comments))
	}
	id := comments[0].GetID()
	_, _, err = w.bot.Reactions.CreatePullRequestCommentReaction(ctx, "octo", "calc", id, "eyes")
	check(t, err)
	_, _, err = alice.PullRequests.EditComment(ctx, "octo", "calc", id, &github.PullRequestComment{Body: ptr("hm!")})
	check(t, err)
	k, _, err := w.bot.PullRequests.GetComment(ctx, "octo", "calc", id)
	check(t, err)
	if k.GetBody() != "hm!" || k.Reactions.GetEyes() != 1 {
		t.Errorf("got comment %v", k)
	}
	line, _, err := alice.PullRequests.CreateComment(ctx, "octo", "calc", p.Number, &github.PullRequestComment{
		Body: ptr("and here"), CommitID: ptr(p.Pull.HeadSHA), Path: ptr("calc.go"), Line: ptr(3), Side: ptr("RIGHT"),
	})
	check(t, err)
	_, err = alice.PullRequests.DeleteComment(ctx, "octo", "calc", line.GetID())
	check(t, err)
	dismissal := &github.PullRequestReviewDismissalRequest{Message: ptr("done")}
	_, _, err = w.human("octo").PullRequests.DismissReview(ctx, "octo", "calc", p.Number, v.GetID(), dismissal)
	check(t, err)
	got, _, err := w.bot.PullRequests.GetReview(ctx, "octo", "calc", p.Number, v.GetID())
	check(t, err)
	want := []string{
		"pull_request_review.submitted", "pull_request_review_comment.created", "pull_request_review_comment.edited",
		"pull_request_review.submitted", "pull_request_review_comment.created", "pull_request_review_comment.deleted",
		"pull_request_review.dismissed",
	}
	if diff := cmp.Diff(want, w.Settled()); diff != "" || got.GetState() != "DISMISSED" {
		t.Errorf("state %s; webhooks (-want +got):\n%s", got.GetState(), diff)
	}
}

func TestPullRequestsByREST(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	p := w.Pull("octo", "fix", map[string]string{"calc.go": fixed}, "")
	edited, _, err := w.bot.PullRequests.Edit(ctx, "octo", "calc", p.Number, &github.PullRequest{Title: ptr("Better"), Body: ptr("More")})
	check(t, err)
	if edited.GetTitle() != "Better" || edited.GetBody() != "More" {
		t.Errorf("got edited pull request %v", edited)
	}
	if got := w.Settled(); !slices.Contains(got, "pull_request.edited") || slices.Contains(got, "issues.edited") {
		t.Errorf("webhooks of an edit: %v", got)
	}
	commits, _, err := w.bot.PullRequests.ListCommits(ctx, "octo", "calc", p.Number, nil)
	check(t, err)
	if len(commits) != 1 || commits[0].GetAuthor().GetLogin() != "octo" {
		t.Errorf("got commits %v", commits)
	}
	diff, _, err := w.bot.PullRequests.GetRaw(ctx, "octo", "calc", p.Number, github.RawOptions{Type: github.Diff})
	check(t, err)
	if !strings.Contains(diff, "+\treturn a + b") {
		t.Errorf("got diff %q", diff)
	}
	_, _, err = w.bot.PullRequests.RequestReviewers(ctx, "octo", "calc", p.Number, github.ReviewersRequest{Reviewers: []string{"alice"}})
	check(t, err)
	asked, _, err := w.bot.PullRequests.ListReviewers(ctx, "octo", "calc", p.Number, nil)
	check(t, err)
	if len(asked.Users) != 1 {
		t.Errorf("got requested reviewers %v", asked.Users)
	}
	_, err = w.bot.PullRequests.RemoveReviewers(ctx, "octo", "calc", p.Number, github.ReviewersRequest{Reviewers: []string{"alice"}})
	check(t, err)
	if merged, _, _ := w.bot.PullRequests.IsMerged(ctx, "octo", "calc", p.Number); merged {
		t.Error("got a merged pull request, want an open one")
	}
	_, _, err = w.human("alice").Repositories.CreateStatus(ctx, "octo", "calc", p.Pull.HeadSHA, &github.RepoStatus{State: ptr("success"), Context: ptr("ci")})
	check(t, err)
	state, _, err := w.bot.Repositories.GetCombinedStatus(ctx, "octo", "calc", "fix", nil)
	check(t, err)
	if state.GetState() != "success" || state.GetTotalCount() != 1 {
		t.Errorf("got status %v", state)
	}
	check(t, w.Owner.Close(repo, p.Number, ""))
	check(t, w.Owner.Reopen(repo, p.Number))
	check(t, w.Owner.SetDraft(repo, p.Number, true))
	view, err := w.Owner.PullView(repo, p.Number)
	check(t, err)
	if !view.Mergeable || view.State != "draft" || len(view.Files) != 1 || len(view.Commits) != 1 || len(view.Statuses) != 1 {
		t.Errorf("got view %+v", view)
	}
}

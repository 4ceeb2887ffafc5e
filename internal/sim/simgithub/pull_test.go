package simgithub_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

const fixed = "package calc\n\nfunc Add(a, b int) int {\n\treturn a + b\n}\n"

// judged reads a pull request until its mergeability is known, because the first read after a change starts its
// computation.
func (w *world) judged(number int) *github.PullRequest {
	w.T.Helper()
	for range 3 {
		p, _, err := w.bot.PullRequests.Get(w.T.Context(), "octo", "calc", number)
		check(w.T, err)
		if p.Mergeable != nil {
			return p
		}
	}
	w.T.Fatal("timeout while waiting for mergeability")
	return nil
}

func TestPullRequestLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	issue := w.Issue("Add is wrong")
	_, err := w.Owner.PushCommit(repo, simgithub.Commit{Branch: "fix", Message: "Fix", Files: map[string]string{"calc.go": fixed}})
	check(t, err)
	w.Settled()
	p, _, err := w.bot.PullRequests.Create(ctx, "octo", "calc", &github.NewPullRequest{
		Title: ptr("Fix Add"), Head: ptr("fix"), Base: ptr("main"), Body: ptr("Fixes #1"), Draft: ptr(true),
	})
	check(t, err)
	if p.Mergeable != nil || p.GetMergeableState() != "unknown" {
		t.Errorf("mergeability of a new pull request: got %v, %s, want unknown", p.GetMergeable(), p.GetMergeableState())
	}
	p = w.judged(p.GetNumber())
	if !p.GetMergeable() || p.GetChangedFiles() != 1 || p.GetAdditions() != 1 || p.GetDeletions() != 1 || p.GetCommits() != 1 {
		t.Errorf("got pull request mergeable=%v files=%d +%d -%d commits=%d", p.GetMergeable(), p.GetChangedFiles(), p.GetAdditions(), p.GetDeletions(), p.GetCommits())
	}
	_, _, err = w.bot.PullRequests.Merge(ctx, "octo", "calc", p.GetNumber(), "", nil)
	if status(err) != 405 {
		t.Errorf("merging a draft: %v", err)
	}
	var got struct {
		MarkPullRequestReadyForReview struct{ PullRequest struct{ IsDraft bool } }
	}
	errs := w.graphql(`mutation($id:ID!){ markPullRequestReadyForReview(input:{pullRequestId:$id}){ pullRequest{ isDraft } } }`,
		map[string]any{"id": p.GetNodeID()}, &got)
	if len(errs) != 0 || got.MarkPullRequestReadyForReview.PullRequest.IsDraft {
		t.Errorf("ready for review: %+v", errs)
	}
	_, err = w.Owner.PushCommit(repo, simgithub.Commit{Branch: "fix", Message: "More", Files: map[string]string{"b.txt": "b"}})
	check(t, err)
	res, _, err := w.human("alice").PullRequests.Merge(ctx, "octo", "calc", p.GetNumber(), "", nil)
	check(t, err)
	if !res.GetMerged() || w.head("main") != res.GetSHA() {
		t.Errorf("got merged=%v, main at %s, merge commit %s", res.GetMerged(), w.head("main"), res.GetSHA())
	}
	want := []string{
		"pull_request.opened", "pull_request.ready_for_review", "push", "check_suite.requested", "pull_request.synchronize",
		"pull_request.closed", "issues.closed", "push", "check_suite.requested",
	}
	if diff := cmp.Diff(want, w.Settled()); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
	content, err := w.Owner.File(repo, "main", "calc.go")
	check(t, err)
	if string(content) != fixed {
		t.Errorf("got %q on main", content)
	}
	after, err := w.Owner.Issue(repo, issue.Number)
	check(t, err)
	if after.State != "closed" || after.ClosedBy != "alice" {
		t.Errorf("got issue %s by %q", after.State, after.ClosedBy)
	}
}

func TestPullRequestRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.Pull("alice", "one", map[string]string{"a": "a"}, "")
	check(t, func() error {
		_, err := w.Owner.PushCommit(repo, simgithub.Commit{Branch: "two", Message: "x", Files: map[string]string{"b": "b"}})
		return err
	}())
	open := func(head, base string) error {
		_, _, err := w.bot.PullRequests.Create(t.Context(), "octo", "calc", &github.NewPullRequest{Title: ptr("t"), Head: &head, Base: &base})
		return err
	}
	ask := func(login string) error {
		_, _, err := w.bot.PullRequests.RequestReviewers(t.Context(), "octo", "calc", p.Number, github.ReviewersRequest{Reviewers: []string{login}})
		return err
	}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a duplicate":            {open("one", "main"), "A pull request already exists for octo:one."},
		"no commits":             {open("main", "main"), "No commits between main and main"},
		"a missing branch":       {open("none", "main"), "head"},
		"a review by the author": {ask("alice"), "author"},
		"a review by a user who is not a collaborator": {ask("eve"), "not a collaborator"},
		"an approval by the author":                    {second(w.Sim.As("alice").Review(repo, p.Number, simgithub.NewReview{Event: "APPROVE"})), "your own"},
		"a comment outside the diff":                   {second(w.Owner.CommentOnLine(repo, p.Number, simgithub.NewReviewComment{Path: "calc.go", Line: 1, Body: "x"})), "part of the diff"},
		"reopening with a merged branch":               {w.Owner.Merge(repo, p.Number, simgithub.Merge{Method: "sideways"}), "merge_method"},
	} {
		if c.err == nil || status(c.err) != 422 || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: got %v, want a 422 with %q", name, c.err, c.want)
		}
	}
	if err := ask("tina"); err != nil {
		t.Errorf("a review request for a collaborator: %v", err)
	}
	list, _, err := w.bot.PullRequests.List(t.Context(), "octo", "calc", &github.PullRequestListOptions{Head: "octo:one", State: "all"})
	check(t, err)
	if len(list) != 1 || list[0].GetNumber() != p.Number {
		t.Errorf("list by head: got %v", list)
	}
}

func second[T any](_ T, err error) error { return err }

func TestConflictsAndClosedPullRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.Pull("alice", "mine", map[string]string{"calc.go": fixed}, "")
	_, err := w.Owner.PushCommit(repo, simgithub.Commit{Branch: "main", Message: "Theirs", Files: map[string]string{"calc.go": "package calc\n"}})
	check(t, err)
	got := w.judged(p.Number)
	if got.GetMergeable() || got.GetMergeableState() != "dirty" {
		t.Errorf("mergeable=%v state=%s", got.GetMergeable(), got.GetMergeableState())
	}
	if err := w.Owner.Merge(repo, p.Number, simgithub.Merge{}); status(err) != 405 {
		t.Errorf("merging a conflict: %v", err)
	}
	check(t, w.Owner.DeleteBranch(repo, "mine"))
	if i, _ := w.Owner.Issue(repo, p.Number); i.State != "closed" || i.Pull.Merged {
		t.Errorf("after deleting the branch: got state %s", i.State)
	}
	if err := w.Owner.Reopen(repo, p.Number); status(err) != 422 {
		t.Errorf("reopening without a branch: %v", err)
	}
	moved := w.Pull("alice", "moved", map[string]string{"m": "m"}, "")
	check(t, w.Owner.Close(repo, moved.Number, ""))
	_, err = w.Owner.PushCommit(repo, simgithub.Commit{Branch: "moved", Message: "More", Files: map[string]string{"o": "o"}})
	check(t, err)
	if err := w.Owner.Reopen(repo, moved.Number); err != nil {
		t.Errorf("reopening with a descendant: %v", err)
	}
	check(t, w.Owner.DeleteBranch(repo, "moved"))
	_, err = w.Owner.PushCommit(repo, simgithub.Commit{Branch: "moved", Message: "Another", Files: map[string]string{"o": "o"}})
	check(t, err)
	if err := w.Owner.Reopen(repo, moved.Number); status(err) != 422 {
		t.Errorf("reopening with another branch of that name: %v", err)
	}
	q := w.Pull("alice", "next", map[string]string{"n": "n"}, "")
	head := w.head("next")
	repoState, _ := w.Sim.Snapshot().Repo(repo)
	errs := w.graphql(`mutation($in:UpdateRefsInput!){ updateRefs(input:$in){ clientMutationId } }`, map[string]any{"in": map[string]any{
		"repositoryId": repoState.NodeID, "refUpdates": []map[string]any{{"name": "refs/heads/main", "afterOid": head}},
	}}, nil)
	if i, _ := w.Owner.Issue(repo, q.Number); len(errs) != 0 || !i.Pull.Merged {
		t.Errorf("after pushing the head to the base: got %v, %+v", i.Pull.Merged, errs)
	}
}

func TestSquashAndFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.Pull("alice", "sq", map[string]string{"calc.go": fixed, "new/file.txt": "x\n"}, "")
	files, _, err := w.bot.PullRequests.ListFiles(t.Context(), "octo", "calc", p.Number, nil)
	check(t, err)
	var got []string
	for _, f := range files {
		got = append(got, f.GetStatus()+" "+f.GetFilename())
	}
	if diff := cmp.Diff([]string{"modified calc.go", "added new/file.txt"}, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(files[0].GetPatch(), "@@ -1,5 +1,5 @@") {
		t.Errorf("got patch %q", files[0].GetPatch())
	}
	check(t, w.Owner.Merge(repo, p.Number, simgithub.Merge{Method: "squash", SHA: p.Pull.HeadSHA}))
	c, _, err := w.bot.Repositories.GetCommit(t.Context(), "octo", "calc", "main", nil)
	check(t, err)
	if len(c.Parents) != 1 || !strings.HasPrefix(c.GetCommit().GetMessage(), "Pull sq (#") {
		t.Errorf("got squashed commit %q with %d parents", c.GetCommit().GetMessage(), len(c.Parents))
	}
}

// TestRebase: the base gets copies of the commits, whose changes and messages are the same.
func TestRebase(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.Pull("alice", "re", map[string]string{"calc.go": fixed}, "")
	_, err := w.Owner.PushCommit(repo, simgithub.Commit{Branch: "re", Message: "Second", Files: map[string]string{"new.txt": "x\n"}})
	check(t, err)
	_, err = w.Owner.PushCommit(repo, simgithub.Commit{Branch: "main", Message: "Theirs", Files: map[string]string{"theirs.txt": "y\n"}})
	check(t, err)
	base := w.head("main")
	check(t, w.Owner.Merge(repo, p.Number, simgithub.Merge{Method: "rebase"}))
	list, _, err := w.bot.Repositories.ListCommits(t.Context(), "octo", "calc", nil)
	check(t, err)
	if len(list) < 3 || list[0].GetCommit().GetMessage() != "Second" || len(list[1].Parents) != 1 || list[1].Parents[0].GetSHA() != base {
		t.Fatalf("got commits %+v", list)
	}
	for _, path := range []string{"new.txt", "theirs.txt"} {
		if _, err := w.Owner.File(repo, "main", path); err != nil {
			t.Errorf("%s after the rebase: %v", path, err)
		}
	}
	if i, _ := w.Owner.Issue(repo, p.Number); i.Pull.MergeCommit != list[0].GetSHA() {
		t.Errorf("got merge commit %s, want %s", i.Pull.MergeCommit, list[0].GetSHA())
	}
}

func TestWebhookPayloadOfAReview(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.Pull("octo", "fix", map[string]string{"a": "a"}, "")
	w.Settled()
	_, err := w.Sim.As("alice").Review(repo, p.Number, simgithub.NewReview{Event: "APPROVE"})
	check(t, err)
	check(t, w.Sim.WaitHooks(t.Context()))
	h, ok := w.Inbox.Last("pull_request_review.submitted")
	if !ok || !h.Valid {
		t.Fatal("got no review, or a wrong signature")
	}
	event, err := github.ParseWebHook("pull_request_review", h.Body)
	check(t, err)
	e, _ := event.(*github.PullRequestReviewEvent)
	if e.GetReview().GetState() != "approved" || e.GetSender().GetLogin() != "alice" || e.GetInstallation().GetID() == 0 {
		t.Errorf("got payload with state %q sender %q installation %d", e.GetReview().GetState(), e.GetSender().GetLogin(), e.GetInstallation().GetID())
	}
	if !json.Valid(h.Body) || h.Header.Get("X-GitHub-Delivery") == "" || !strings.HasPrefix(h.Header.Get("User-Agent"), "GitHub-Hookshot/") {
		t.Errorf("got header %v", http.Header(h.Header))
	}
}

func TestMergingTheBaseIntoTheHeadAddsNoChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.Pull("octo", "fix", map[string]string{"mine.txt": "mine\n"}, "")
	theirs, err := w.Owner.PushCommit(repo, simgithub.Commit{Branch: "main", Message: "Theirs", Files: map[string]string{"theirs.txt": "theirs\n"}})
	check(t, err)
	tree, _, err := w.bot.Git.CreateTree(t.Context(), "octo", "calc", w.head("fix"), []*github.TreeEntry{
		{Path: ptr("theirs.txt"), Mode: ptr("100644"), Type: ptr("blob"), Content: ptr("theirs\n")},
	})
	check(t, err)
	c, _, err := w.bot.Git.CreateCommit(t.Context(), "octo", "calc", &github.Commit{
		Message: ptr("Merge main"), Tree: tree, Parents: []*github.Commit{{SHA: ptr(w.head("fix"))}, {SHA: &theirs}},
	}, nil)
	check(t, err)
	_, _, err = w.bot.Git.UpdateRef(t.Context(), "octo", "calc", &github.Reference{Ref: ptr("heads/fix"), Object: &github.GitObject{SHA: c.SHA}}, false)
	check(t, err)
	view, err := w.Owner.PullView(repo, p.Number)
	check(t, err)
	if len(view.Files) != 1 || view.Files[0].Path != "mine.txt" || len(view.Commits) != 2 || !view.Mergeable {
		t.Errorf("got files %+v, %d commits", view.Files, len(view.Commits))
	}
	check(t, w.Owner.Merge(repo, p.Number, simgithub.Merge{}))
	if view, err = w.Owner.PullView(repo, p.Number); err != nil || len(view.Files) != 1 {
		t.Errorf("after the merge: got files %+v, %v", view.Files, err)
	}
}

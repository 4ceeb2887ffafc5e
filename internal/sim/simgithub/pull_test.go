package simgithub_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

const fixed = "package calc\n\nfunc Add(a, b int) int {\n\treturn a + b\n}\n"

// judged reads a pull request until its mergeability is known: the first read after a change starts that.
func (w *world) judged(number int) *github.PullRequest {
	w.t.Helper()
	for range 3 {
		p, _, err := w.bot.PullRequests.Get(w.t.Context(), "octo", "calc", number)
		check(w.t, err)
		if p.Mergeable != nil {
			return p
		}
	}
	w.t.Fatal("mergeability is never known")
	return nil
}

func TestPullRequestLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	issue := w.issue("Add is wrong")
	_, err := w.owner.PushCommit(repo, simgithub.Commit{Branch: "fix", Message: "Fix", Files: map[string]string{"calc.go": fixed}})
	check(t, err)
	w.settled()
	p, _, err := w.bot.PullRequests.Create(ctx, "octo", "calc", &github.NewPullRequest{
		Title: ptr("Fix Add"), Head: ptr("fix"), Base: ptr("main"), Body: ptr("Fixes #1"), Draft: ptr(true),
	})
	check(t, err)
	if p.Mergeable != nil || p.GetMergeableState() != "unknown" {
		t.Errorf("mergeability of a new pull request is known at once: %v, %s", p.GetMergeable(), p.GetMergeableState())
	}
	p = w.judged(p.GetNumber())
	if !p.GetMergeable() || p.GetChangedFiles() != 1 || p.GetAdditions() != 1 || p.GetDeletions() != 1 || p.GetCommits() != 1 {
		t.Errorf("pull request: mergeable=%v files=%d +%d -%d commits=%d", p.GetMergeable(), p.GetChangedFiles(), p.GetAdditions(), p.GetDeletions(), p.GetCommits())
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
	_, err = w.owner.PushCommit(repo, simgithub.Commit{Branch: "fix", Message: "More", Files: map[string]string{"b.txt": "b"}})
	check(t, err)
	res, _, err := w.human("alice").PullRequests.Merge(ctx, "octo", "calc", p.GetNumber(), "", nil)
	check(t, err)
	if !res.GetMerged() || w.head("main") != res.GetSHA() {
		t.Errorf("merged=%v, main at %s, merge commit %s", res.GetMerged(), w.head("main"), res.GetSHA())
	}
	want := []string{
		"pull_request.opened", "pull_request.ready_for_review", "push", "check_suite.requested", "pull_request.synchronize",
		"pull_request.closed", "issues.closed", "push", "check_suite.requested",
	}
	if diff := cmp.Diff(want, w.settled()); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
	content, err := w.owner.File(repo, "main", "calc.go")
	check(t, err)
	if string(content) != fixed {
		t.Errorf("main holds %q", content)
	}
	after, err := w.owner.Issue(repo, issue.Number)
	check(t, err)
	if after.State != "closed" || after.ClosedBy != "alice" {
		t.Errorf("the issue is %s by %q", after.State, after.ClosedBy)
	}
}

func TestPullRequestRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.pull("alice", "one", map[string]string{"a": "a"}, "")
	check(t, func() error {
		_, err := w.owner.PushCommit(repo, simgithub.Commit{Branch: "two", Message: "x", Files: map[string]string{"b": "b"}})
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
		"a duplicate":                    {open("one", "main"), "A pull request already exists for octo:one."},
		"no commits":                     {open("main", "main"), "No commits between main and main"},
		"a branch that is not there":     {open("none", "main"), "head"},
		"a review by the author":         {ask("alice"), "author"},
		"a review by no collaborator":    {ask("eve"), "not a collaborator"},
		"an approval of one's own":       {second(w.sim.As("alice").Review(repo, p.Number, simgithub.NewReview{Event: "APPROVE"})), "your own"},
		"a comment outside of the diff":  {second(w.owner.CommentOnLine(repo, p.Number, simgithub.NewReviewComment{Path: "calc.go", Line: 1, Body: "x"})), "part of the diff"},
		"reopening with a merged branch": {w.owner.Merge(repo, p.Number, simgithub.Merge{Method: "sideways"}), "merge_method"},
	} {
		if c.err == nil || status(c.err) != 422 || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: %v, want a 422 with %q", name, c.err, c.want)
		}
	}
	if err := ask("tina"); err != nil {
		t.Errorf("a collaborator can be asked: %v", err)
	}
	list, _, err := w.bot.PullRequests.List(t.Context(), "octo", "calc", &github.PullRequestListOptions{Head: "octo:one", State: "all"})
	check(t, err)
	if len(list) != 1 || list[0].GetNumber() != p.Number {
		t.Errorf("found by head: %v", list)
	}
}

func second[T any](_ T, err error) error { return err }

func TestConflictsAndOtherWaysToEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.pull("alice", "mine", map[string]string{"calc.go": fixed}, "")
	_, err := w.owner.PushCommit(repo, simgithub.Commit{Branch: "main", Message: "Theirs", Files: map[string]string{"calc.go": "package calc\n"}})
	check(t, err)
	got := w.judged(p.Number)
	if got.GetMergeable() || got.GetMergeableState() != "dirty" {
		t.Errorf("mergeable=%v state=%s", got.GetMergeable(), got.GetMergeableState())
	}
	if err := w.owner.Merge(repo, p.Number, simgithub.Merge{}); status(err) != 405 {
		t.Errorf("merging a conflict: %v", err)
	}
	check(t, w.owner.DeleteBranch(repo, "mine"))
	if i, _ := w.owner.Issue(repo, p.Number); i.State != "closed" || i.Pull.Merged {
		t.Errorf("deleting the branch leaves it %s", i.State)
	}
	if err := w.owner.Reopen(repo, p.Number); status(err) != 422 {
		t.Errorf("reopening without a branch: %v", err)
	}
	q := w.pull("alice", "next", map[string]string{"n": "n"}, "")
	head := w.head("next")
	repoState, _ := w.sim.Snapshot().Repo(repo)
	errs := w.graphql(`mutation($in:UpdateRefsInput!){ updateRefs(input:$in){ clientMutationId } }`, map[string]any{"in": map[string]any{
		"repositoryId": repoState.NodeID, "refUpdates": []map[string]any{{"name": "refs/heads/main", "afterOid": head}},
	}}, nil)
	if i, _ := w.owner.Issue(repo, q.Number); len(errs) != 0 || !i.Pull.Merged {
		t.Errorf("a head that arrives in the base is merged: %v, %+v", i.Pull.Merged, errs)
	}
}

func TestReviewThreads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	p := w.pull("octo", "fix", map[string]string{"calc.go": fixed, "notes.txt": "one\ntwo\n"}, "")
	w.settled()
	v, err := w.sim.As("alice").Review(repo, p.Number, simgithub.NewReview{
		Event: "REQUEST_CHANGES", Body: "Two things.", Comments: []simgithub.NewReviewComment{
			{Path: "calc.go", Line: 4, Body: "Overflow?"}, {Path: "notes.txt", Line: 2, Body: "Why?"},
		},
	})
	check(t, err)
	want := []string{"pull_request_review.submitted", "pull_request_review_comment.created", "pull_request_review_comment.created"}
	if diff := cmp.Diff(want, w.settled()); diff != "" {
		t.Errorf("webhooks of a review (-want +got):\n%s", diff)
	}
	comments, _, err := w.bot.PullRequests.ListComments(ctx, "octo", "calc", p.Number, nil)
	check(t, err)
	if len(comments) != 2 || comments[0].GetPullRequestReviewID() != v.ID || !strings.HasSuffix(comments[0].GetDiffHunk(), "+\treturn a + b") {
		t.Fatalf("comments %v", comments)
	}
	reply, _, err := w.bot.PullRequests.CreateCommentInReplyTo(ctx, "octo", "calc", p.Number, "Done", comments[0].GetID())
	check(t, err)
	if reply.GetInReplyTo() != comments[0].GetID() {
		t.Errorf("reply to %d", reply.GetInReplyTo())
	}
	_, _, err = w.bot.PullRequests.CreateCommentInReplyTo(ctx, "octo", "calc", p.Number, "Again", reply.GetID())
	if status(err) != 422 {
		t.Errorf("a reply to a reply: %v", err)
	}
	_, err = w.owner.PushCommit(repo, simgithub.Commit{Branch: "fix", Message: "Shift", Files: map[string]string{
		"calc.go": strings.Replace(fixed, "return", "return 0 +", 1), "notes.txt": "zero\none\ntwo\n",
	}})
	check(t, err)
	threads := w.threads(p.Number)
	if len(threads) != 2 || !threads[0].IsOutdated || threads[0].Line != nil || len(threads[0].Comments.Nodes) != 2 {
		t.Errorf("the first thread's line changed: %+v", threads[0])
	}
	if threads[1].IsOutdated || threads[1].Line == nil || *threads[1].Line != 3 {
		t.Errorf("the second thread moves from line 2 to 3: %+v", threads[1])
	}
	w.settled()
	errs := w.graphql(`mutation($id:ID!){ resolveReviewThread(input:{threadId:$id}){ thread{ isResolved } } }`, map[string]any{"id": threads[0].ID}, nil)
	if len(errs) != 0 || !w.threads(p.Number)[0].IsResolved {
		t.Errorf("resolving: %+v", errs)
	}
	if diff := cmp.Diff([]string{"pull_request_review_thread.resolved"}, w.settled()); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
}

type thread struct {
	ID                     string
	IsResolved, IsOutdated bool
	Path                   string
	Line                   *int
	Comments               struct {
		Nodes []struct {
			DatabaseID int64
			Body       string
			Author     struct{ Login string }
		}
	}
}

// threads reads a pull request's threads by GraphQL.
func (w *world) threads(number int) []thread {
	w.t.Helper()
	var out struct {
		Repository struct {
			PullRequest struct{ ReviewThreads struct{ Nodes []thread } }
		}
	}
	errs := w.graphql(`query($n:Int!){ repository(owner:"octo",name:"calc"){ pullRequest(number:$n){ reviewThreads(first:100){
		nodes{ id isResolved isOutdated path line comments(first:50){ nodes{ databaseId body author{ login } diffHunk createdAt } } } } } } }`,
		map[string]any{"n": number}, &out)
	if len(errs) != 0 {
		w.t.Fatalf("threads: %+v", errs)
	}
	return out.Repository.PullRequest.ReviewThreads.Nodes
}

func TestChecksOfAPullRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	p := w.pull("octo", "fix", map[string]string{"a": "a"}, "")
	sha := p.Pull.HeadSHA
	w.settled()
	_, _, err := w.bot.Checks.CreateCheckRun(ctx, "octo", "calc", github.CreateCheckRunOptions{Name: "errand", HeadSHA: sha, Status: ptr("in_progress")})
	check(t, err)
	check(t, w.sim.CheckRun(repo, sha, "build", "failure", "2 tests failed"))
	runs, _, err := w.bot.Checks.ListCheckRunsForRef(ctx, "octo", "calc", sha, nil)
	check(t, err)
	var got []string
	for _, r := range runs.CheckRuns {
		got = append(got, r.GetName()+" "+r.GetStatus()+" "+r.GetConclusion()+" "+r.GetApp().GetSlug())
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"check_run.created", "check_run.created", "check_run.completed", "check_suite.completed"}, w.settled()); diff != "" {
		t.Errorf("webhooks; the suite of the App is not complete (-want +got):\n%s", diff)
	}
	suites, _, err := w.bot.Checks.ListCheckSuitesForRef(ctx, "octo", "calc", "fix", nil)
	check(t, err)
	if suites.GetTotal() != 2 || suites.CheckSuites[1].GetConclusion() != "failure" || len(suites.CheckSuites[1].PullRequests) != 1 {
		t.Errorf("check suites %v", suites)
	}
	if diff := cmp.Diff([]string{"build completed failure github-actions", "errand in_progress  errand"}, got); diff != "" {
		t.Errorf("check runs (-want +got):\n%s", diff)
	}
	if _, _, err := w.human("alice").Checks.CreateCheckRun(ctx, "octo", "calc", github.CreateCheckRunOptions{Name: "x", HeadSHA: sha}); status(err) != 403 {
		t.Errorf("a person makes a check run: %v", err)
	}
	full := w.judged(p.Number)
	if full.GetMergeableState() != "unstable" {
		t.Errorf("state %s", full.GetMergeableState())
	}
}

func TestChecksAreTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	p := w.pull("octo", "fix", map[string]string{"a": "a"}, "")
	sha := p.Pull.HeadSHA
	_, _, err := w.bot.Checks.CreateCheckRun(ctx, "octo", "calc", github.CreateCheckRunOptions{Name: "errand", HeadSHA: sha, Status: ptr("in_progress")})
	check(t, err)
	check(t, w.sim.CheckRun(repo, sha, "build", "failure", "2 tests failed"))
	for _, conclusion := range []string{"", "success"} { // it is tried again
		check(t, w.sim.CheckRun(repo, sha, "build", conclusion, ""))
	}
	view, err := w.owner.PullView(repo, p.Number)
	check(t, err)
	if view.State != "unstable" { // the App's own run goes on
		t.Errorf("with one run to go the state is %s", view.State)
	}
	runs, _, err := w.bot.Checks.ListCheckRunsForRef(ctx, "octo", "calc", sha, nil)
	check(t, err)
	for _, r := range runs.CheckRuns {
		if r.GetStatus() != "completed" {
			_, _, err = w.bot.Checks.UpdateCheckRun(ctx, "octo", "calc", r.GetID(), github.UpdateCheckRunOptions{Name: "errand", Conclusion: ptr("neutral")})
			check(t, err)
		}
	}
	if view, _ = w.owner.PullView(repo, p.Number); view.State != "clean" {
		t.Errorf("with all runs done the state is %s", view.State)
	}
}

func TestSquashAndFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.pull("alice", "sq", map[string]string{"calc.go": fixed, "new/file.txt": "x\n"}, "")
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
		t.Errorf("patch %q", files[0].GetPatch())
	}
	check(t, w.owner.Merge(repo, p.Number, simgithub.Merge{Method: "squash", SHA: p.Pull.HeadSHA}))
	c, _, err := w.bot.Repositories.GetCommit(t.Context(), "octo", "calc", "main", nil)
	check(t, err)
	if len(c.Parents) != 1 || !strings.HasPrefix(c.GetCommit().GetMessage(), "Pull sq (#") {
		t.Errorf("squashed commit %q with %d parents", c.GetCommit().GetMessage(), len(c.Parents))
	}
}

func TestWebhookPayloadOfAReview(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.pull("octo", "fix", map[string]string{"a": "a"}, "")
	w.settled()
	_, err := w.sim.As("alice").Review(repo, p.Number, simgithub.NewReview{Event: "APPROVE"})
	check(t, err)
	check(t, w.sim.WaitHooks(t.Context()))
	h, ok := w.inbox.last("pull_request_review.submitted")
	if !ok || !h.valid {
		t.Fatal("no review arrived, or its signature is wrong")
	}
	event, err := github.ParseWebHook("pull_request_review", h.body)
	check(t, err)
	e, _ := event.(*github.PullRequestReviewEvent)
	if e.GetReview().GetState() != "approved" || e.GetSender().GetLogin() != "alice" || e.GetInstallation().GetID() == 0 {
		t.Errorf("payload: state %q sender %q installation %d", e.GetReview().GetState(), e.GetSender().GetLogin(), e.GetInstallation().GetID())
	}
	if !json.Valid(h.body) || h.header.Get("X-GitHub-Delivery") == "" || !strings.HasPrefix(h.header.Get("User-Agent"), "GitHub-Hookshot/") {
		t.Errorf("header %v", http.Header(h.header))
	}
}

func TestBaseMergedIntoTheHeadIsNoChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.pull("octo", "fix", map[string]string{"mine.txt": "mine\n"}, "")
	theirs, err := w.owner.PushCommit(repo, simgithub.Commit{Branch: "main", Message: "Theirs", Files: map[string]string{"theirs.txt": "theirs\n"}})
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
	view, err := w.owner.PullView(repo, p.Number)
	check(t, err)
	if len(view.Files) != 1 || view.Files[0].Path != "mine.txt" || len(view.Commits) != 2 || !view.Mergeable {
		t.Errorf("files %+v, %d commits", view.Files, len(view.Commits))
	}
	check(t, w.owner.Merge(repo, p.Number, simgithub.Merge{}))
	if view, err = w.owner.PullView(repo, p.Number); err != nil || len(view.Files) != 1 {
		t.Errorf("after the merge: files %+v, %v", view.Files, err)
	}
}

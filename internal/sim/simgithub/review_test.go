package simgithub_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

func TestReviewThreads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	p := w.Pull("octo", "fix", map[string]string{"calc.go": fixed, "notes.txt": "one\ntwo\n"}, "")
	w.Settled()
	v, err := w.Sim.As("alice").Review(repo, p.Number, simgithub.NewReview{
		Event: "REQUEST_CHANGES", Body: "Two things.", Comments: []simgithub.NewReviewComment{
			{Path: "calc.go", Line: 4, Body: "Overflow?"}, {Path: "notes.txt", Line: 2, Body: "Why?"},
		},
	})
	check(t, err)
	want := []string{"pull_request_review.submitted", "pull_request_review_comment.created", "pull_request_review_comment.created"}
	if diff := cmp.Diff(want, w.Settled()); diff != "" {
		t.Errorf("webhooks of a review (-want +got):\n%s", diff)
	}
	comments, _, err := w.bot.PullRequests.ListComments(ctx, "octo", "calc", p.Number, nil)
	check(t, err)
	if len(comments) != 2 || comments[0].GetPullRequestReviewID() != v.ID || !strings.HasSuffix(comments[0].GetDiffHunk(), "+\treturn a + b") {
		t.Fatalf("got comments %v", comments)
	}
	reply, _, err := w.bot.PullRequests.CreateCommentInReplyTo(ctx, "octo", "calc", p.Number, "Done", comments[0].GetID())
	check(t, err)
	if reply.GetInReplyTo() != comments[0].GetID() {
		t.Errorf("got a reply to %d", reply.GetInReplyTo())
	}
	_, _, err = w.bot.PullRequests.CreateCommentInReplyTo(ctx, "octo", "calc", p.Number, "Again", reply.GetID())
	if status(err) != 422 {
		t.Errorf("a reply to a reply: %v", err)
	}
	_, err = w.Owner.PushCommit(repo, simgithub.Commit{Branch: "fix", Message: "Shift", Files: map[string]string{
		"calc.go": strings.Replace(fixed, "return", "return 0 +", 1), "notes.txt": "zero\none\ntwo\n",
	}})
	check(t, err)
	threads := w.threads(p.Number)
	if len(threads) != 2 || !threads[0].IsOutdated || threads[0].Line != nil || len(threads[0].Comments.Nodes) != 2 {
		t.Errorf("first thread, whose line changed: got %+v", threads[0])
	}
	if threads[1].IsOutdated || threads[1].Line == nil || *threads[1].Line != 3 {
		t.Errorf("second thread: got %+v, want line 3", threads[1])
	}
	if comments, _, err = w.bot.PullRequests.ListComments(ctx, "octo", "calc", p.Number, nil); err != nil || comments[0].Line != nil {
		t.Errorf("comments of an outdated thread: got %v, error %v", comments, err)
	}
	w.Settled()
	errs := w.graphql(`mutation($id:ID!){ resolveReviewThread(input:{threadId:$id}){ thread{ isResolved } } }`, map[string]any{"id": threads[0].ID}, nil)
	if len(errs) != 0 || !w.threads(p.Number)[0].IsResolved {
		t.Errorf("resolving: %+v", errs)
	}
	if diff := cmp.Diff([]string{"pull_request_review_thread.resolved"}, w.Settled()); diff != "" {
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

// threads returns the threads of a pull request by GraphQL.
func (w *world) threads(number int) []thread {
	w.T.Helper()
	var out struct {
		Repository struct {
			PullRequest struct{ ReviewThreads struct{ Nodes []thread } }
		}
	}
	errs := w.graphql(`query($n:Int!){ repository(owner:"octo",name:"calc"){ pullRequest(number:$n){ reviewThreads(first:100){
		nodes{ id isResolved isOutdated path line comments(first:50){ nodes{ databaseId body author{ login } diffHunk createdAt } } } } } } }`,
		map[string]any{"n": number}, &out)
	if len(errs) != 0 {
		w.T.Fatalf("threads: %+v", errs)
	}
	return out.Repository.PullRequest.ReviewThreads.Nodes
}

func TestChecksOfAPullRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	p := w.Pull("octo", "fix", map[string]string{"a": "a"}, "")
	sha := p.Pull.HeadSHA
	w.Settled()
	_, _, err := w.bot.Checks.CreateCheckRun(ctx, "octo", "calc", github.CreateCheckRunOptions{Name: "errand", HeadSHA: sha, Status: ptr("in_progress")})
	check(t, err)
	check(t, w.Sim.CheckRun(repo, sha, "build", "failure", "2 tests failed"))
	runs, _, err := w.bot.Checks.ListCheckRunsForRef(ctx, "octo", "calc", sha, nil)
	check(t, err)
	var got []string
	for _, r := range runs.CheckRuns {
		got = append(got, r.GetName()+" "+r.GetStatus()+" "+r.GetConclusion()+" "+r.GetApp().GetSlug())
	}
	slices.Sort(got)
	if diff := cmp.Diff([]string{"check_run.created", "check_run.created", "check_run.completed", "check_suite.completed"}, w.Settled()); diff != "" {
		t.Errorf("webhooks before the App's suite is complete (-want +got):\n%s", diff)
	}
	suites, _, err := w.bot.Checks.ListCheckSuitesForRef(ctx, "octo", "calc", "fix", nil)
	check(t, err)
	if suites.GetTotal() != 2 || suites.CheckSuites[1].GetConclusion() != "failure" || len(suites.CheckSuites[1].PullRequests) != 1 {
		t.Errorf("got check suites %v", suites)
	}
	if diff := cmp.Diff([]string{"build completed failure github-actions", "errand in_progress  errand"}, got); diff != "" {
		t.Errorf("check runs (-want +got):\n%s", diff)
	}
	run := github.CreateCheckRunOptions{Name: "x", HeadSHA: sha}
	if _, _, err := w.human("alice").Checks.CreateCheckRun(ctx, "octo", "calc", run); status(err) != 403 {
		t.Errorf("check run by a person: got %v", err)
	}
	full := w.judged(p.Number)
	if full.GetMergeableState() != "unstable" {
		t.Errorf("got state %s", full.GetMergeableState())
	}
}

func TestLaterChecksReplaceEarlierOnes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	p := w.Pull("octo", "fix", map[string]string{"a": "a"}, "")
	sha := p.Pull.HeadSHA
	_, _, err := w.bot.Checks.CreateCheckRun(ctx, "octo", "calc", github.CreateCheckRunOptions{Name: "errand", HeadSHA: sha, Status: ptr("in_progress")})
	check(t, err)
	check(t, w.Sim.CheckRun(repo, sha, "build", "failure", "2 tests failed"))
	for _, conclusion := range []string{"", "success"} { // repeated
		check(t, w.Sim.CheckRun(repo, sha, "build", conclusion, ""))
	}
	view, err := w.Owner.PullView(repo, p.Number)
	check(t, err)
	if view.State != "unstable" { // the App's own run continues
		t.Errorf("with one run in progress: got state %s", view.State)
	}
	runs, _, err := w.bot.Checks.ListCheckRunsForRef(ctx, "octo", "calc", sha, nil)
	check(t, err)
	for _, r := range runs.CheckRuns {
		if r.GetStatus() != "completed" {
			_, _, err = w.bot.Checks.UpdateCheckRun(ctx, "octo", "calc", r.GetID(), github.UpdateCheckRunOptions{Name: "errand", Conclusion: ptr("neutral")})
			check(t, err)
		}
	}
	if view, _ = w.Owner.PullView(repo, p.Number); view.State != "clean" {
		t.Errorf("with all runs completed: got state %s", view.State)
	}
}

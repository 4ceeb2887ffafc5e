package web_test

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// A review with two line comments is written, submitted and discussed, and the pull request is merged.
func TestReviewByForms(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Issue("Add subtracts")
	w.Pull("alice", "feature/fix", map[string]string{"calc.go": "package calc\n\nfunc Add(a, b int) int {\n\treturn a + b\n}\n"}, "Closes #1")
	octo, alice := w.browse("octo"), w.browse("alice")
	w.Settled()

	right := form{act: "line", with: map[string]string{"path": "calc.go", "line": "4", "side": "RIGHT"}}
	left := form{act: "line", with: map[string]string{"path": "calc.go", "line": "4", "side": "LEFT"}}
	octo.submit("/octo/calc/pull/2/files", right, url.Values{"body": {"Why plus?"}, "when": {"review"}})
	p := octo.submit("/octo/calc/pull/2/files", left, url.Values{"body": {"This was wrong."}, "when": {"review"}})
	if !strings.Contains(p.body, "2 pending") || p.path != "/octo/calc/pull/2/files#review" {
		t.Errorf("the pending review is not shown at %s", p.path)
	}
	if got := alice.get("/octo/calc/pull/2/files"); strings.Contains(got.body, "Why plus?") {
		t.Error("alice can see a pending review")
	}
	if got := w.Settled(); len(got) > 0 || len(w.issueNow(2).Pull.Reviews) > 0 {
		t.Errorf("pending review: got webhooks %v", got)
	}

	p = octo.submit("/octo/calc/pull/2/files", form{act: "submit"}, url.Values{"event": {"REQUEST_CHANGES"}, "body": {"Two remarks."}})
	if p.status != http.StatusOK || !strings.HasPrefix(p.path, "/octo/calc/pull/2#pullrequestreview-") {
		t.Fatalf("submitting: got %d and location %s: %s", p.status, p.path, alertOf(p))
	}
	want := []string{"pull_request_review.submitted", "pull_request_review_comment.created", "pull_request_review_comment.created"}
	if diff := cmp.Diff(want, w.Settled()); diff != "" {
		t.Errorf("webhooks of submitting (-want +got):\n%s", diff)
	}
	threads := w.issueNow(2).Pull.Threads
	if len(threads) != 2 || threads[0].Side != "RIGHT" || threads[1].Side != "LEFT" || threads[0].Line != 4 {
		t.Fatalf("got threads %+v", threads)
	}
	if got := octo.get("/octo/calc/pull/2/files"); strings.Contains(got.body, "pending</span>") {
		t.Error("the submitted review is still pending")
	}

	talkInThread(t, w, alice, threads[0])
	draftAndReady(t, w, alice)
	w.Settled()
	octo.submit("/octo/calc/pull/2/files", form{act: "submit"}, url.Values{"event": {"APPROVE"}})
	p = octo.submit("/octo/calc/pull/2", form{act: "merge"}, url.Values{"method": {"squash"}})
	if i := w.issueNow(2); !i.Pull.Merged || w.issueNow(1).State != "closed" {
		t.Fatalf("not merged: %s", alertOf(p))
	}
	if got := w.Settled(); !slices.Contains(got, "pull_request.closed") || !slices.Contains(got, "pull_request_review.submitted") {
		t.Errorf("approving and merging: got webhooks %v", got)
	}
	octo.submit("/octo/calc/pull/2", form{act: "delete_branch"}, nil)
	if branches, err := w.Owner.Branches(repo); err != nil || len(branches) != 1 {
		t.Errorf("got branches %v, %v", branches, err)
	}
}

// talkInThread replies, edits, reacts, resolves and unresolves a thread.
func talkInThread(t *testing.T, w *world, b *browser, th *simgithub.Thread) {
	t.Helper()
	in := map[string]string{"thread": strconv.FormatInt(th.ID, 10)}
	p := b.submit("/octo/calc/pull/2", form{act: "reply", with: in}, url.Values{"body": {"Because."}})
	now := w.issueNow(2).Pull.Threads[0]
	if len(now.Comments) != 2 || p.path != "/octo/calc/pull/2#discussion_r"+strconv.FormatInt(now.Comments[1].ID, 10) {
		t.Fatalf("reply: got location %s: %s", p.path, alertOf(p))
	}
	on := map[string]string{"kind": "line", "id": strconv.FormatInt(now.Comments[1].ID, 10)}
	b.submit("/octo/calc/pull/2", form{act: "edit_text", with: on}, url.Values{"body": {"Because it adds."}})
	b.submit("/octo/calc/pull/2", form{act: "react", with: on}, url.Values{"content": {"heart"}})
	b.submit("/octo/calc/pull/2", form{act: "resolve", with: in}, nil)
	now = w.issueNow(2).Pull.Threads[0]
	if k := now.Comments[1]; k.Body != "Because it adds." || len(k.Reactions) != 1 || !now.Resolved || now.ResolvedBy != "alice" {
		t.Errorf("got thread %+v with %+v", now, k)
	}
	b.submit("/octo/calc/pull/2", form{act: "resolve", with: in}, nil)
	b.submit("/octo/calc/pull/2", form{act: "delete", with: on}, nil)
	if now = w.issueNow(2).Pull.Threads[0]; now.Resolved || len(now.Comments) != 1 {
		t.Errorf("got thread %+v", now)
	}
	got := w.Settled()
	for _, want := range []string{"pull_request_review_comment.edited", "pull_request_review_thread.resolved", "pull_request_review_thread.unresolved", "pull_request_review_comment.deleted"} {
		if !slices.Contains(got, want) {
			t.Errorf("webhook %s is missing in %v", want, got)
		}
	}
}

// draftAndReady converts the pull request to a draft, which cannot be merged, and back, and requests a review.
func draftAndReady(t *testing.T, w *world, b *browser) {
	t.Helper()
	b.submit("/octo/calc/pull/2", form{act: "draft"}, nil)
	if !w.issueNow(2).Pull.Draft || b.offers("/octo/calc/pull/2", form{act: "merge"}) {
		t.Error("the pull request is not a draft, or is a draft that can be merged")
	}
	b.submit("/octo/calc/pull/2", form{act: "draft"}, nil)
	b.submit("/octo/calc/pull/2", form{act: "ask"}, url.Values{"login": {"tina"}})
	if p := w.issueNow(2).Pull; p.Draft || !slices.Equal(p.RequestedReviewers, []string{"tina"}) {
		t.Errorf("got draft %v, reviewers %v", p.Draft, p.RequestedReviewers)
	}
	b.submit("/octo/calc/pull/2", form{act: "unask", with: map[string]string{"login": "tina"}}, nil)
	if p := w.issueNow(2).Pull; len(p.RequestedReviewers) != 0 {
		t.Errorf("got requested reviewers %v", p.RequestedReviewers)
	}
}

// Drafts are kept until they are submitted or discarded, also if submitting fails.
func TestPendingReview(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Pull("alice", "fix", map[string]string{"new.txt": "one\ntwo\n"}, "")
	b := w.browse("octo")
	files := "/octo/calc/pull/1/files"
	line := func(n string) form {
		return form{act: "line", with: map[string]string{"path": "new.txt", "line": n}}
	}
	b.submit(files, line("1"), url.Values{"body": {"first draft"}, "when": {"review"}})
	b.submit(files, line("2"), url.Values{"body": {"second draft"}, "when": {"review"}})
	b.submit(files, form{act: "drop", with: map[string]string{"draft": "1"}}, nil)
	p := b.get(files)
	if strings.Contains(p.body, "first draft") || !strings.Contains(p.body, "second draft") {
		t.Error("the wrong draft was discarded")
	}
	b.post("/octo/calc/pull/1", url.Values{"act": {"submit"}, "event": {"NONSENSE"}})
	if p := b.get(files); !strings.Contains(p.body, "second draft") {
		t.Error("a refused review lost its drafts")
	}
	b.submit(files, form{act: "drop", with: map[string]string{"draft": "0"}}, nil)
	if p := b.get(files); strings.Contains(p.body, "second draft") {
		t.Error("got a draft after discarding all")
	}
	b.submit(files, line("2"), url.Values{"body": {"at once"}, "when": {"now"}})
	if th := w.issueNow(1).Pull.Threads; len(th) != 1 || th[0].Comments[0].Body != "at once" {
		t.Errorf("got threads %+v", th)
	}
}

// The merge box shows checks and conflicts.
func TestMergeBox(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	i := w.Pull("alice", "fix", map[string]string{"README.md": "# other\n"}, "")
	check(t, w.Sim.CheckRun(repo, i.Pull.HeadSHA, "unit tests", "failure", "2 tests failed"))
	b := w.browse("octo")
	p := b.get("/octo/calc/pull/1")
	if !strings.Contains(p.body, "not all checks have passed") || !strings.Contains(p.body, "unit tests") {
		t.Error("the failed check is not shown")
	}
	sn := w.Sim.Snapshot()
	r, _ := sn.Repo(repo)
	run := b.get("/octo/calc/runs/" + strconv.FormatInt(r.CheckRuns[0].ID, 10))
	if run.status != http.StatusOK || !strings.Contains(run.body, "2 tests failed") {
		t.Errorf("the check's page: got %d", run.status)
	}
	_, err := w.Owner.PushCommit(repo, simgithub.Commit{Branch: "main", Message: "Clash", Files: map[string]string{"README.md": "# clash\n"}})
	check(t, err)
	p = b.get("/octo/calc/pull/1")
	if !strings.Contains(p.body, "There are conflicts") {
		t.Error("the conflict is not shown")
	}
	if got := b.post("/octo/calc/pull/1", url.Values{"act": {"merge"}}); got.status != http.StatusMethodNotAllowed || !strings.Contains(alertOf(got), "not mergeable") {
		t.Errorf("merging: got %d", got.status)
	}
}

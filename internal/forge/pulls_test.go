package forge_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forge/forgetest"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/state"
)

// pushBranch pushes a commit to a new branch, from main.
func pushBranch(t *testing.T, w *forgetest.World, name string) (head string) {
	t.Helper()
	return forgetest.Must(w.As("wendy").PushCommit(forgetest.FullName, simgithub.Commit{
		Branch: name, From: "main", Message: "Work", Files: map[string]string{"dir/a.txt": "one\ntwo\nthree\n"},
	}))(t)
}

func openPR(t *testing.T, w *forgetest.World, branch string) forge.PR {
	t.Helper()
	pushBranch(t, w, branch)
	return forgetest.Must(w.Forge.OpenPR(t.Context(), w.Repo, forge.NewPR{Head: branch, Base: "main", Title: "Fix it", Body: "Why."}))(t)
}

func TestPullRequestIsOpenedAndMerged(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	head := pushBranch(t, w, "errand/1")
	want := forge.NewPR{Head: "errand/1", Base: "main", Title: "Fix it", Body: "Why.", Draft: true, CheckExisting: true}
	p := forgetest.Must(w.Forge.OpenPR(t.Context(), w.Repo, want))(t)
	if p.Title != "Fix it" || p.Body != "Why." || !p.Open || !p.Draft || p.Head != head || p.HeadBranch != "errand/1" || p.Base != "main" || p.By.ID != w.App().BotID {
		t.Errorf("got %+v", p)
	}
	if s := p.State(); s.State != "open" || s.Number != p.Number || s.URL == "" || s.Node == "" {
		t.Errorf("got state %+v", s)
	}
	for _, check := range []bool{true, false} { // found, or refused as a duplicate and then found
		want.CheckExisting = check
		if again := forgetest.Must(w.Forge.OpenPR(t.Context(), w.Repo, want))(t); again.Number != p.Number {
			t.Errorf("CheckExisting %v: a second pull request was opened: %+v", check, again)
		}
	}
	forgetest.Poll(t, "mergeability", func() bool {
		p = forgetest.Must(w.Forge.PR(t.Context(), w.Repo, p.Number))(t)
		return p.Mergeable != nil
	})
	if !*p.Mergeable {
		t.Errorf("got %+v", p)
	}
	if err := w.As("octo").SetDraft(forgetest.FullName, p.Number, false); err != nil {
		t.Fatal(err)
	}
	if err := w.As("octo").Merge(forgetest.FullName, p.Number, simgithub.Merge{}); err != nil {
		t.Fatal(err)
	}
	p = forgetest.Must(w.Forge.PR(t.Context(), w.Repo, p.Number))(t)
	if !p.Merged || p.Open || p.MergedBy.Login != "octo" || p.State().State != "merged" {
		t.Errorf("got %+v", p)
	}
	want.CheckExisting = true
	if again := forgetest.Must(w.Forge.OpenPR(t.Context(), w.Repo, want))(t); again.Number != p.Number || !again.Merged {
		t.Errorf("got %+v, want the merged one", again)
	}
}

func TestOpenPRWithoutCommitsIsRefused(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	main := forgetest.Must(w.Forge.Head(t.Context(), w.Repo, "main"))(t)
	if err := w.Forge.MoveBranch(t.Context(), w.Repo, "same", "", main); err != nil {
		t.Fatal(err)
	}
	_, err := w.Forge.OpenPR(t.Context(), w.Repo, forge.NewPR{Head: "same", Base: "main", Title: "x"})
	reason, hint := forge.Explain(err)
	if class, _ := forge.Classify(err); class != forge.ClassPermanent || !strings.Contains(reason, "No commits between") || hint == "" {
		t.Errorf("got class %s, reason %q, hint %q", class, reason, hint)
	}
}

func TestClosedPRIsNotReused(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	p := openPR(t, w, "errand/1")
	if err := w.As("octo").Close(forgetest.FullName, p.Number, ""); err != nil {
		t.Fatal(err)
	}
	if closed := forgetest.Must(w.Forge.PR(t.Context(), w.Repo, p.Number))(t); closed.State().State != "closed" {
		t.Errorf("got %+v", closed)
	}
	again := forgetest.Must(w.Forge.OpenPR(t.Context(), w.Repo, forge.NewPR{Head: "errand/1", Base: "main", Title: "Again", CheckExisting: true}))(t)
	if again.Number == p.Number {
		t.Error("the closed pull request was returned")
	}
	if found := forgetest.Must(w.Forge.PRByHead(t.Context(), w.Repo, "errand/1"))(t); found.Number != again.Number {
		t.Errorf("got %+v", found)
	}
	if found := forgetest.Must(w.Forge.PRByHead(t.Context(), w.Repo, "errand/2"))(t); found != nil {
		t.Errorf("got %+v", found)
	}
}

// TestReopenPR reopens a pull request only while GitHub allows it, and says what to do otherwise.
func TestReopenPR(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	p, octo := openPR(t, w, "errand/1"), w.As("octo")
	for range 2 { // the second time it is open already
		if err := octo.Close(forgetest.FullName, p.Number, ""); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got := forgetest.Must(w.Forge.ReopenPR(t.Context(), w.Repo, p.Number))(t); !got.Open || got.Number != p.Number || got.Head != p.Head {
				t.Errorf("got %+v, want #%d open", got, p.Number)
			}
		}
	}
	if err := errors.Join(octo.Close(forgetest.FullName, p.Number, ""), octo.DeleteBranch(forgetest.FullName, "errand/1")); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.Forge.ClosePR(t.Context(), w.Repo, p.Number); err != nil || forgetest.Must(w.Forge.PR(t.Context(), w.Repo, p.Number))(t).Open {
			t.Errorf("close: got error %v, want it closed", err)
		}
	}
	_, err := w.Forge.ReopenPR(t.Context(), w.Repo, p.Number)
	reason, hint := forge.Explain(err)
	if class, _ := forge.Classify(err); class != forge.ClassPermanent || !strings.Contains(reason, "reopened") || !strings.Contains(hint, "branch") {
		t.Errorf("without a branch: got %v, reason %q, hint %q", err, reason, hint)
	}
}

// TestOpenPRMissingFromListIsTemporaryError checks a pull request that exists but is not in the list yet. A retry finds
// it.
func TestOpenPRMissingFromListIsTemporaryError(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	w.SetListLag(time.Hour)
	p := openPR(t, w, "errand/1")
	again := forge.NewPR{Head: "errand/1", Base: "main", Title: "Again", CheckExisting: true}
	_, err := w.Forge.OpenPR(t.Context(), w.Repo, again)
	if class, _ := forge.Classify(err); class != forge.ClassTemporary {
		t.Fatalf("got class %s: %v", class, err)
	}
	w.SetListLag(0)
	if found := forgetest.Must(w.Forge.OpenPR(t.Context(), w.Repo, again))(t); found.Number != p.Number {
		t.Errorf("got %+v", found)
	}
}

func TestUnsupportedDraftBecomesOrdinaryPR(t *testing.T) {
	t.Parallel()
	gh := forgetest.NewFake(t, func(w http.ResponseWriter, r *http.Request) {
		body := readAll(t, r)
		if strings.Contains(body, `"draft":true`) {
			forgetest.Answer(w, 422, m{"message": "Validation Failed", "errors": []m{{"message": "Draft pull requests are not supported in this repository."}}})
			return
		}
		forgetest.Answer(w, 201, m{"number": 4, "state": "open", "title": "[WIP] Fix it"})
		if !strings.Contains(body, `"title":"[WIP] Fix it"`) {
			t.Errorf("got request body %s", body)
		}
	})
	f := forgetest.New(t, gh.URL)
	p := forgetest.Must(f.OpenPR(t.Context(), forgetest.Repo(), forge.NewPR{Head: "h", Base: "main", Title: "Fix it", Draft: true}))(t)
	if p.Number != 4 || p.Draft {
		t.Errorf("got %+v", p)
	}
}

func TestRequestReview(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	p := openPR(t, w, "errand/1")
	for range 2 {
		if note := forgetest.Must(w.Forge.RequestReview(t.Context(), w.Repo, p.Number, "wendy"))(t); note != "" {
			t.Errorf("got note %q", note)
		}
	}
	if pull := forgetest.Must(w.As("octo").Issue(forgetest.FullName, p.Number))(t).Pull; !cmp.Equal(pull.RequestedReviewers, []string{"wendy"}) {
		t.Errorf("got reviewers %v", pull.RequestedReviewers)
	}
	w.AddUser("sam")
	if note := forgetest.Must(w.Forge.RequestReview(t.Context(), w.Repo, p.Number, "sam"))(t); !strings.Contains(note, "sam") {
		t.Errorf("got note %q for a stranger", note)
	}
}

func TestReviewsAndThreads(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	p := openPR(t, w, "errand/1")
	forgetest.Must(w.As("wendy").Review(forgetest.FullName, p.Number, simgithub.NewReview{
		Event: "REQUEST_CHANGES", Body: "Please.",
		Comments: []simgithub.NewReviewComment{{Path: "dir/a.txt", Line: 2, Body: "Why two?"}, {Path: "dir/a.txt", Line: 3, Body: "And three?"}},
	}))(t)
	forgetest.Must(w.As("octo").Review(forgetest.FullName, p.Number, simgithub.NewReview{Event: "APPROVE"}))(t)

	reviews := forgetest.Must(w.Forge.Reviews(t.Context(), w.Repo, p.Number))(t)
	if len(reviews) != 2 || reviews[0].State != "changes_requested" || reviews[0].Body != "Please." || reviews[0].By.Login != "wendy" ||
		reviews[0].Head != p.Head || reviews[1].State != "approved" || reviews[0].At.IsZero() {
		t.Errorf("got %+v", reviews)
	}
	threads := forgetest.Must(w.Forge.Threads(t.Context(), w.Repo, p.Number))(t)
	if len(threads) != 2 {
		t.Fatalf("got %+v", threads)
	}
	k := threads[0]
	if k.Path != "dir/a.txt" || k.Line != 2 || k.Resolved || k.Outdated || !strings.Contains(k.Hunk, "two") || len(k.Comments) != 1 ||
		k.TopID != k.Comments[0].ID || k.Comments[0].Body != "Why two?" || k.Comments[0].Author.ID != w.AddUser("wendy").ID {
		t.Errorf("got %+v", k)
	}

	const marker = "<!-- errand:answer-1 -->"
	simID := forgetest.Must(w.As("octo").Issue(forgetest.FullName, p.Number))(t).Pull.Threads[0].ID
	forgetest.Must(w.As("sam").ReplyToThread(forgetest.FullName, p.Number, simID, "copied "+marker))(t)
	if got := forgetest.Must(w.Forge.FindReplies(t.Context(), w.Repo, p.Number, marker, time.Time{}))(t); got != nil {
		t.Errorf("found a comment of another author: %+v", got)
	}
	review := forgetest.Must(w.Forge.StartReview(t.Context(), w.Repo, p.Node))(t)
	if err := w.Forge.AddReply(t.Context(), w.Repo, review, k.Node, "Because.\n"+marker); err != nil {
		t.Fatal(err)
	}
	if unseen := forgetest.Must(w.Forge.Threads(t.Context(), w.Repo, p.Number))(t)[0]; len(unseen.Comments) != 2 {
		t.Errorf("with a pending reply: got %+v", unseen)
	}
	if err := w.Forge.SubmitReview(t.Context(), w.Repo, review, "One of one."); err != nil {
		t.Fatal(err)
	}
	posted := forgetest.Must(w.Forge.OwnReview(t.Context(), w.Repo, review))(t).Replies[0]
	if got := forgetest.Must(w.Forge.FindReplies(t.Context(), w.Repo, p.Number, marker, time.Time{}))(t); len(got) != 1 || got[0].ID != posted.ID {
		t.Errorf("got %+v", got)
	}
	if err := w.Forge.React(t.Context(), w.Repo, forge.Target{Kind: forge.TargetReviewComment, ID: k.TopID}, "eyes"); err != nil {
		t.Error(err)
	}
	if err := w.As("wendy").ResolveThread(forgetest.FullName, p.Number, simID, true); err != nil {
		t.Fatal(err)
	}
	k = forgetest.Must(w.Forge.Threads(t.Context(), w.Repo, p.Number))(t)[0]
	if !k.Resolved || len(k.Comments) != 3 || k.Comments[2].ID != posted.ID || k.Comments[2].Author.ID != w.App().BotID {
		t.Errorf("got %+v", k)
	}
	for range 2 {
		if err := w.Forge.DeleteReply(t.Context(), w.Repo, posted.ID); err != nil {
			t.Error(err)
		}
	}
}

func TestThreadsOnSeveralPages(t *testing.T) {
	t.Parallel()
	w := forgetest.NewWorld(t)
	p := openPR(t, w, "errand/1")
	var top int64
	for i := range 55 {
		c := forgetest.Must(w.As("wendy").CommentOnLine(forgetest.FullName, p.Number, simgithub.NewReviewComment{Path: "dir/a.txt", Line: 1, Body: fmt.Sprint(i)}))(t)
		top = c.ID
	}
	simID := forgetest.Must(w.As("octo").Issue(forgetest.FullName, p.Number))(t).Pull.Threads[54].ID
	for i := range 60 {
		forgetest.Must(w.As("wendy").ReplyToThread(forgetest.FullName, p.Number, simID, fmt.Sprintf("reply %d", i)))(t)
	}
	threads := forgetest.Must(w.Forge.Threads(t.Context(), w.Repo, p.Number))(t)
	if len(threads) != 55 || len(threads[54].Comments) != 61 || threads[54].TopID != top || threads[54].Comments[60].Body != "reply 59" {
		t.Errorf("%d threads, %d comments in the last", len(threads), len(threads[len(threads)-1].Comments))
	}
}

func TestPRState(t *testing.T) {
	t.Parallel()
	want := state.PR{Number: 3, Title: "T", State: "closed"}
	if diff := cmp.Diff(want, forge.PR{Number: 3, Title: "T"}.State()); diff != "" {
		t.Error(diff)
	}
}

package simgithub_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v66/github"

	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// Mutations of reviews.
const (
	startReview   = `mutation($id:ID!,$event:PullRequestReviewEvent,$body:String){ addPullRequestReview(input:{pullRequestId:$id,event:$event,body:$body}){ pullRequestReview{ id state } } }`
	replyInReview = `mutation($review:ID,$thread:ID!,$body:String!){ addPullRequestReviewThreadReply(input:{pullRequestReviewId:$review,pullRequestReviewThreadId:$thread,body:$body}){ comment{ id state } } }`
	submitReview  = `mutation($id:ID!){ submitPullRequestReview(input:{pullRequestReviewId:$id,event:COMMENT,body:"All done."}){ pullRequestReview{ id state body } } }`
	deleteReview  = `mutation($id:ID!){ deletePullRequestReview(input:{pullRequestReviewId:$id}){ pullRequestReview{ id } } }`
	deleteReply   = `mutation($id:ID!){ deletePullRequestReviewComment(input:{id:$id}){ pullRequestReview{ comments(first:9){ totalCount } } } }`
)

// reviewed returns a pull request with two threads by alice, the second of which is resolved.
func (w *world) reviewed() (*simgithub.Issue, []thread) {
	w.T.Helper()
	p := w.Pull("octo", "fix", map[string]string{"calc.go": fixed}, "")
	_, err := w.Sim.As("alice").Review(repo, p.Number, simgithub.NewReview{Event: "REQUEST_CHANGES", Comments: []simgithub.NewReviewComment{
		{Path: "calc.go", Line: 4, Body: "Overflow?"}, {Path: "calc.go", Line: 3, Body: "Why?"},
	}})
	check(w.T, err)
	check(w.T, w.Owner.ResolveThread(repo, p.Number, must(w.Owner.Issue(repo, p.Number)).Pull.Threads[1].ID, true))
	w.Settled()
	return p, w.threads(p.Number)
}

// start starts a pending review of the App.
func (w *world) start(p *simgithub.Issue) (node string) {
	w.T.Helper()
	var out struct {
		AddPullRequestReview struct {
			PullRequestReview struct{ ID, State string }
		}
	}
	errs := w.graphql(startReview, map[string]any{"id": p.Pull.NodeID}, &out)
	if v := out.AddPullRequestReview.PullRequestReview; len(errs) != 0 || v.State != "PENDING" {
		w.T.Fatalf("start a review: got %+v, errors %+v", v, errs)
	}
	return out.AddPullRequestReview.PullRequestReview.ID
}

// reply adds a reply to a pending review.
func (w *world) reply(review, thread string) (node string) {
	w.T.Helper()
	var out struct {
		AddPullRequestReviewThreadReply struct{ Comment struct{ ID, State string } }
	}
	errs := w.graphql(replyInReview, map[string]any{"review": review, "thread": thread, "body": "Done."}, &out)
	if c := out.AddPullRequestReviewThreadReply.Comment; len(errs) != 0 || c.State != "PENDING" {
		w.T.Errorf("reply: got %+v, errors %+v", c, errs)
	}
	return out.AddPullRequestReviewThreadReply.Comment.ID
}

func (w *world) refused(want, query string, vars map[string]any) {
	w.T.Helper()
	if errs := w.graphql(query, vars, nil); len(errs) != 1 || errs[0].Message != want {
		w.T.Errorf("got errors %+v, want %q", errs, want)
	}
}

// TestPendingReview: the comments of a pending review are visible only to its author, and send no webhooks until it is
// submitted.
func TestPendingReview(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, threads := w.reviewed()
	review := w.start(p)
	w.reply(review, threads[0].ID)
	last := w.reply(review, threads[1].ID) // resolved threads accept replies
	if diff := cmp.Diff([]string(nil), w.Settled()); diff != "" {
		t.Errorf("webhooks before the submission (-want +got):\n%s", diff)
	}
	seen := func(who *github.Client) [2]int {
		t.Helper()
		list, _, err := who.PullRequests.ListReviews(t.Context(), "octo", "calc", p.Number, nil)
		check(t, err)
		comments, _, err := who.PullRequests.ListComments(t.Context(), "octo", "calc", p.Number, nil)
		check(t, err)
		return [2]int{len(list), len(comments)}
	}
	if bot, alice := seen(w.bot), seen(w.human("alice")); bot != [2]int{2, 4} || alice != [2]int{1, 2} {
		t.Errorf("before the submission, the App sees %v and alice %v", bot, alice)
	}
	if n := len(must(w.Sim.As("alice").Issue(repo, p.Number)).Pull.Threads[0].Comments); n != 1 {
		t.Errorf("alice sees %d comments in the first thread", n)
	}
	if errs := w.graphql(deleteReply, map[string]any{"id": last}, nil); len(errs) != 0 {
		t.Errorf("delete a pending comment: %+v", errs)
	}
	if errs := w.graphql(submitReview, map[string]any{"id": review}, nil); len(errs) != 0 {
		t.Fatalf("submit: %+v", errs)
	}
	if diff := cmp.Diff([]string{"pull_request_review.submitted", "pull_request_review_comment.created"}, w.Settled()); diff != "" {
		t.Errorf("webhooks of the submission (-want +got):\n%s", diff)
	}
	if alice := seen(w.human("alice")); alice != [2]int{2, 3} {
		t.Errorf("after the submission, alice sees %v", alice)
	}
}

// TestOnePendingReview: there is one pending review for each account and pull request, which is not changed after its
// submission.
func TestOnePendingReview(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p, threads := w.reviewed()
	review := w.start(p)
	w.reply(review, threads[0].ID)
	const one = "User can only have one pending review per pull request"
	w.refused(one, startReview, map[string]any{"id": p.Pull.NodeID})
	w.refused(one, startReview, map[string]any{"id": p.Pull.NodeID, "event": "COMMENT", "body": "At once."})
	w.refused("user_id can only have one pending review per pull request", replyInReview, map[string]any{"thread": threads[0].ID, "body": "Next to it."})
	check(t, onlyErr(w.Sim.As("alice").Review(repo, p.Number, simgithub.NewReview{Body: "Not yet."}))) // of another account
	if errs := w.graphql(submitReview, map[string]any{"id": review}, nil); len(errs) != 0 {
		t.Fatalf("submit: %+v", errs)
	}
	const late = "Review has already been submitted."
	w.refused(late, submitReview, map[string]any{"id": review})
	w.refused(late, replyInReview, map[string]any{"review": review, "thread": threads[0].ID, "body": "More."})
	w.refused("Can not delete a non-pending pull request review", deleteReview, map[string]any{"id": review})
	second := map[string]any{"id": w.start(p)}
	if errs := w.graphql(deleteReview, second, nil); len(errs) != 0 {
		t.Errorf("delete a pending review: %+v", errs)
	}
	if errs := w.graphql(deleteReview, second, nil); len(errs) != 1 || errs[0].Type != "NOT_FOUND" {
		t.Errorf("delete it again: %+v", errs)
	}
}

func onlyErr[T any](_ T, err error) error { return err }

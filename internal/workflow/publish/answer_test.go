package publish_test

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/workflow/workflowtest"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

func TestEveryThreadIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	a, b := w.Reviewed()
	w.Rounded()
	w.Task.Feedback = append(w.Task.Feedback,
		state.Feedback{ID: "comment:5", Kind: "comment", By: w.Person("bob"), Body: "And the docs?", TakenBy: "r-2"},
		state.Feedback{ID: "comment:6", Kind: "comment", By: w.Person("bob"), Body: "Came later."})
	w.Task.Work.Answers = []state.ThreadAnswer{
		{ID: w.Task.Feedback[0].ID, Answer: "Mended in " + workflowtest.LocalID[:10] + ", not in 2222222222.", Commit: workflowtest.LocalID},
		{ID: "comment:5", Answer: "Documented. " + workflowtest.Secret},
	}
	w.MustFault(simgithub.Fault{Path: "addPullRequestReviewThreadReply", Nth: 2, Count: 1, Status: 502}) // as if the process died here
	if e, err := w.Try(state.JobAnswer); err == nil {
		t.Fatalf("got event %+v", e)
	}
	if len(w.Answers(a.Comments[0].ID))+len(w.Answers(b.Comments[0].ID)) != 0 {
		t.Fatal("people see answers before the review is submitted")
	}
	review := ""
	for range 2 {
		e := w.Do(state.JobAnswer, workflowtest.Again)
		v := event.Of[event.ThreadsAnswered](e)
		if v.Review == "" || review != "" && v.Review != review || v.Post != nil || len(v.Uncertain.Keys) != 2 {
			t.Fatalf("got event %+v", e)
		}
		review = v.Review
	}
	w.Task.Work.Review = review
	w.MustFault(simgithub.Fault{Path: "submitPullRequestReview", Count: 1, After: true, Cut: true})
	if e, err := w.Try(state.JobAnswer); err == nil {
		t.Fatalf("got event %+v", e)
	}
	for range 2 {
		if e := w.Do(state.JobAnswer, workflowtest.Again); event.Of[event.ThreadsAnswered](e) != (event.ThreadsAnswered{}) {
			t.Errorf("got event %+v", e)
		}
	}
	head := w.Task.Branch.Head
	got := [][]string{w.Answers(a.Comments[0].ID), w.Answers(b.Comments[0].ID)}
	if len(got[0]) != 1 || len(got[1]) != 1 || !strings.Contains(got[0][0], "Mended in "+head[:10]+", not in 2222222222.") || !strings.Contains(got[0][0], head) || !strings.Contains(got[1][0], "did not report") {
		t.Errorf("got answers %q", got)
	}
	list := w.OwnReviews()
	if len(list) != 1 {
		t.Fatalf("got %d reviews", len(list))
	}
	for _, want := range []string{
		"**1 of 2 addressed, 1 without an answer.** All done in " + head[:8], "- [`slug.go:3`](" + w.Task.PR.URL + "#discussion_r" + workflowtest.Itoa(a.Comments[0].ID) + "): changed in ",
		"- [`slug.go:5`](", "- [comment](" + w.Task.Repo.URL + "/issues/1#issuecomment-5): Documented. ", "<!-- errand:1.review-1 -->",
	} {
		if !strings.Contains(list[0].Body, want) {
			t.Errorf("the review does not contain %q:\n%s", want, list[0].Body)
		}
	}
	if strings.Contains(list[0].Body, workflowtest.Secret) || strings.Contains(list[0].Body, "Came later") {
		t.Errorf("got review\n%s", list[0].Body)
	}
}

// TestThreadsAreAnsweredOnceAfterAFailedLaunch: earlier answers of a round are searched since its first run that began.
func TestThreadsAreAnsweredOnceAfterAFailedLaunch(t *testing.T) {
	t.Parallel()
	for name, runs := range map[string][]state.Run{
		"every run began":       {{ID: "r-2", Kind: state.RunReview, RunLaunch: state.RunLaunch{Round: 1}, Started: time.Now()}},
		"the first never began": {{ID: "r-2", Kind: state.RunReview, RunLaunch: state.RunLaunch{Round: 1}}, {ID: "r-3", Kind: state.RunReview, RunLaunch: state.RunLaunch{Round: 1}, Started: time.Now()}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			a, _ := w.Reviewed()
			w.Rounded()
			w.Task.Runs = runs
			w.Answered()
			w.Task.Work.Review = ""
			w.Task.History = append(w.Task.History, state.PhaseChange{Phase: state.PhaseFailed, At: time.Now().Add(time.Minute)})
			w.Answered(func(j *state.Job) { j.Created = time.Now().Add(time.Hour) }) // after retry
			if got := w.Answers(a.Comments[0].ID); len(got) != 1 || len(w.OwnReviews()) != 1 {
				t.Errorf("got answers %q and %d reviews", got, len(w.OwnReviews()))
			}
		})
	}
}

func TestRoundWithoutACommitIsAnswered(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	a, _ := w.Reviewed()
	w.Rounded()
	w.Task.Work.Head, w.Task.Work.IDs = "", nil
	e := w.Answered()
	if got := w.Answers(a.Comments[0].ID); len(got) != 1 || !strings.Contains(got[0], "gave no reason") || e.Post() != nil {
		t.Errorf("got answers %q, post %+v", got, e.Post())
	}
	w.Task.Work = nil
	if e := w.Do(state.JobAnswer); e.Kind() != event.KindThreadsAnswered || len(w.Answers(a.Comments[0].ID)) != 1 {
		t.Errorf("without work: got %+v", e)
	}
}

// TestAnswersAfterARetry: the job failed permanently after half of a round's answers, and a person requested a retry.
// The new job posts the other half.
func TestAnswersAfterARetry(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	a, b := w.Reviewed()
	w.Rounded()
	w.Task.Runs = append(w.Task.Runs, state.Run{ID: "r-2", Kind: state.RunReview, RunLaunch: state.RunLaunch{Round: 1}, Started: time.Now().Add(-time.Minute)})
	w.MustFault(simgithub.Fault{Path: "addPullRequestReviewThreadReply", Nth: 2, Count: 1, Status: 403})
	if e, err := w.Try(state.JobAnswer); err == nil {
		t.Fatalf("got event %+v", e)
	}
	w.Task.History = append(w.Task.History, state.PhaseChange{Phase: state.PhaseFailed, At: time.Now()})
	w.HoursPass()
	w.Answered(func(j *state.Job) { j.ID, j.Key = "job-later", "1.answer-later" })
	if one, two := w.Answers(a.Comments[0].ID), w.Answers(b.Comments[0].ID); len(one) != 1 || len(two) != 1 || len(w.OwnReviews()) != 1 {
		t.Errorf("got answers %q and %q in %d reviews", one, two, len(w.OwnReviews()))
	}
}

// TestDeletedThread: a deleted thread cannot be answered; the round ends nevertheless, and the answer is elsewhere.
func TestDeletedThread(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before   func(w *workflowtest.World, a, b *simgithub.Thread) // the first job
		between  func(w *workflowtest.World, a, b *simgithub.Thread) // the jobs
		review   string                                              // a part of its text
		comments int                                                 // items of the round's comment
	}{
		"before the round ends": {before: func(w *workflowtest.World, _, b *simgithub.Thread) {
			workflowtest.Check(t, w.Ada.DeleteReviewComment(workflowtest.RepoName, 2, b.Comments[0].ID))
		}, review: "**1 of 1 addressed.**"},
		"while errand answers": {before: func(w *workflowtest.World, _, _ *simgithub.Thread) {
			w.MustFault(simgithub.Fault{Path: "addPullRequestReviewThreadReply", Nth: 2, Count: 1, Status: 200, Body: `{"errors":[{"type":"NOT_FOUND","message":"gone"}]}`})
		}, review: "**1 of 1 addressed.**"},
		"before the submission": {between: func(w *workflowtest.World, _, b *simgithub.Thread) {
			workflowtest.Check(t, w.Ada.DeleteReviewComment(workflowtest.RepoName, 2, b.Comments[0].ID))
		}, review: "**1 of 1 addressed.**"},
		"all of them": {before: func(w *workflowtest.World, a, b *simgithub.Thread) {
			for _, th := range []*simgithub.Thread{a, b} {
				workflowtest.Check(t, w.Ada.DeleteReviewComment(workflowtest.RepoName, 2, th.Comments[0].ID))
			}
		}, comments: 2},
		"the pending review": {between: func(w *workflowtest.World, _, _ *simgithub.Thread) {
			workflowtest.Check(t, w.Forge.DeleteReview(t.Context(), w.RepoRef(), w.Task.Work.Review))
			if e, err := w.Try(state.JobAnswer); err == nil {
				t.Errorf("got event %+v", e)
			}
		}, comments: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			a, b := w.Reviewed()
			w.Rounded()
			for _, f := range w.Task.Feedback {
				w.Task.Work.Answers = append(w.Task.Work.Answers, state.ThreadAnswer{ID: f.ID, Answer: "Because of line " + workflowtest.Itoa(int64(f.Line)) + "."})
			}
			if c.before != nil {
				c.before(w, a, b)
			}
			e := w.Do(state.JobAnswer)
			if w.Task.Work.Review = event.Of[event.ThreadsAnswered](e).Review; w.Task.Work.Review != "" {
				if c.between != nil {
					c.between(w, a, b)
				}
				e = w.Do(state.JobAnswer, workflowtest.Again)
			}
			if e.Kind() != event.KindThreadsAnswered || (e.Post() != nil) != (c.comments > 0) || e.Post() != nil && len(e.Post().Items) != c.comments {
				t.Errorf("got event %+v, post %+v", e, e.Post())
			}
			list := w.OwnReviews()
			if c.review == "" {
				if len(list) != 0 {
					t.Errorf("got review %q", list[0].Body)
				}
				return
			}
			if len(list) != 1 || !strings.Contains(list[0].Body, c.review) || !strings.Contains(list[0].Body, "Because of line 5.") || len(w.Answers(a.Comments[0].ID)) != 1 {
				t.Errorf("got reviews %+v", list)
			}
		})
	}
}

// TestDuplicateAnswer: an answer that appears late, after its job has searched for it and written another one, is
// deleted.
func TestDuplicateAnswer(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	a, _ := w.Reviewed()
	w.Rounded()
	w.Task.Runs = append(w.Task.Runs, state.Run{ID: "r-2", Kind: state.RunReview, RunLaunch: state.RunLaunch{Round: 1}, Started: time.Now().Add(-time.Minute)})
	w.Task.History = append(w.Task.History, state.PhaseChange{Phase: state.PhaseInterrupted, At: time.Now()})
	e := w.Do(state.JobAnswer)
	w.Task.Work.Review = event.Of[event.ThreadsAnswered](e).Review
	w.Do(state.JobAnswer)
	if event.Of[event.ThreadsAnswered](e).Uncertain == nil || len(event.Of[event.ThreadsAnswered](e).Uncertain.Keys) != 2 {
		t.Fatalf("got event %+v", e)
	}
	top := a.Comments[0].ID
	said := w.Answers(top)
	late, err := w.Forge.StartReview(t.Context(), w.RepoRef(), w.Task.PR.Node)
	workflowtest.Check(t, err)
	workflowtest.Check(t, w.Forge.AddReply(t.Context(), w.RepoRef(), late, a.NodeID, said[0]))
	workflowtest.Check(t, w.Forge.SubmitReview(t.Context(), w.RepoRef(), late, "Late."))
	w.HoursPass()
	for _, key := range event.Of[event.ThreadsAnswered](e).Uncertain.Keys {
		w.Do(state.JobDue, workflowtest.Args(state.JobArgs{Due: state.DueDuplicate, Key: key, Duplicate: state.DuplicateAnswer, Number: 2, Since: event.Of[event.ThreadsAnswered](e).Uncertain.Since.UTC()}))
	}
	if left := w.Answers(top); len(left) != 1 || left[0] != said[0] {
		t.Errorf("got answers %q", left)
	}
}

// TestPendingReviewOfAnotherRound: GitHub allows one pending review at a time, so one that an earlier life left behind
// is deleted, and an empty one is used.
func TestPendingReviewOfAnotherRound(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]string{
		"an earlier life's":  "Old.\n\n<!-- errand:1.answer-9-thread:1:2 -->",
		"without a marker":   "Old.",
		"an empty one":       "",
		"of the round's own": "Old.\n\n<!-- errand:1.answer-1-thread:9:9 -->",
		"of a lost round":    "Old.\n\n<!-- errand:1.answer-1-thread:9:9 -->",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			a, _ := w.Reviewed()
			w.Rounded()
			old, err := w.Forge.StartReview(t.Context(), w.RepoRef(), w.Task.PR.Node)
			workflowtest.Check(t, err)
			if left != "" {
				workflowtest.Check(t, w.Forge.AddReply(t.Context(), w.RepoRef(), old, a.NodeID, left))
			}
			w.Answered(func(j *state.Job) {
				if name == "of a lost round" { // that is older than the restoration of the store
					j.Restored = time.Now().Add(time.Hour)
				}
			})
			list := w.OwnReviews()
			used := left == "" || name == "of the round's own"
			if len(list) != 1 || (list[0].NodeID == old) != used {
				t.Errorf("got %d reviews: %+v", len(list), list)
			}
			if got := w.Answers(a.Comments[0].ID); len(got) != 1+map[bool]int{true: 1}[name == "of the round's own"] {
				t.Errorf("got answers %q", got)
			}
		})
	}
}

// TestTwinInThePendingReview: an answer that appeared late, after another one was added, is deleted before people see
// the review.
func TestTwinInThePendingReview(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	a, b := w.Reviewed()
	w.Rounded()
	review := event.Of[event.ThreadsAnswered](w.Do(state.JobAnswer)).Review
	v, err := w.Forge.OwnReview(t.Context(), w.RepoRef(), review)
	workflowtest.Check(t, err)
	workflowtest.Check(t, w.Forge.AddReply(t.Context(), w.RepoRef(), review, a.NodeID, v.Replies[0].Body))
	w.Task.Work.Review = review
	w.Do(state.JobAnswer)
	if one, two := w.Answers(a.Comments[0].ID), w.Answers(b.Comments[0].ID); len(one) != 1 || len(two) != 1 || len(w.OwnReviews()) != 1 {
		t.Errorf("got answers %q and %q in %d reviews", one, two, len(w.OwnReviews()))
	}
}

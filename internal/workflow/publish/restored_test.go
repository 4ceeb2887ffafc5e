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

// TestAnswersOfALostErrandAreNotRepeated: a restored errand that ends a round which the lost one had ended, too, answers only what was
// not answered then, even if it counts the round differently, and long after it.
func TestAnswersOfALostErrandAreNotRepeated(t *testing.T) {
	t.Parallel()
	hoursLater := func(j *state.Job) { j.Restored = time.Now().Add(5 * time.Hour) }
	for name, c := range map[string]struct {
		between func(w *workflowtest.World, first *simgithub.Thread)
		answers int // in the first thread, by both
		reviews int
		posted  int // items of the comment
	}{
		"nothing new":   {answers: 1, reviews: 1},
		"another round": {answers: 1, reviews: 1, between: func(w *workflowtest.World, _ *simgithub.Thread) { w.Task.Round = 7 }},
		"more in a thread": {answers: 2, reviews: 2, between: func(w *workflowtest.World, first *simgithub.Thread) {
			_, err := w.Ada.ReplyToThread(workflowtest.RepoName, w.Task.PR.Number, first.ID, "Still wrong.")
			workflowtest.Check(w.T, err)
			work := w.Task.Work
			w.Rounded()
			w.Task.Work = work
		}},
		"another comment": {answers: 1, reviews: 1, posted: 1, between: func(w *workflowtest.World, _ *simgithub.Thread) {
			w.Task.Feedback = append(w.Task.Feedback, ofBob(w, "comment:55", time.Time{}))
		}},
		"an answer by a person": {answers: 1, reviews: 1, posted: 1, between: func(w *workflowtest.World, _ *simgithub.Thread) {
			copied := "[comment](" + w.Task.PR.URL + "#issuecomment-56)\n\n<!-- errand:1.round-1 -->"
			_, err := w.Ada.Comment(workflowtest.RepoName, w.Task.PR.Number, copied)
			workflowtest.Check(w.T, err)
			w.Task.Feedback = append(w.Task.Feedback, ofBob(w, "comment:56", time.Now()))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			first, _ := w.Reviewed()
			w.Rounded()
			w.Task.Feedback = append(w.Task.Feedback,
				state.Feedback{ID: "review:5", OnPR: true, Kind: "review", By: w.Person("ada"), TakenBy: "r-2", At: time.Now()},
				ofBob(w, "comment:5", time.Now()))
			w.Answered() // by the errand that is lost
			w.Task.Work.Review = ""
			later := time.Now().Add(5 * time.Hour)
			w.Task.Runs = []state.Run{{ID: "r-2", Kind: state.RunReview, RunLaunch: state.RunLaunch{Round: 1}, Started: later}}
			if c.between != nil {
				c.between(w, first)
			}
			e := w.Answered(hoursLater, workflowtest.Again)
			if got := w.Answers(first.Comments[0].ID); len(got) != c.answers || len(w.OwnReviews()) != c.reviews {
				t.Errorf("got answers %q in %d reviews", got, len(w.OwnReviews()))
			}
			posted := 0
			if p := e.Post(); p != nil {
				posted = len(p.Items)
			}
			if posted != c.posted {
				t.Errorf("got the comment %+v, want %d items", e.Post(), c.posted)
			}
			if c.reviews == 2 && strings.Contains(w.OwnReviews()[1].Body, "Other feedback") {
				t.Errorf("got the review\n%s", w.OwnReviews()[1].Body)
			}
		})
	}
}

// TestCommentOfALostErrandIsNotRepeated: the comment with which a lost errand answered a round without threads is found by its links.
func TestCommentOfALostErrandIsNotRepeated(t *testing.T) {
	t.Parallel()
	w := workflowtest.New(t)
	w.OpenPull()
	w.Rounded()
	w.Task.Feedback = []state.Feedback{ofBob(w, "comment:5", time.Now())}
	p := event.Of[event.ThreadsAnswered](w.Do(state.JobAnswer)).Post
	if p == nil || len(p.Links) != 1 {
		t.Fatalf("got the comment %+v", p)
	}
	w.Do(state.JobPost, func(j *state.Job) { j.Key, j.Post = "1.round-1", p })
	for restored, want := range map[bool]bool{true: false, false: true} {
		e := w.Do(state.JobAnswer, func(j *state.Job) {
			if restored {
				j.Restored = time.Now().Add(time.Hour)
			}
		})
		if (e.Post() != nil) != want {
			t.Errorf("restored %v: got the comment %+v", restored, e.Post())
		}
	}
}

// TestAnsweredRoundIsNotRebased: the work of a round that the lost errand had pushed and answered before another round is not rebased onto
// that round, with which it would conflict. It is if nothing was answered, or in a store of its own.
func TestAnsweredRoundIsNotRebased(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ answered, restored bool }{
		"answered":      {true, true},
		"not answered":  {false, true},
		"not a restore": {true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := workflowtest.New(t)
			w.Reviewed()
			w.Rounded()
			w.Host.Checkout(t, w.Task.Branch.Head)
			w.Host.Commit(t, "Mend it", map[string]string{"slug.go": "package slug\n\n// round 1\n"})
			w.Collected()
			w.Committed()
			if c.answered {
				work := *w.Task.Work
				w.Answered() // by the errand that is lost
				w.Task.Work = &work
			}
			later := w.Push("bob", w.Task.Branch.Name, map[string]string{"slug.go": "package slug\n\n// round 2\n"})
			e := w.Do(state.JobRebase, workflowtest.Args(state.JobArgs{Onto: later}), func(j *state.Job) {
				if c.restored {
					j.Restored = time.Now()
				}
			})
			want := event.KindConflict
			if c.answered && c.restored {
				want = event.KindAnswersFound
			}
			if e.Kind() != want || e.Run != w.Task.Work.Run {
				t.Errorf("got %s of run %q: %+v", e.Kind(), e.Run, e.Payload)
			}
		})
	}
}

// ofBob is a comment by bob on the pull request, which the round's run has received.
func ofBob(w *workflowtest.World, id string, at time.Time) state.Feedback {
	return state.Feedback{ID: id, OnPR: true, Kind: "comment", By: w.Person("bob"), Body: "And the docs?", TakenBy: "r-2", At: at}
}

package publish

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// submit submits the round's review, once, resolves its threads if the repository wants that, and requests reviews.
func (s *Steps) submit(ctx context.Context, r *round) (event.Event, error) {
	t := r.Task
	v, err := s.GitHub.OwnReview(ctx, r.Repo, t.Work.Review)
	switch {
	case errors.Is(err, forge.ErrNotFound) && r.before:
		return s.answerOutside(ctx, r)
	case errors.Is(err, forge.ErrNotFound): // perhaps only not yet visible
		return event.Event{}, &step.Problem{Reason: "GitHub does not know errand's review.", Hint: "Comment `retry` to try again.", Class: state.ClassGitHub, Err: err}
	case err != nil:
		return event.Event{}, fmt.Errorf("read the review: %w", err)
	}
	if err := s.noteReplies(ctx, r, v.Replies); err != nil {
		return event.Event{}, err
	}
	if v.Pending {
		if err := s.deletePendingTwins(ctx, r, v.Replies); err != nil {
			return event.Event{}, err
		}
		if err := s.GitHub.SubmitReview(ctx, r.Repo, v.Node, s.reviewBody(r)); err != nil {
			return event.Event{}, fmt.Errorf("submit the review: %w", err)
		}
	}
	if err := s.resolveThreads(ctx, r); err != nil {
		return event.Event{}, err
	}
	s.requestReviews(ctx, r)
	return event.Event{Payload: event.ThreadsAnswered{}}, nil
}

// noteReplies notes the answers in the review, and those that errand wrote in the threads before.
func (s *Steps) noteReplies(ctx context.Context, r *round, replies []forge.Comment) error {
	me, err := s.GitHub.Self(ctx)
	if err != nil {
		return err
	}
	for _, th := range r.threads {
		replies = append(replies, th.Comments...)
	}
	for _, c := range replies {
		if key, ok := comment.FindMarker(c.Body); ok && c.Author.ID == me.BotID {
			r.replied[key] = true
		}
	}
	return nil
}

// answerOutside ends a round whose pending review is gone: the answers that are not on GitHub become a comment.
func (s *Steps) answerOutside(ctx context.Context, r *round) (event.Event, error) {
	r.Log.Warn().Str("review", r.Task.Work.Review).Msg("the pending review is gone; answering in a comment")
	if err := s.findReplies(ctx, r); err != nil {
		return event.Event{}, err
	}
	s.requestReviews(ctx, r)
	left := func(f state.Feedback) bool { return !r.answered(f) }
	return event.Event{Payload: event.ThreadsAnswered{Post: s.roundPost(r, left)}}, nil
}

// deletePendingTwins deletes all but the first of the replies with the same marker, before anybody sees them.
func (s *Steps) deletePendingTwins(ctx context.Context, r *round, replies []forge.Comment) error {
	seen := map[string]bool{}
	for _, c := range replies {
		key, ok := comment.FindMarker(c.Body)
		if !ok || !seen[key] {
			seen[key] = true
			continue
		}
		if err := s.GitHub.DeletePendingReply(ctx, r.Repo, c.Node); err != nil {
			return fmt.Errorf("delete a twin answer: %w", err)
		}
	}
	return nil
}

// reviewBody returns the text of the review: the result of each thread, and the answers to other feedback.
func (s *Steps) reviewBody(r *round) string {
	t, v := r.Task, r.view
	v.Key = fmt.Sprintf("%d.review-%d", t.Gen, t.Round)
	in := comment.ReviewInput{Summary: mapIDs(roundSummary(t.Work), t.Work.IDs)}
	answered := func(f state.Feedback) bool { return r.threads[f.Thread].Node != "" && r.answered(f) }
	in.Others = s.otherAnswers(r, func(f state.Feedback) bool { return !answered(f) })
	for _, f := range r.targets() {
		if !answered(f) || slices.Contains(r.earlier, f.ID) {
			continue
		}
		result, sha := threadResult(t, f)
		in.Threads = append(in.Threads, comment.AnsweredThread{Path: f.Path, Line: f.Line, Top: f.Thread, Result: result, Commit: sha})
	}
	body, _ := s.Redact.Redact(comment.ReviewBody(t, in, v))
	return body
}

// threadResult returns how a round ended for one piece of feedback, with the published commit that addresses it. An
// answer without a commit that ends with a question mark asks back.
func threadResult(t *state.Task, f state.Feedback) (result comment.ThreadResult, sha string) {
	i := slices.IndexFunc(t.Work.Answers, func(a state.ThreadAnswer) bool { return a.ID == f.ID })
	if i < 0 {
		return comment.ThreadUnanswered, ""
	}
	switch a := t.Work.Answers[i]; {
	case a.Commit != "" && t.Work.Head != "":
		return comment.ThreadChanged, cmp.Or(t.Work.IDs[a.Commit], t.Work.Head)
	case asksBack(a):
		return comment.ThreadQuestion, ""
	case a.Answer == "":
		return comment.ThreadUnanswered, ""
	}
	return comment.ThreadAnswered, ""
}

// asksBack reports whether the agent needs an answer before it changes something.
func asksBack(a state.ThreadAnswer) bool {
	return a.Commit == "" && strings.HasSuffix(strings.TrimRight(a.Answer, " \t\r\n*_`)\"'"), "?")
}

// resolveThreads resolves the addressed threads if the repository's settings say so. A thread to which a person has
// written since stays open.
func (s *Steps) resolveThreads(ctx context.Context, r *round) error {
	if !r.Task.Settings.Resolve {
		return nil
	}
	for _, f := range r.targets() {
		th := r.threads[f.Thread]
		result, _ := threadResult(r.Task, f)
		addressed := result == comment.ThreadChanged || result == comment.ThreadAnswered
		if th.Resolved || !addressed || s.hasNewer(ctx, th, f) {
			continue
		}
		err := s.GitHub.ResolveThread(ctx, r.Repo, th.Node)
		if class, _ := forge.Classify(err); err != nil && class != forge.ClassPermanent {
			return fmt.Errorf("resolve thread %d: %w", f.Thread, err)
		}
		if err != nil {
			r.Log.Warn().Err(err).Int64("thread", f.Thread).Msg("failed to resolve a review thread")
		}
	}
	return nil
}

// hasNewer reports whether a thread has a comment by somebody else that is newer than the answered feedback.
func (s *Steps) hasNewer(ctx context.Context, th forge.Thread, f state.Feedback) bool {
	me, err := s.GitHub.Self(ctx)
	if err != nil {
		return true
	}
	last := step.LastComment(f)
	return slices.ContainsFunc(th.Comments, func(c forge.Comment) bool { return c.ID > last && c.Author.ID != me.BotID })
}

// requestReviews requests another review from the people who requested changes before the round began, unless they
// have reviewed since. It never fails the round: GitHub may refuse a request, for example if a person has left.
func (s *Steps) requestReviews(ctx context.Context, r *round) {
	number := r.Task.PR.Number
	reviews, err := s.GitHub.Reviews(ctx, r.Repo, number)
	if err != nil {
		r.Log.Warn().Err(err).Msg("failed to read who requested changes")
		return
	}
	began, _ := roundBegan(r.Task)
	for _, who := range requestedChanges(reviews, began) {
		if p, err := s.GitHub.Permission(ctx, r.Repo, who.Login, who.ID); err != nil || !p.CanWrite() {
			continue
		}
		note, err := s.GitHub.RequestReview(ctx, r.Repo, number, who.Login)
		if err != nil || note != "" {
			r.Log.Info().Err(err).Str("login", who.Login).Str("note", note).Msg("failed to request another review")
		}
	}
}

// requestedChanges returns the people whose last verdict is a request for changes from before a time, in the order of
// their first verdicts. A zero time is now.
func requestedChanges(reviews []forge.Review, before time.Time) (list []state.Person) {
	last := map[int64]forge.Review{}
	var order []int64
	for _, v := range reviews {
		if v.By.ID == 0 || v.By.Bot || v.State != "approved" && v.State != "changes_requested" && v.State != "dismissed" {
			continue
		}
		if _, ok := last[v.By.ID]; !ok {
			order = append(order, v.By.ID)
		}
		last[v.By.ID] = v
	}
	for _, id := range order {
		if v := last[id]; v.State == "changes_requested" && (before.IsZero() || !v.At.After(before)) {
			list = append(list, v.By)
		}
	}
	return list
}

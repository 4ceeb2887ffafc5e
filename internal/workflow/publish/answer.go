package publish

import (
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

// Answer answers the threads of a round in one review, each once. The first job adds the answers to a pending review,
// which only errand sees; the second one, which knows the review, submits it. If there are no threads, the answers to
// other feedback become a comment.
func (s *Steps) Answer(ctx context.Context, w *step.Attempt) (event.Event, error) {
	t := w.Task
	if t.Work == nil || t.PR == nil {
		return event.Event{Payload: event.ThreadsAnswered{}}, nil
	}
	r := &round{Attempt: w, replied: map[string]bool{}}
	var err error
	if r.before, err = w.MarkAttempted(ctx); err != nil {
		return event.Event{}, err
	}
	if r.view, err = s.View.Read(ctx); err != nil {
		return event.Event{}, err
	}
	if err := s.readThreads(ctx, r); err != nil {
		return event.Event{}, err
	}
	if r.earlier, err = step.FindAnswered(ctx, s.GitHub, w); err != nil {
		return event.Event{}, err
	}
	if t.Work.Review != "" {
		return s.submit(ctx, r)
	}
	if err := s.findReplies(ctx, r); err != nil {
		return event.Event{}, err
	}
	review, err := s.fillReview(ctx, r)
	if err != nil {
		return event.Event{}, err
	}
	out := event.ThreadsAnswered{Review: review}
	if len(r.doubtful.Keys) > 0 {
		out.Uncertain = &r.doubtful
	}
	if review != "" {
		return event.Event{Payload: out}, nil
	}
	s.requestReviews(ctx, r)
	out.Post = s.roundPost(r, func(f state.Feedback) bool { return !r.answered(f) })
	return event.Event{Payload: out}, nil
}

// roundPost returns the comment with the answers to feedback outside of threads, and to that in threads which are left
// over, nil if there are none.
func (s *Steps) roundPost(r *round, left func(f state.Feedback) bool) *state.Post {
	t := r.Task
	var items, links []string
	for _, o := range s.otherAnswers(r, left) {
		items, links = append(items, o.Text), append(links, comment.FeedbackURL(t, o.To))
	}
	if len(items) == 0 {
		return nil
	}
	return &state.Post{Kind: state.PostRound, OnPR: true, Text: mapIDs(roundSummary(t.Work), t.Work.IDs), Items: items, Links: links,
		By: t.Feedback[0].By}
}

// otherAnswers returns the answers to feedback outside of threads, and to that in threads which are left over.
func (s *Steps) otherAnswers(r *round, left func(f state.Feedback) bool) (list []comment.OtherAnswer) {
	t := r.Task
	for _, f := range t.Feedback {
		switch {
		case f.TakenBy == "" || slices.Contains(r.earlier, f.ID):
		case f.Thread != 0:
			if left(f) {
				text, _ := s.answerTo(t, f)
				list = append(list, comment.OtherAnswer{To: f, Text: text})
			}
		case slices.Contains([]state.FeedbackKind{state.FeedbackComment, state.FeedbackReview, state.FeedbackAnswer, state.FeedbackCI}, f.Kind) || f.Base != "":
			text, _ := s.answerTo(t, f)
			if f.Base != "" && text == unreported {
				text = "The round's commits show how the conflicts with the base were resolved."
			}
			list = append(list, comment.OtherAnswer{To: f, Text: text})
		}
	}
	return list
}

func roundSummary(w *state.Work) string {
	if w.Summary != "" {
		return w.Summary
	}
	return w.Text
}

// unreported is the answer to feedback about which the agent reports nothing.
const unreported = "The agent did not report what it changed here."

// answerTo returns the agent's answer to one piece of feedback, or a text that it gave none.
func (s *Steps) answerTo(t *state.Task, f state.Feedback) (text, sha string) {
	sha = t.Work.Head
	for _, a := range t.Work.Answers {
		if a.ID == f.ID {
			text = mapIDs(a.Answer, t.Work.IDs)
			if p, ok := t.Work.IDs[a.Commit]; ok {
				sha = p
			}
			if a.Commit == "" && text != "" { // it says why there is none
				sha = ""
			}
		}
	}
	if text == "" && sha == "" {
		return "The agent changed nothing here and gave no reason. Comment again if a change is needed.", ""
	}
	if text == "" {
		text = unreported
	}
	return text, sha
}

// roundBegan returns when the task's round began, and whether it stopped since then, so that another job
// may have answered a part of it.
func roundBegan(t *state.Task) (at time.Time, stopped bool) {
	for _, r := range t.Runs {
		if r.Kind == state.RunReview && r.Round == t.Round && !r.Started.IsZero() { // one that could not be launched has none
			at = r.Started
			break
		}
	}
	stopped = slices.ContainsFunc(t.History, func(h state.PhaseChange) bool {
		return h.At.After(at) && (h.Phase == state.PhaseFailed || h.Phase == state.PhaseInterrupted || h.Phase == state.PhaseAwaitingAnswer)
	})
	return at, stopped
}

// A round is an attempt to answer the review threads of a round.
type round struct {
	*step.Attempt
	view    comment.View
	before  bool // an earlier attempt may have answered
	threads map[int64]forge.Thread
	// replied has the keys of the answers that are on GitHub.
	replied map[string]bool
	// earlier has the feedback that was answered before errand was restored from a backup.
	earlier []string
	// doubtful are the answers that may have been written before; they are looked for again later.
	doubtful event.UncertainAnswers
}

// keyPrefix begins the keys of all answers of the round. They are the same for each job that answers it.
func (r *round) keyPrefix() string { return fmt.Sprintf("%d.answer-%d-", r.Task.Gen, r.Task.Round) }

// key returns the idempotency key of an answer.
func (r *round) key(f state.Feedback) string { return r.keyPrefix() + f.ID }

// answered reports whether an answer is on GitHub.
func (r *round) answered(f state.Feedback) bool {
	return r.replied[r.key(f)] || slices.Contains(r.earlier, f.ID)
}

// targets returns the feedback whose threads still exist. A thread is gone if its first comment was deleted.
func (r *round) targets() (list []state.Feedback) {
	for _, f := range r.Task.Feedback {
		if _, ok := r.threads[f.Thread]; ok && f.TakenBy != "" && f.Thread != 0 {
			list = append(list, f)
		}
	}
	return list
}

// readThreads reads the threads of the pull request if the round has some.
func (s *Steps) readThreads(ctx context.Context, r *round) error {
	if !slices.ContainsFunc(r.Task.Feedback, func(f state.Feedback) bool { return f.Thread != 0 && f.TakenBy != "" }) {
		return nil
	}
	list, err := s.GitHub.Threads(ctx, r.Repo, r.Task.PR.Number)
	if err != nil {
		return fmt.Errorf("read the review threads: %w", err)
	}
	r.threads = map[int64]forge.Thread{}
	for _, th := range list {
		r.threads[th.TopID] = th
	}
	return nil
}

// findReplies looks for the answers that earlier attempts may have written.
func (s *Steps) findReplies(ctx context.Context, r *round) error {
	since, again := roundBegan(r.Task)
	if !r.before && !again {
		return nil
	}
	if since.IsZero() {
		since = r.Job.Created
	}
	r.doubtful.Since = since
	for _, f := range r.targets() {
		key := r.key(f)
		r.doubtful.Keys = append(r.doubtful.Keys, key)
		found, err := s.GitHub.FindReplies(ctx, r.Repo, r.Task.PR.Number, comment.Marker(key), since.Add(-step.LookBack))
		if err != nil {
			return fmt.Errorf("look for the answer in thread %d: %w", f.Thread, err)
		}
		if len(found) == 0 {
			continue
		}
		r.replied[key] = true
		if err := s.deleteReplies(ctx, r.Attempt, found[1:]); err != nil {
			return err
		}
	}
	return nil
}

// fillReview adds the missing answers to errand's pending review, and returns the review. It returns "" if there is
// nothing to submit.
func (s *Steps) fillReview(ctx context.Context, r *round) (string, error) {
	if len(r.targets()) == 0 {
		return "", nil
	}
	review, filled, err := s.pendingReview(ctx, r)
	if err != nil {
		return "", err
	}
	missing := slices.DeleteFunc(r.targets(), r.answered)
	if len(missing) == 0 && !filled {
		return "", nil // they were submitted before
	}
	if review == "" {
		if review, err = s.GitHub.StartReview(ctx, r.Repo, r.Task.PR.Node); err != nil {
			return "", fmt.Errorf("start the review: %w", err)
		}
	}
	for _, f := range missing {
		err := s.GitHub.AddReply(ctx, r.Repo, review, r.threads[f.Thread].Node, s.reply(r, f))
		if errors.Is(err, forge.ErrNotFound) { // it was deleted; the round ends nevertheless
			r.Log.Info().Err(err).Int64("thread", f.Thread).Msg("review thread no longer exists; reply dropped")
			continue
		}
		if err != nil {
			return "", fmt.Errorf("answer in thread %d: %w", f.Thread, err)
		}
	}
	return review, nil
}

// pendingReview returns the pending review of the round, "" if there is none, and whether it has answers, which it
// notes. GitHub allows one pending review at a time, so what another round left behind is deleted.
func (s *Steps) pendingReview(ctx context.Context, r *round) (review string, filled bool, err error) {
	found, err := s.GitHub.PendingReview(ctx, r.Repo, r.Task.PR.Number)
	if err != nil {
		return "", false, fmt.Errorf("look for a pending review: %w", err)
	}
	if found == nil {
		return "", false, nil
	}
	var keys []string
	for _, c := range found.Replies {
		key, _ := comment.FindMarker(c.Body)
		if !strings.HasPrefix(key, r.keyPrefix()) || c.CreatedAt.Before(r.Job.Restored) { // an errand that is lost counted the same rounds
			r.Log.Warn().Str("review", found.Node).Msg("deleting a pending review that was left behind")
			if err := s.GitHub.DeleteReview(ctx, r.Repo, found.Node); err != nil {
				return "", false, fmt.Errorf("delete the pending review of another round: %w", err)
			}
			return "", false, nil
		}
		keys = append(keys, key)
	}
	for _, key := range keys {
		r.replied[key] = true
	}
	return found.Node, len(keys) > 0, nil
}

// reply returns the text of an answer in a thread.
func (s *Steps) reply(r *round, f state.Feedback) string {
	v := r.view
	v.Key = r.key(f)
	text, sha := s.answerTo(r.Task, f)
	p := state.Post{Kind: state.PostThread, OnPR: true, Thread: f.Thread, By: f.By, Text: text}
	if sha != "" {
		p.Items = []string{sha}
	}
	body, _ := s.Redact.Redact(comment.Render(r.Task, p, v))
	return body
}

// DeleteTwins checks a while after an unknown outcome for a second copy of an answer in a review thread, and deletes
// it.
func (s *Steps) DeleteTwins(ctx context.Context, w *step.Attempt, key string) (event.Event, error) {
	if w.Job.Args.Number == 0 || w.Job.Args.Since.IsZero() {
		return event.Event{}, fmt.Errorf("look for a twin of answer %q: the job has no pull request or no time", key)
	}
	found, err := s.GitHub.FindReplies(ctx, w.Repo, w.Job.Args.Number, comment.Marker(key), w.Job.Args.Since.Add(-step.LookBack))
	if err != nil {
		return event.Event{}, fmt.Errorf("look for a twin answer: %w", err)
	}
	if len(found) == 0 {
		return step.Done(), nil
	}
	return step.Done(), s.deleteReplies(ctx, w, found[1:])
}

// deleteReplies removes younger answers with the same marker.
func (s *Steps) deleteReplies(ctx context.Context, w *step.Attempt, twins []forge.Comment) error {
	for _, t := range twins {
		if err := s.GitHub.DeleteReply(ctx, w.Repo, t.ID); err != nil {
			return fmt.Errorf("delete a twin answer: %w", err)
		}
	}
	return nil
}

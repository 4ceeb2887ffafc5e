package publish

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/workflow/step"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/event"
)

// Answer answers every thread of a round, each once, and lists the answers to other feedback in
// one comment.
func (s *Steps) Answer(ctx context.Context, w *step.Attempt) (event.Event, error) {
	t := w.Task
	if t.Work == nil || t.PR == nil {
		return event.Event{Payload: event.ThreadsAnswered{}}, nil
	}
	r := &round{Attempt: w}
	var err error
	if r.before, err = w.MarkAttempted(ctx); err != nil {
		return event.Event{}, err
	}
	if r.view, err = s.View.Read(ctx); err != nil {
		return event.Event{}, err
	}
	var rest []string
	for _, f := range t.Feedback {
		if f.TakenBy == "" {
			continue
		}
		text, sha := s.answerTo(t, f)
		if f.Thread == 0 {
			if f.Kind == state.FeedbackComment || f.Kind == state.FeedbackReview || f.Kind == state.FeedbackAnswer {
				rest = append(rest, text)
			}
			continue
		}
		err := s.reply(ctx, r, f, text, sha)
		if errors.Is(err, forge.ErrNotFound) { // the answered comment was deleted; the round ends nevertheless
			w.Log.Info().Err(err).Int64("thread", f.Thread).Msg("review thread no longer exists; reply dropped")
			rest = append(rest, text)
			continue
		}
		if err != nil {
			return event.Event{}, fmt.Errorf("answer in thread %d: %w", f.Thread, err)
		}
	}
	var out event.ThreadsAnswered
	if len(r.doubtful.Keys) > 0 {
		out.Uncertain = &r.doubtful
	}
	if len(rest) > 0 {
		out.Post = &state.Post{Kind: state.PostRound, OnPR: true, Text: mapIDs(roundSummary(t.Work), t.Work.IDs), Items: rest, By: t.Feedback[0].By}
	}
	return event.Event{Payload: out}, nil
}

func roundSummary(w *state.Work) string {
	if w.Summary != "" {
		return w.Summary
	}
	return w.Text
}

// answerTo returns the agent's answer to one piece of feedback, or a text that it gave none.
func (s *Steps) answerTo(t *state.Task, f state.Feedback) (text, sha string) {
	sha = t.Work.Head
	for _, a := range t.Work.Answers {
		if a.ID == f.ID {
			text = mapIDs(a.Answer, t.Work.IDs)
			if p, ok := t.Work.IDs[a.Commit]; ok {
				sha = p
			}
		}
	}
	if text == "" && sha == "" {
		return "The agent changed nothing here and gave no reason. Comment again if a change is needed.", ""
	}
	if text == "" {
		text = "The agent did not report what it changed here."
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
	view   comment.View
	before bool // an earlier attempt may have answered
	// doubtful are the answers that may have been written before; they are looked for again later.
	doubtful event.UncertainAnswers
}

// reply writes one answer in a thread, unless an earlier attempt did.
func (s *Steps) reply(ctx context.Context, r *round, f state.Feedback, text, sha string) error {
	t, v := r.Task, r.view
	v.Key = fmt.Sprintf("%d.answer-%d-%s", t.Gen, t.Round, f.ID) // of the round: after a retry another job answers
	since, again := roundBegan(t)
	if since.IsZero() {
		since = r.Job.Created
	}
	if r.before || again {
		r.doubtful.Keys, r.doubtful.Since = append(r.doubtful.Keys, v.Key), since
		found, err := s.GitHub.FindReplies(ctx, r.Repo, t.PR.Number, comment.Marker(v.Key), since.Add(-step.LookBack))
		if err != nil {
			return err
		}
		if len(found) > 0 {
			return s.deleteReplies(ctx, r.Attempt, found[1:])
		}
	}
	p := state.Post{Kind: state.PostThread, OnPR: true, Thread: f.Thread, By: f.By, Text: text}
	if sha != "" {
		p.Items = []string{sha}
	}
	body, _ := s.Redact.Redact(comment.Render(t, p, v))
	_, err := s.GitHub.ReplyInThread(ctx, r.Repo, t.PR.Number, f.Thread, body)
	return err
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

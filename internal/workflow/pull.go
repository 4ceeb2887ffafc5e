package workflow

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/pushgate"
	"github.com/errand-bot/errand/state"
)

// openPR opens the task's pull request, once, and asks for a review.
func (s *Steps) openPR(ctx context.Context, w *unit) (state.Event, error) {
	before, err := s.attempted(ctx, w)
	if err != nil {
		return state.Event{}, err
	}
	want, err := s.newPR(ctx, w)
	if err != nil {
		return state.Event{}, err
	}
	want.CheckExisting = before
	pr, err := s.GitHub.OpenPR(ctx, w.repo, want)
	if err != nil {
		return state.Event{}, s.branchGone(ctx, w, fmt.Errorf("open the pull request: %w", err))
	}
	if note := s.askForReview(ctx, w, pr.Number); note != "" {
		w.log.Info().Str("note", note).Msg("ask for a review")
	}
	out := pr.State()
	e := state.Event{Kind: state.EventPROpened, PR: &out}
	if before { // people may have said something there before the store knew of it
		e.Detail = "looked"
	}
	return e, nil
}

// newPR is what the pull request says.
func (s *Steps) newPR(ctx context.Context, w *unit) (forge.NewPR, error) {
	t := w.task
	template, err := s.GitHub.PRTemplate(ctx, w.repo, t.Repo.DefaultBranch)
	if err != nil {
		return forge.NewPR{}, fmt.Errorf("read the pull-request template: %w", err)
	}
	title, err := comment.Expand(t.Settings.Title, s.vars(t, t.Ticket))
	if err != nil {
		return forge.NewPR{}, &Problem{Reason: "The title template cannot be used.", Hint: err.Error(), Class: "config", Permanent: true, Err: err}
	}
	v, err := s.view(ctx)
	if err != nil {
		return forge.NewPR{}, err
	}
	v.Key = w.job.Key
	body, _ := s.Redact.Redact(comment.PRBody(t, comment.PRInput{Template: template, Summary: summaryOf(t.Work), Checks: t.Work.Checks, Notes: t.Work.Notes}, v))
	title, _ = s.Redact.Redact(pushgate.SafeMessage(title, homeOf(t))) // it becomes the message of a squashed commit
	return forge.NewPR{Head: t.Branch.Name, Base: t.Branch.Base, Title: title, Body: body, Draft: t.Settings.Draft}, nil
}

// summaryOf is what the agent said about its work.
func summaryOf(w *state.Work) string {
	if w.Text != "" {
		return mapIDs(w.Text, w.IDs)
	}
	return mapIDs(w.Summary, w.IDs)
}

// askForReview asks the author if that person may write, else who approved. It never fails
// the step: a pull request without a reviewer is open all the same.
func (s *Steps) askForReview(ctx context.Context, w *unit, number int) string {
	t := w.task
	who := t.Trigger.By
	if t.Approval != nil {
		who = t.Approval.By
	}
	if t.Author.ID != who.ID && !t.Author.Bot {
		if p, err := s.GitHub.Permission(ctx, w.repo, t.Author.Login, t.Author.ID); err == nil && p.CanWrite() {
			who = t.Author
		}
	}
	note, err := s.GitHub.RequestReview(ctx, w.repo, number, who.Login)
	if err != nil {
		return err.Error()
	}
	return note
}

// commitID finds what looks like a commit id.
var commitID = regexp.MustCompile(`\b[0-9a-f]{7,40}\b`)

// mapIDs replaces the VM's commit ids in the agent's words by the published ones.
func mapIDs(text string, ids map[string]string) string {
	if len(ids) == 0 {
		return text
	}
	return commitID.ReplaceAllStringFunc(text, func(found string) string {
		for local, published := range ids {
			if strings.HasPrefix(local, found) {
				return published[:max(len(found), 7)]
			}
		}
		return found
	})
}

// answer answers every thread of a round, each once, and says in one comment what was done about
// the rest.
func (s *Steps) answer(ctx context.Context, w *unit) (state.Event, error) {
	t := w.task
	if t.Work == nil || t.PR == nil {
		return state.Event{Kind: state.EventAnswered}, nil
	}
	before, err := s.attempted(ctx, w)
	if err != nil {
		return state.Event{}, err
	}
	v, err := s.view(ctx)
	if err != nil {
		return state.Event{}, err
	}
	var rest []string
	doubtful := &state.Doubtful{}
	for _, f := range t.Feedback {
		if f.Taken == "" {
			continue
		}
		text, sha := s.answerTo(t, f)
		if f.Thread == 0 {
			if f.Kind == "comment" || f.Kind == "review" || f.Kind == "answer" {
				rest = append(rest, text)
			}
			continue
		}
		err := s.reply(ctx, w, f, text, sha, v, before, doubtful)
		if errors.Is(err, forge.ErrNotFound) { // somebody deleted what it answers: the round ends all the same
			w.log.Info().Err(err).Int64("thread", f.Thread).Msg("answer in a thread that is gone")
			rest = append(rest, text)
			continue
		}
		if err != nil {
			return state.Event{}, fmt.Errorf("answer in thread %d: %w", f.Thread, err)
		}
	}
	e := state.Event{Kind: state.EventAnswered}
	if len(doubtful.Keys) > 0 {
		e.Doubtful = doubtful
	}
	if len(rest) > 0 {
		e.Post = &state.Post{Kind: state.PostRound, OnPR: true, Text: mapIDs(roundSummary(t.Work), t.Work.IDs), Items: rest, By: t.Feedback[0].By}
	}
	return e, nil
}

func roundSummary(w *state.Work) string {
	if w.Summary != "" {
		return w.Summary
	}
	return w.Text
}

// answerTo is what the agent said about one piece of feedback, or that it said nothing.
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
		return "The agent changed nothing here and gave no reason. Comment again if something is to be done.", ""
	}
	if text == "" {
		text = "The agent did not say what it did about this."
	}
	return text, sha
}

// roundBegan says when the task's round began, and whether it stopped since then, so that another job
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

// reply writes one answer in a thread, unless an earlier attempt did. An answer that may have been written
// before is looked for again later: it is noted in doubtful.
func (s *Steps) reply(ctx context.Context, w *unit, f state.Feedback, text, sha string, v comment.View, before bool, doubtful *state.Doubtful) error {
	t := w.task
	v.Key = fmt.Sprintf("%d.answer-%d-%s", t.Gen, t.Round, f.ID) // of the round: after a retry another job answers
	since, again := roundBegan(t)
	if since.IsZero() {
		since = w.job.Created
	}
	if before || again {
		doubtful.Keys, doubtful.Since = append(doubtful.Keys, v.Key), since
		found, err := s.GitHub.FindReplies(ctx, w.repo, t.PR.Number, comment.Marker(v.Key), since.Add(-lookBack))
		if err != nil {
			return err
		}
		if len(found) > 0 {
			return s.deleteReplies(ctx, w, found[1:])
		}
	}
	p := state.Post{Kind: state.PostThread, OnPR: true, Thread: f.Thread, By: f.By, Text: text}
	if sha != "" {
		p.Items = []string{sha}
	}
	body, _ := s.Redact.Redact(comment.Render(t, p, v))
	_, err := s.GitHub.ReplyInThread(ctx, w.repo, t.PR.Number, f.Thread, body)
	return err
}

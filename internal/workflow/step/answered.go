package step

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/comment"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/state"
)

// Answers reads errand's answers to feedback on a pull request.
type Answers interface {
	Self
	Threads(ctx context.Context, r forge.Repo, number int) ([]forge.Thread, error)
	Reviews(ctx context.Context, r forge.Repo, number int) ([]forge.Review, error)
	CommentsSince(ctx context.Context, r forge.Repo, number int, since time.Time) ([]forge.Comment, error)
}

// FindAnswered returns the IDs of the task's feedback that errand has answered on its pull request. That is possible only after errand was
// restored from a backup that does not know the answers; otherwise it returns nil.
func FindAnswered(ctx context.Context, github Answers, w *Attempt) (ids []string, err error) {
	t := w.Task
	if w.Job.Restored.IsZero() || t.PR == nil || len(t.Feedback) == 0 {
		return nil, nil
	}
	me, err := github.Self(ctx)
	if err != nil {
		return nil, err
	}
	threads, err := answeredThreads(ctx, github, w, me)
	if err != nil {
		return nil, err
	}
	texts, err := answeringTexts(ctx, github, w, me)
	if err != nil {
		return nil, err
	}
	for _, f := range t.Feedback {
		url := comment.FeedbackURL(t, f)
		switch {
		case f.Thread != 0:
			if threads[f.Thread] >= LastComment(f) {
				ids = append(ids, f.ID)
			}
		case url != "" && slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, "("+url+")") }):
			ids = append(ids, f.ID)
		}
	}
	return ids, nil
}

// answeredThreads returns the newest comment that errand has answered in each thread, by the thread's first comment.
func answeredThreads(ctx context.Context, github Answers, w *Attempt, me forge.App) (map[int64]int64, error) {
	if !slices.ContainsFunc(w.Task.Feedback, func(f state.Feedback) bool { return f.Thread != 0 }) {
		return nil, nil
	}
	list, err := github.Threads(ctx, w.Repo, w.Task.PR.Number)
	if err != nil {
		return nil, fmt.Errorf("look for answers in review threads: %w", err)
	}
	last := map[int64]int64{}
	for _, th := range list {
		last[th.TopID] = LastAnswered(th.Comments, me)
	}
	return last, nil
}

// answeringTexts returns the texts of errand's reviews and of its comments that answer a round. They link to the feedback outside of
// threads that they answer.
func answeringTexts(ctx context.Context, github Answers, w *Attempt, me forge.App) (texts []string, err error) {
	t := w.Task
	var since []time.Time
	for _, f := range t.Feedback {
		if f.Thread == 0 && comment.FeedbackURL(t, f) != "" {
			since = append(since, f.At)
		}
	}
	if len(since) == 0 {
		return nil, nil
	}
	reviews, err := github.Reviews(ctx, w.Repo, t.PR.Number)
	if err != nil {
		return nil, fmt.Errorf("look for answers in reviews: %w", err)
	}
	comments, err := github.CommentsSince(ctx, w.Repo, t.PR.Number, slices.MinFunc(since, time.Time.Compare).Add(-LookBack))
	if err != nil {
		return nil, fmt.Errorf("look for answers in comments: %w", err)
	}
	add := func(author int64, text, kind string) {
		if key, ok := comment.FindMarker(text); ok && author == me.BotID && strings.Contains(key, kind) {
			texts = append(texts, text)
		}
	}
	for _, v := range reviews {
		add(v.By.ID, v.Body, ".review-")
	}
	for _, c := range comments {
		add(c.Author.ID, c.Body, ".round-")
	}
	return texts, nil
}

// LastAnswered returns the ID of the newest comment of a thread that errand has answered, 0 if there is none. The marker of an answer
// names it: people may have written more while the agent worked.
func LastAnswered(list []forge.Comment, me forge.App) (last int64) {
	for _, c := range list {
		if c.Author.ID != me.BotID {
			continue
		}
		id := c.ID // without a readable marker, it answers all before it
		key, _ := comment.FindMarker(c.Body)
		if _, feedback, ok := strings.Cut(key, "-thread:"); ok {
			if n, err := strconv.ParseInt(feedback[strings.LastIndexByte(feedback, ':')+1:], 10, 64); err == nil {
				id = n
			}
		}
		last = max(last, id)
	}
	return last
}

// LastComment returns the ID of the newest comment of a thread that the feedback contains.
func LastComment(f state.Feedback) int64 {
	id, err := strconv.ParseInt(f.ID[strings.LastIndexByte(f.ID, ':')+1:], 10, 64)
	if err != nil {
		return f.Thread
	}
	return id
}

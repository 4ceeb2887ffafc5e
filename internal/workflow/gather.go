package workflow

import (
	"context"
	"fmt"
	"strings"

	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/state"
)

// gather reads what people wrote in review threads since we last answered there.
func (s *Steps) gather(ctx context.Context, w *unit) (state.Event, error) {
	if w.task.PR == nil {
		return done(), nil
	}
	threads, err := s.GitHub.Threads(ctx, w.repo, w.task.PR.Number)
	if err != nil {
		return state.Event{}, fmt.Errorf("read the review threads: %w", err)
	}
	me, err := s.GitHub.Self(ctx)
	if err != nil {
		return state.Event{}, err
	}
	e := state.Event{Kind: state.EventGathered}
	trusted := map[int64]bool{}
	for _, th := range threads {
		if th.Resolved {
			continue
		}
		f, err := s.threadFeedback(ctx, w, th, me.BotID, trusted)
		if err != nil {
			return state.Event{}, err
		}
		if f != nil {
			e.Feedback = append(e.Feedback, *f)
		}
	}
	return e, nil
}

// threadFeedback is what people with write permission wrote in a thread after our last word there.
func (s *Steps) threadFeedback(ctx context.Context, w *unit, th forge.Thread, me int64, trusted map[int64]bool) (*state.Feedback, error) {
	var last *forge.ThreadComment
	var words []string
	for i := range th.Comments {
		c := &th.Comments[i]
		if c.By.ID == me {
			last, words = nil, nil
			continue
		}
		ok, known := trusted[c.By.ID]
		if !known {
			p, err := s.GitHub.Permission(ctx, w.repo, c.By.Login, c.By.ID)
			if err != nil {
				return nil, fmt.Errorf("ask what @%s may do: %w", c.By.Login, err)
			}
			ok = p.CanWrite()
			trusted[c.By.ID] = ok
		}
		if ok {
			body, _ := trust.Strip(c.Body)
			last, words = c, append(words, body)
		}
	}
	if last == nil {
		return nil, nil
	}
	return &state.Feedback{
		ID: fmt.Sprintf("thread:%d:%d", th.TopID, last.ID), Kind: "thread", By: last.By, At: last.At,
		Body: strings.Join(words, "\n\n"), Path: th.Path, Line: th.Line, Hunk: th.Hunk, Thread: th.TopID, OnPR: true,
	}, nil
}

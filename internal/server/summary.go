package server

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/errand-bot/errand/state"
)

// summaryTime bounds the writing of one summary.
const summaryTime = 10 * time.Second

// summarise writes down what a task has come to so far, beside its transcripts. Whoever comes last writes what is
// newest. That it fails spoils nothing: what was missed is written at the task's next turn, or at the next start.
func (s *Server) summarise(ctx context.Context, key state.TaskKey) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), summaryTime)
	defer cancel()
	s.summing.Lock()
	defer s.summing.Unlock()
	t, err := s.store.Task(ctx, key)
	if err == nil && t != nil {
		err = s.saveSummary(t)
	}
	if err != nil {
		s.opts.Log.Warn().Err(err).Str("task", key.String()).Msg("write a task's summary")
	}
}

func (s *Server) saveSummary(t *state.Task) error {
	data, err := json.MarshalIndent(t.Summary(), "", "  ")
	if err != nil {
		return fmt.Errorf("write the summary of %s: %w", t.Key, err)
	}
	return s.archive.SaveSummary(summaryOf(t), append(data, '\n'))
}

// summaryOf names the summary of a task's present life.
func summaryOf(t *state.Task) string {
	return fmt.Sprintf("%d-%d-life-%d", t.Key.Repo, t.Key.Issue, t.Gen)
}

// summaryPage is how many tasks are read at once.
const summaryPage = 200

// summariseMissed writes the summaries that a process which died has not written, as far back as transcripts are kept.
func (s *Server) summariseMissed(ctx context.Context) {
	since := s.opts.Now().Add(-s.cfg.Keep.Transcripts)
	var after state.TaskKey
	for ctx.Err() == nil {
		tasks, err := s.store.AllTasks(ctx, after, summaryPage)
		if err != nil {
			if ctx.Err() == nil {
				s.opts.Log.Warn().Err(err).Msg("look for summaries that are missing")
			}
			return
		}
		for _, t := range tasks {
			after = t.Key
			if t.Since.After(since) && s.archive.SummaryTime(summaryOf(t)).Before(t.Since) {
				s.summarise(ctx, t.Key)
			}
		}
		if len(tasks) < summaryPage {
			return
		}
	}
}

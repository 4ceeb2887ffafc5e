package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/watch"
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
		err = errors.Join(s.closeTranscripts(t), s.saveSummary(t))
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

// closeTranscripts ends the transcripts of runs that were turned away from and that nobody follows any more: their
// VMs are gone, or errand died before it had read them to their ends.
func (s *Server) closeTranscripts(t *state.Task) error {
	for i := range t.Runs {
		r := &t.Runs[i]
		if r.Told || r.State != state.RunEnded || s.closed[r.ID] || s.super.Follows(r.ID) {
			continue
		}
		there, err := s.closeTranscript(watch.Unread(t, r))
		if err != nil {
			return fmt.Errorf("end the transcript of %s: %w", r.ID, err)
		}
		if len(s.closed) >= maxClosed {
			clear(s.closed) // they are looked at once more then
		}
		if there {
			s.closed[r.ID] = true
		}
	}
	return nil
}

// maxClosed bounds how many runs are remembered.
const maxClosed = 10_000

// closeTranscript ends a run's transcript, if there is one without an end.
func (s *Server) closeTranscript(e runlog.End) (there bool, err error) {
	f, err := s.archive.OpenTranscript(e.Run)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	ended := false
	_, err = runlog.ReadTranscript(f, func(e runlog.Entry) error { ended = ended || e.End != nil; return nil })
	if err = errors.Join(err, f.Close()); err != nil || ended {
		return true, err
	}
	tr, err := s.archive.Transcript(e.Run)
	if err != nil {
		return true, err
	}
	return true, errors.Join(tr.End(e), tr.Close())
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
			missed := s.archive.SummaryTime(summaryOf(t)).Before(t.Since) || slices.ContainsFunc(t.Runs, func(r state.Run) bool { return !r.Told })
			if t.Since.After(since) && missed {
				s.summarise(ctx, t.Key)
			}
		}
		if len(tasks) < summaryPage {
			return
		}
	}
}

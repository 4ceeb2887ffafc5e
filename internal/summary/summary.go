// Package summary writes a summary of each task next to the transcripts of its runs, and completes the transcripts of
// ended runs that no supervisor follows.
//
// Start with Writer.Write.
package summary

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/store"
)

// writeTimeout bounds the writing of one summary.
const writeTimeout = 10 * time.Second

// Config is what a Writer needs. All fields are required.
type Config struct {
	Store   *store.Store
	Archive *archive.Dir
	// Follows reports whether a run is being followed: then its transcript ends without the Writer.
	Follows func(run string) bool
	// Keep is how long transcripts are kept: WriteMissed writes no summary of a task that last changed before that.
	Keep time.Duration
	Now  func() time.Time
	Log  zerolog.Logger
}

// A Writer writes summaries.
type Writer struct {
	cfg Config

	mu     sync.Mutex      // one summary is written at a time
	closed map[string]bool // runs whose transcripts have an end; under mu
}

// NewWriter returns a Writer.
func NewWriter(cfg Config) *Writer { return &Writer{cfg: cfg, closed: map[string]bool{}} }

// Write stores a summary of the task as it is now, in place of the previous one. A failure is logged and harmless: the
// summary is written when the task next changes its phase, or at the next start.
func (w *Writer) Write(ctx context.Context, key state.TaskKey) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	w.mu.Lock()
	defer w.mu.Unlock()
	t, err := w.cfg.Store.Task(ctx, key)
	if err == nil && t != nil && t.Purged.IsZero() {
		err = errors.Join(w.closeTranscripts(t), w.save(t))
	}
	if err != nil {
		w.cfg.Log.Warn().Err(err).Str("task", key.String()).Msg("failed to write a task's summary")
	}
}

// Settle waits until no summary is being written. Later ones see what is stored by now.
func (w *Writer) Settle() {
	w.mu.Lock()
	defer w.mu.Unlock()
}

func (w *Writer) save(t *state.Task) error {
	data, err := json.MarshalIndent(t.Summary(), "", "  ")
	if err != nil {
		return fmt.Errorf("write the summary of %s: %w", t.Key, err)
	}
	return w.cfg.Archive.SaveSummary(name(t), append(data, '\n'))
}

// closeTranscripts ends the transcripts of ended runs that nobody follows any more: their VMs are gone, or errand died
// before it had read them to the end.
func (w *Writer) closeTranscripts(t *state.Task) error {
	for i := range t.Runs {
		r := &t.Runs[i]
		if r.Reported || r.State != state.RunEnded || w.closed[r.ID] || w.cfg.Follows(r.ID) {
			continue
		}
		there, err := w.closeTranscript(watch.UnreadRecord(t, r))
		if err != nil {
			return fmt.Errorf("end the transcript of %s: %w", r.ID, err)
		}
		if len(w.closed) >= maxClosed {
			clear(w.closed) // they are checked once more then
		}
		if there {
			w.closed[r.ID] = true
		}
	}
	return nil
}

// maxClosed bounds the number of runs that a Writer remembers.
const maxClosed = 10_000

// closeTranscript ends a run's transcript if it has no end yet, and reports whether there is one.
func (w *Writer) closeTranscript(e runlog.End) (there bool, err error) {
	f, err := w.cfg.Archive.OpenTranscript(e.Run)
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
	tr, err := w.cfg.Archive.Transcript(e.Run)
	if err != nil {
		return true, err
	}
	return true, errors.Join(tr.End(e), tr.Close())
}

// name returns the name of the summary of a task's present life.
func name(t *state.Task) string {
	return fmt.Sprintf("%d-%d-life-%d", t.Key.Repo, t.Key.Issue, t.Gen)
}

// pageSize is the number of tasks that are read at once.
const pageSize = 200

// WriteMissed writes the summaries that an earlier process failed to write, as far back as transcripts are kept.
func (w *Writer) WriteMissed(ctx context.Context) {
	since := w.cfg.Now().Add(-w.cfg.Keep)
	var after state.TaskKey
	for ctx.Err() == nil {
		tasks, err := w.cfg.Store.AllTasks(ctx, after, pageSize)
		if err != nil {
			if ctx.Err() == nil {
				w.cfg.Log.Warn().Err(err).Msg("failed to look for missing summaries")
			}
			return
		}
		for _, t := range tasks {
			after = t.Key
			missed := w.cfg.Archive.SummaryTime(name(t)).Before(t.Since) ||
				slices.ContainsFunc(t.Runs, func(r state.Run) bool { return !r.Reported })
			if t.Since.After(since) && missed {
				w.Write(ctx, t.Key)
			}
		}
		if len(tasks) < pageSize {
			return
		}
	}
}

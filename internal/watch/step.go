package watch

import (
	"context"
	"errors"
	"fmt"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/state"
)

// The single steps of the Run methods, for a restored errand that catches up and for tests with their own clock. They must not be called
// while Run works.

// Poll reads the reactions on all polled comments once. young reports a recently posted plan, any whether anything is
// polled at all.
func (p *Poller) Poll(ctx context.Context) (young, any bool, err error) { return p.poll(ctx) }

// SweepDeliveries fetches lost webhooks once.
func (s *Sweeper) SweepDeliveries(ctx context.Context) error { return s.fetchLost(ctx) }

// Errors of SweepState.
var (
	// ErrIncomplete means that some tasks or repositories could not be compared with GitHub.
	ErrIncomplete = errors.New("compare tasks and repositories with GitHub")
	// ErrRefused means the same, and that it does not help to wait: GitHub refuses to show them until a person changes something.
	ErrRefused = fmt.Errorf("%w: GitHub refuses to show them", ErrIncomplete)
)

// SweepState compares with GitHub's state once. Unlike Run, it also returns an error if a single task or repository could not be compared.
func (s *Sweeper) SweepState(ctx context.Context) error {
	f, err := s.compareAll(ctx)
	switch {
	case err != nil:
		return err
	case f.all > f.refused:
		return fmt.Errorf("%w: %d could not", ErrIncomplete, f.all)
	case f.refused > 0:
		return fmt.Errorf("%w: %d could not", ErrRefused, f.refused)
	}
	return nil
}

// SweepRestored is SweepState for a restored errand before any job runs: it also reads the heads of the pull requests' branches, to which
// the errand that was lost may have pushed. Nothing else reports errand's own pushes.
func (s *Sweeper) SweepRestored(ctx context.Context) error {
	s.comparesHeads = true
	defer func() { s.comparesHeads = false }()
	return s.SweepState(ctx)
}

// A Following follows one run, one connection at a time. It is for a single goroutine.
type Following struct {
	f    *following
	task *state.Task
	log  zerolog.Logger
}

// Follow starts following the active run of a task. The caller calls Step until it returns true, then Close.
func (s *Supervisor) Follow(t *state.Task) (*Following, error) {
	log := s.cfg.Log.With().Str("task", t.Key.String()).Str("run", t.Run.ID).Str("vm", t.Run.VM).Logger()
	tr, err := s.cfg.Transcripts(t.Run.ID)
	if err != nil {
		return nil, err
	}
	f := &following{s: s, task: t.Key, run: t.Run.ID, interpreter: s.cfg.Interpret(t, t.Run), transcript: tr, lastOK: s.cfg.Now(), tools: map[string]bool{}}
	return &Following{f: f, task: t, log: log}, nil
}

// Step reads over one connection until it breaks. It returns true when the run's end or the loss of its VM is stored,
// or when the task no longer waits for the run.
func (f *Following) Step(ctx context.Context) bool {
	ended, err := f.f.read(ctx, f.task)
	if ended || ctx.Err() != nil {
		return true
	}
	if f.f.isSuperseded(ctx) {
		f.f.endTranscript(ctx, err, f.log)
		return true
	}
	f.log.Warn().Err(err).Msg("lost the connection to a run's log; retrying")
	cfg := f.f.s.cfg
	if cfg.Gone(err) || cfg.Now().Sub(f.f.lastOK) > cfg.GiveUp {
		f.f.reportLost(ctx, err, f.log)
		return true
	}
	return false
}

// Close closes the transcript, which is complete.
func (f *Following) Close() { _ = f.f.transcript.Close() }

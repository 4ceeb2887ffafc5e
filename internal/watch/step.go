package watch

import (
	"context"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/state"
)

// What Run does again and again, one piece at a time: for proofs that have a clock of their own.

// Poll reads the reactions on all that waits, once. young says that a plan was posted lately, any that
// something waits at all.
func (p *Poller) Poll(ctx context.Context) (young, any bool) { return p.poll(ctx) }

// SweepDeliveries fetches lost webhooks once.
func (s *Sweeper) SweepDeliveries(ctx context.Context) error { return s.deliveries(ctx) }

// SweepState compares with GitHub's state once.
func (s *Sweeper) SweepState(ctx context.Context) error { return s.state(ctx) }

// Following is one run being followed, connection by connection. It serves one goroutine.
type Following struct {
	f    *following
	task *state.Task
	log  zerolog.Logger
}

// Follow begins to follow the active run of a task. The caller calls Step until it says that it is
// over, then Close.
func (s *Supervisor) Follow(t *state.Task) (*Following, error) {
	log := s.cfg.Log.With().Str("task", t.Key.String()).Str("run", t.Run.ID).Str("vm", t.Run.VM).Logger()
	tr, err := s.cfg.Transcripts(t.Run.ID)
	if err != nil {
		return nil, err
	}
	f := &following{s: s, task: t.Key, run: t.Run.ID, in: s.cfg.Interpret(t, t.Run), transcript: tr, lastOK: s.cfg.Now()}
	return &Following{f: f, task: t, log: log}, nil
}

// Step reads over one connection until it breaks. It returns true when nothing is left to follow: the
// run's end, or the loss of its VM, is in the store, or nobody waits for the run any more.
func (f *Following) Step(ctx context.Context) bool {
	ended, err := f.f.read(ctx, f.task)
	if ended || ctx.Err() != nil {
		return true
	}
	if f.f.superseded(ctx) {
		f.f.letGo(ctx, err, f.log)
		return true
	}
	f.log.Warn().Err(err).Msg("follow a run")
	cfg := f.f.s.cfg
	if cfg.Gone(err) || cfg.Now().Sub(f.f.lastOK) > cfg.GiveUp {
		f.f.lost(ctx, err, f.log)
		return true
	}
	return false
}

// Close gives the transcript back. What it holds is complete.
func (f *Following) Close() { _ = f.f.transcript.Close() }

package server

import (
	"context"
	"net/http"
	"time"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/state"
)

// makeWatchers makes what looks at reactions and at runs.
func (s *Server) makeWatchers(context.Context) error {
	poll, t := s.cfg.Timing, s.opts.Timing
	s.poller = watch.NewPoller(watch.PollerConfig{
		Store: s.store, GitHub: s.forge, Log: s.opts.Log, Now: s.opts.Now, Fast: poll.PollFast, Slow: poll.PollSlow, Gap: t.PollGap, Polled: s.metrics.Polled,
	})
	s.super = watch.NewSupervisor(watch.SupervisorConfig{
		Store: s.store, Follow: s.follow, Gone: gone, Log: s.opts.Log, Now: s.opts.Now, Every: t.ProgressEvery, GiveUp: t.UnreachableFor,
		Tether:      func(ctx context.Context, task *state.Task) error { return line{s}.Ensure(ctx, task.Run.VM, task.Key) },
		Interpret:   func(task *state.Task, r *state.Run) watch.Interpreter { return s.steps.Interpret(task, r) },
		Transcripts: s.transcript,
	})
	return nil
}

// transcript goes on with a run's transcript.
func (s *Server) transcript(run string) (watch.Transcript, error) {
	t, err := s.archive.Transcript(run)
	if err != nil {
		return nil, err
	}
	return through[watch.Transcript](s.opts.Hooks.Transcript, t), nil
}

var _ watch.Transcript = (*archive.Transcript)(nil)

// follow opens a run's log.
func (s *Server) follow(ctx context.Context, vm, run string, from int64) (watch.Records, error) {
	return s.control.Follow(ctx, vm, run, from)
}

var _ watch.Records = (interface {
	Next() (runlog.Record, error)
	Close() error
})(nil)

// newInbox makes the inbox's worker; the route has stored deliveries since the listener opened.
func (s *Server) newInbox(m *handlers.Mapper) *handlers.Inbox {
	b := handlers.NewInbox(s.store, s.store, m, s.opts.Log, s.opts.Now)
	b.Received = s.received
	b.Applied = s.poller.Poke
	s.inbox.Store(b)
	return b
}

// received is told of every delivery that was stored.
func (s *Server) received(event string, isNew bool) {
	s.metrics.Delivery(event, isNew)
	if event == "installation" { // suspended, let again, or its permissions changed: tokens know of the old ones
		s.forge.InvalidateTokens()
	}
}

// newSweeper makes what looks for things that were missed.
func (s *Server) newSweeper(me forge.App, inbox *handlers.Inbox) *watch.Sweeper {
	t := s.cfg.Timing
	return watch.NewSweeper(watch.SweeperConfig{
		Store: s.store, GitHub: s.forge, Inbox: inbox, Log: s.opts.Log, Now: s.opts.Now, BotID: me.BotID, BotLogin: me.BotLogin,
		Assignee: s.cfg.Trigger.Assignee, Label: s.cfg.Trigger.Label, Deliveries: t.Deliveries, State: t.Sweep, GoneAfter: s.opts.Timing.GoneAfter,
	})
}

// reap deletes files that nobody needs any more, and old rows. VMs are the fleet's to reap.
func (s *Server) reap(ctx context.Context) error {
	every := min(time.Minute, s.opts.Timing.ReapGrace)
	for {
		s.reapOnce(ctx)
		timer := time.NewTimer(every)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C:
		}
	}
}

// tombstones is how long the GUIDs of deliveries are remembered: longer than GitHub can deliver one
// again.
const tombstones = 8 * 24 * time.Hour

func (s *Server) reapOnce(ctx context.Context) {
	now := s.opts.Now()
	_, perr := s.archive.Prune(now.Add(-max(s.cfg.Keep.AfterEnd, s.cfg.Limits.Expire)), now.Add(-s.cfg.Keep.Transcripts))
	_, terr := s.store.PruneTombstones(ctx, now.Add(-tombstones))
	_, serr := s.store.Prune(ctx, now.Add(-s.cfg.Keep.AfterEnd))
	rerr := s.reached.Prune(now.Add(-s.cfg.Keep.Transcripts))
	for _, err := range []error{perr, terr, serr, rerr, s.pruneSleeps(ctx, now)} {
		if err != nil && ctx.Err() == nil {
			s.opts.Log.Error().Err(err).Msg("clean up")
		}
	}
}

// health answers that the process serves.
func health(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n"))
}

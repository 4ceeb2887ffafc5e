package server

import (
	"context"
	"errors"
	"time"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/retention"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/summary"
	"github.com/errand-bot/errand/internal/taskvm"
	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/state"
)

// makeWatchers creates everything that polls: reactions, runs, and data past its retention.
func (s *Server) makeWatchers(context.Context) error {
	t := s.opts.Timing
	s.poller = watch.NewPoller(watch.PollerConfig{
		Store:  s.store,
		GitHub: s.forge,
		Log:    s.opts.Log,
		Now:    s.opts.Now,
		Fast:   s.cfg.Timing.PollFast,
		Slow:   s.cfg.Timing.PollSlow,
		Gap:    t.PollGap,
		Polled: s.metrics.Polled,
	})
	s.super = watch.NewSupervisor(watch.SupervisorConfig{
		Store:  s.store,
		Follow: s.openRunLog,
		Gone:   taskvm.IsGone,
		Log:    s.opts.Log,
		Now:    s.opts.Now,
		Every:  t.ProgressEvery,
		GiveUp: t.UnreachableFor,
		Tether: func(ctx context.Context, task *state.Task) error {
			return s.connection().Ensure(ctx, task.Run.VM, task.Key)
		},
		Interpret:   func(task *state.Task, r *state.Run) watch.Interpreter { return s.steps.Interpret(task, r) },
		Transcripts: s.transcript,
	})
	s.vmQueue = taskvm.NewQueue(taskvm.QueueConfig{
		Store:     s.store,
		Rows:      s.store.VMs,
		VMs:       s.cfg.VMCaps().VMs,
		Provider:  s.cfg.Provider,
		RefusedAt: s.fleet.AccountRefusedAt,
		Now:       s.opts.Now,
		Log:       s.opts.Log,
		Every:     t.VMQueue,
		Again:     5 * t.VMQueue,
		Shown:     30 * t.VMQueue,
	})
	s.summaries = summary.NewWriter(summary.Config{
		Store:   s.store,
		Archive: s.archive,
		Follows: s.super.Follows,
		Keep:    s.cfg.Keep.Transcripts,
		Now:     s.opts.Now,
		Log:     s.opts.Log,
	})
	s.cleaner = retention.NewCleaner(retention.Config{
		Store:       s.store,
		Archive:     s.archive,
		Egress:      s.reached,
		AfterEnd:    s.cfg.Keep.AfterEnd,
		Expire:      s.cfg.Limits.Expire,
		Transcripts: s.cfg.Keep.Transcripts,
		Every:       min(time.Minute, t.ReapGrace),
		Now:         s.opts.Now,
		Log:         s.opts.Log,
	})
	return nil
}

// transcript opens a run's transcript to append to it.
func (s *Server) transcript(run string) (watch.Transcript, error) {
	t, err := s.archive.Transcript(run)
	if err != nil {
		return nil, err
	}
	return through[watch.Transcript](s.opts.Hooks.Transcript, t), nil
}

var _ watch.Transcript = (*archive.Transcript)(nil)

// openRunLog opens a run's log at an offset.
func (s *Server) openRunLog(ctx context.Context, vm, run string, from int64) (watch.Records, error) {
	return s.control.Follow(ctx, vm, run, from)
}

var _ watch.Records = (interface {
	Next() (runlog.Record, error)
	Close() error
})(nil)

// newInbox creates the worker of the inbox. The webhook has stored deliveries since the listener opened.
func (s *Server) newInbox(m *handlers.Mapper) *handlers.Inbox {
	b := handlers.NewInbox(s.store, s.store, m, s.opts.Log, s.opts.Now)
	b.Received = s.handleDelivery
	b.Applied = s.poller.Poke
	s.inbox.Store(b)
	return b
}

// handleDelivery handles the news of a stored delivery.
func (s *Server) handleDelivery(event string, isNew bool) {
	s.metrics.Delivery(event, isNew)
	if event == "installation" { // suspension or permissions may have changed, which tokens do not reflect
		s.forge.InvalidateTokens()
	}
}

// newSweeper creates the sweeper, which finds changes on GitHub that no webhook reported.
func (s *Server) newSweeper(me forge.App, inbox *handlers.Inbox) *watch.Sweeper {
	t := s.cfg.Timing
	sweeper := watch.NewSweeper(watch.SweeperConfig{
		Store:      s.store,
		GitHub:     s.forge,
		Inbox:      inbox,
		Log:        s.opts.Log,
		Now:        s.opts.Now,
		BotID:      me.BotID,
		BotLogin:   me.BotLogin,
		Slug:       me.Slug,
		Assignee:   s.cfg.Trigger.Assignee,
		Label:      s.cfg.Trigger.Label,
		Deliveries: t.Deliveries,
		State:      t.Sweep,
		GoneAfter:  s.opts.Timing.GoneAfter,

		ReadWebhooks: s.readWebhooks(),
		LostFrom:     s.store.Restored().Backup,
		LostUntil:    s.store.Restored().At,
	})
	s.sweeper.Store(sweeper)
	return sweeper
}

// readWebhooks returns how often all webhooks are read from GitHub's log, or 0 if GitHub sends them.
func (s *Server) readWebhooks() time.Duration {
	if s.cfg.GitHub.Webhooks != config.WebhooksPoll {
		return 0
	}
	return s.opts.Timing.ReadWebhooks
}

// unstarted lists the issues with an old trigger, as the last sweep found them.
func (s *Server) unstarted() (list []admin.Unstarted) {
	sweeper := s.sweeper.Load()
	if sweeper == nil {
		return nil
	}
	for _, u := range sweeper.Unstarted() {
		title, _ := s.redact.Redact(u.Title)
		list = append(list, admin.Unstarted{Repo: u.Repo, Issue: u.Number, Title: title, URL: u.URL, Trigger: u.Via})
	}
	return list
}

// adopt starts the task of an issue with an old trigger.
func (s *Server) adopt(ctx context.Context, repo string, issue int) (string, error) {
	sweeper := s.sweeper.Load()
	if sweeper == nil {
		return "", admin.Refusal("errand is not ready: it has not read its App from GitHub yet")
	}
	who, err := sweeper.Adopt(ctx, repo, issue)
	var refused *watch.RefusedError
	if errors.As(err, &refused) {
		return "", admin.Refusal(refused.Reason)
	}
	return who, err
}

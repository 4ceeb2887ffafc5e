// Package server assembles errand: it creates every part from one Config, and runs them until a context ends. It decides
// nothing itself.
//
// Start with New, which lists the parts, then Run, which starts them.
package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/agent/registry"
	"github.com/errand-bot/errand/internal/archive"
	"github.com/errand-bot/errand/internal/backup"
	"github.com/errand-bot/errand/internal/budget"
	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/durable"
	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/gateway"
	"github.com/errand-bot/errand/internal/pause"
	"github.com/errand-bot/errand/internal/purge"
	"github.com/errand-bot/errand/internal/queue"
	"github.com/errand-bot/errand/internal/retention"
	"github.com/errand-bot/errand/internal/runnerctl"
	"github.com/errand-bot/errand/internal/secretscan"
	"github.com/errand-bot/errand/internal/summary"
	"github.com/errand-bot/errand/internal/taskvm"
	"github.com/errand-bot/errand/internal/tether"
	"github.com/errand-bot/errand/internal/trust"
	"github.com/errand-bot/errand/internal/watch"
	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/kv"
	"github.com/errand-bot/errand/state/kv/boltkv"
	"github.com/errand-bot/errand/state/store"
)

// Options are settings that are not in the configuration file.
type Options struct {
	Log     zerolog.Logger
	Version string
	// BinDir holds errand-runner; default: the folder of the running program.
	BinDir string
	// Listener serves instead of one on Config.Listen.
	Listener net.Listener
	Now      func() time.Time
	// Transport is used for GitHub; default a transport like http.DefaultTransport with connections of its own.
	Transport http.RoundTripper
	// DialVM connects to VMs that are sandboxes on this host, with one login each; nil means a plain dialer.
	DialVM func(ctx context.Context, network, address string) (net.Conn, error)
	// InContainer reports that errand is the program of a container, which often forbids sandboxes: New then fails where agents would not
	// be isolated.
	InContainer bool
	// StandInAgent reports that the agent is a harmless simulator, which may run in a plain sandbox.
	StandInAgent bool
	// Timing has the intervals that operators cannot set; nil means DefaultTiming.
	Timing *Timing
	// Hooks are only for tests.
	Hooks Hooks
}

// withDefaults fills in the clock and the timing.
func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Timing == nil {
		t := DefaultTiming()
		o.Timing = &t
	}
	if o.Transport == nil {
		o.Transport = http.DefaultTransport.(*http.Transport).Clone()
	}
	return o
}

// A Server is one errand.
type Server struct {
	cfg  config.Config
	opts Options

	db           kv.DB
	file         *boltkv.DB // of db
	store        *store.Store
	forge        *forge.Forge
	provider     fleet.Provider
	fleet        *fleet.Fleet
	control      *runnerctl.Controller
	upstreams    map[string]gateway.Provider
	gateway      *gateway.Gateway
	tether       *tether.Handler
	tetherConfig tether.Config // of tether
	keeper       *tether.Keeper
	reached      *egress.Log
	archive      *archive.Dir
	patterns     *secretscan.Patterns
	redact       *trust.Redactor
	scanner      *secretscan.Scanner
	metrics      *admin.Metrics
	agents       *registry.Registry
	budget       budget.Budget
	pause        *pause.Keeper
	steps        *workflow.Steps
	queue        *queue.Queue
	poller       *watch.Poller
	super        *watch.Supervisor
	vmQueue      *taskvm.Queue
	summaries    *summary.Writer
	cleaner      *retention.Cleaner
	purger       *purge.Purger
	listener     net.Listener
	adminLn      net.Listener
	certs        *certificates // nil unless errand serves HTTPS itself

	started time.Time // by the host's clock; zero if this server never runs

	inbox   atomic.Pointer[handlers.Inbox]
	sweeper atomic.Pointer[watch.Sweeper]
	ready   atomic.Bool
	stuck   atomic.Bool // the store cannot be written
	// bakesBeginning counts the bakes that may create a VM, but have none in the store yet.
	bakesBeginning atomic.Int32
	copying        sync.Mutex // held by a backup or a purge: one would keep what the other deletes

	backups *backup.Schedule // nil unless they are configured
}

// New creates every part. It opens the store and the listeners, and sends nothing to GitHub.
func New(ctx context.Context, cfg config.Config, opts Options) (s *Server, err error) {
	s = &Server{cfg: cfg, opts: opts.withDefaults(), metrics: admin.NewMetrics(opts.Version), started: time.Now()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
			s = nil
		}
	}()
	if err = durable.MkdirAll(cfg.Data, 0o700); err != nil {
		return s, fmt.Errorf("make the data folder: %w", err)
	}
	for _, part := range []func(context.Context) error{
		s.openStore, s.makeSecrets, s.makeForge, s.makeAgents, s.makeFleet, s.requireIsolation, s.makePause, s.makeWorkflow, s.makeWatchers, s.makeBackups,
		s.makePurger, s.listen,
	} {
		if err = part(ctx); err != nil {
			return s, err
		}
	}
	return s, nil
}

// openStore opens the bbolt file, which no other process may have open.
func (s *Server) openStore(ctx context.Context) (err error) {
	if err := backup.Unfinished(s.cfg.Data); err != nil {
		return err
	}
	if s.file, err = boltkv.Open(filepath.Join(s.cfg.Data, "errand.db"), boltkv.Options{Trouble: s.logStoreFailure}); err != nil {
		return err
	}
	s.db = s.opts.Hooks.db(s.file)
	if err := backup.Clean(s.cfg.Data); err != nil {
		return err
	}
	s.store, err = store.Open(ctx, s.db, store.Options{
		Now:                s.opts.Now,
		Policy:             s.policy(),
		PhaseChanged:       func(ctx context.Context, key state.TaskKey) { s.summaries.Write(ctx, key) },
		DisabledSafeguards: s.opts.Hooks.Without,
	})
	return err
}

// logStoreFailure logs that the store's disk fails, and that it works again.
func (s *Server) logStoreFailure(err error) {
	s.stuck.Store(err != nil)
	switch {
	case err == nil:
		s.opts.Log.Info().Msg("the store can be written again")
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		s.opts.Log.Error().Err(err).Str("data", s.cfg.Data).Str("remedy", "free space on the disk of the data folder; errand then continues automatically").
			Msg("the store cannot be written: the disk is full. Until then webhooks are answered with status 500 and no task continues")
	default:
		s.opts.Log.Error().Err(err).Str("data", s.cfg.Data).Str("remedy", "check the disk of the data folder, and restore a backup if it is broken").
			Msg("the store cannot be written: the disk fails. Until then webhooks are answered with status 500 and no task continues")
	}
}

// loadPatterns loads the patterns once per process: tests and the demo start several servers.
var loadPatterns = sync.OnceValues(secretscan.LoadPatterns)

// makeSecrets creates the detection of secrets, with errand's own, and the archive, which redacts them.
func (s *Server) makeSecrets(context.Context) (err error) {
	if s.patterns, err = loadPatterns(); err != nil {
		return fmt.Errorf("load secret patterns: %w", err)
	}
	s.redact, s.scanner = trust.NewRedactor(s.patterns, s.cfg.Secrets()...), secretscan.New(s.patterns, s.cfg.Secrets()...)
	s.archive, err = archive.Open(s.cfg.Data, func(text string) string {
		text, _ = s.redact.Redact(text)
		return text
	})
	if err == nil {
		err = s.archive.RemoveIncomplete()
	}
	if err != nil {
		return err
	}
	s.archive = s.archive.
		WithLines(func() func(string) string { return s.redact.Lines().Line }).
		WithTranscripts(int64(s.cfg.Keep.TranscriptMB) * 1_000_000)
	return nil
}

// makeForge creates the client of GitHub.
func (s *Server) makeForge(context.Context) (err error) {
	g := s.cfg.GitHub.WithURLs()
	t := s.opts.Timing
	s.forge, err = forge.New(forge.Config{
		AppID:         g.AppID,
		PrivateKey:    []byte(g.PrivateKey.Reveal()),
		WebURL:        g.URL,
		V3APIURL:      g.APIURL,
		V4APIURL:      g.GraphQLURL,
		UserAgent:     "errand/" + s.opts.Version,
		Timeout:       t.GitHubTimeout,
		SecondaryWait: t.RateLimitPause,
		Log:           s.opts.Log,
		Now:           s.opts.Now,
		Transport:     s.opts.Transport,
		Writes:        forge.RateLimit{Burst: t.WritesBurst, Every: t.WritesEvery},
		Data:          forge.RateLimit{Burst: 60, Every: t.ObjectsEvery},
		Redact: func(text string) string {
			text, _ = s.redact.Redact(text)
			return text
		},
		Metrics: func(c forge.Request) {
			s.metrics.Call(c.Op, string(c.Limited), c.Status, c.Took)
			if c.Remaining >= 0 {
				s.metrics.Remaining(c.API, c.Installation, c.Remaining)
			}
		},
	})
	return err
}

// Store returns the store, for tests.
func (s *Server) Store() *store.Store { return s.store }

// Forge returns the client of GitHub, for the demo's count of calls.
func (s *Server) Forge() *forge.Forge { return s.forge }

// Describe describes the VMs of the configured provider.
func (s *Server) Describe(ctx context.Context) (fleet.Description, error) {
	return s.fleet.Describe(ctx)
}

// Addr returns the address on which the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Run serves until ctx ends, then shuts down gracefully within the configured time. Unfinished work continues after the
// next start.
func (s *Server) Run(ctx context.Context) error {
	pages, err := s.pages(ctx)
	if err != nil {
		return err
	}
	routes, err := s.routes(pages)
	if err != nil {
		return err
	}
	if err := s.gateway.Recover(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return s.serve(ctx, s.listener, routes) })
	if s.adminLn != nil {
		g.Go(func() error { return s.serve(ctx, s.adminLn, pages) })
	}
	g.Go(func() error {
		if err := pages.Warm(ctx); err != nil && ctx.Err() == nil {
			s.opts.Log.Warn().Err(err).Msg("failed to read the tasks for the pages; the first request reads them")
		}
		s.summaries.WriteMissed(ctx)
		return nil
	})
	if s.certs != nil {
		g.Go(func() error { return s.certs.begin(ctx, s.opts.Log) })
	}
	g.Go(func() error { return s.keeper.Run(ctx) })
	g.Go(func() error { return s.gateway.Run(ctx) })
	g.Go(func() error { return s.work(ctx) })
	return g.Wait()
}

// work starts the parts that depend on the identity of the App, as soon as GitHub has confirmed it.
func (s *Server) work(ctx context.Context) error {
	me, err := s.identify(forge.WithPurpose(ctx, forge.ForStart))
	if err != nil || ctx.Err() != nil {
		return err
	}
	s.logMissingPermissions(me)
	mapper := handlers.NewMapper(handlers.Config{
		Slug:     me.Slug,
		BotID:    me.BotID,
		Assignee: s.cfg.Trigger.Assignee,
		Label:    s.cfg.Trigger.Label,
	}, s.store)
	inbox := s.newInbox(mapper)
	sweeper := s.newSweeper(me, inbox)
	s.describe(ctx)
	s.ready.Store(true)
	s.opts.Log.Info().Str("app", me.Slug).Str("listen", s.Addr().String()).Msg("errand is ready")
	if err := s.afterRestoration(ctx, sweeper, s.catchUpSteps(sweeper, inbox)); err != nil || ctx.Err() != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context) error{
		inbox.Run, s.queue.Run, s.super.Run, s.poller.Run, s.vmQueue.Run, s.pause.Run, sweeper.Run, sweeper.ReadWebhooks, s.fleet.Run, s.cleaner.Run, s.bake, s.makeScheduledBackups, s.resumePurges,
	} {
		g.Go(func() error { return run(ctx) })
	}
	return g.Wait()
}

// describe logs the kind of VMs and hints for better isolation.
func (s *Server) describe(ctx context.Context) {
	d, err := s.fleet.Describe(ctx)
	if err != nil {
		s.opts.Log.Error().Err(err).Msg("failed to describe the VM provider")
		return
	}
	line := s.opts.Log.Info().Str("provider", d.Provider).Str("kind", d.Kind).Str("isolation", string(d.Isolation)).Strs("notes", d.Notes)
	if n := len(d.Choices); n > 0 {
		line = line.Int("candidates", n).Str("cheapest", cheapest(d, s.opts.Now()))
	}
	line.Msg("VM provider ready")
}

// identify reads the App from GitHub and retries until it succeeds. A permanent refusal is an error.
func (s *Server) identify(ctx context.Context) (forge.App, error) {
	wait := 500 * time.Millisecond
	for {
		me, err := s.forge.Self(ctx)
		if err == nil {
			return me, nil
		}
		if class, _ := forge.Classify(err); class == forge.ClassPermanent {
			reason, hint := forge.Explain(err)
			return me, fmt.Errorf("read the GitHub App: %w (%s %s)", err, reason, hint)
		}
		s.opts.Log.Warn().Err(err).Msg("failed to read the GitHub App; retrying")
		if clock.Sleep(ctx, wait) != nil {
			return me, nil
		}
		wait = min(2*wait, time.Minute)
	}
}

// Close closes the store and the connections. It is called after Run.
func (s *Server) Close() error {
	var errs []error
	for _, ln := range []net.Listener{s.listener, s.adminLn} {
		if ln != nil {
			if err := ln.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
				errs = append(errs, err)
			}
		}
	}
	if s.fleet != nil {
		s.fleet.Close()
	}
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	return errors.Join(errs...)
}

// DeleteVMs deletes every VM of this deployment. It is for the end of a demo or a test, after Run.
func (s *Server) DeleteVMs(ctx context.Context, why fleet.Reason) error {
	return s.fleet.Wipe(ctx, why)
}

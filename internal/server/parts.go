package server

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/local"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forward"
	"github.com/errand-bot/errand/internal/gateway"
	"github.com/errand-bot/errand/internal/gitproxy"
	"github.com/errand-bot/errand/internal/queue"
	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/internal/runnerctl"
	"github.com/errand-bot/errand/internal/tether"
	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/internal/workflow/workspace"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/vm"
)

// makeFleet makes the VMs' provider, the connections and the tether.
func (s *Server) makeFleet(context.Context) error {
	signer, err := clientKey(filepath.Join(s.cfg.Data, "client_key"))
	if err != nil {
		return err
	}
	if s.opts.BinDir == "" {
		exe, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find the program's folder: %w", err)
		}
		s.opts.BinDir = filepath.Dir(exe)
	}
	cfg := fleet.Config{
		Deployment: s.cfg.Deployment, Rows: s.store.VMs, Store: s.store, Caps: vm.Caps{VMs: s.cfg.Limits.VMs}, Grace: s.opts.Timing.ReapGrace, Tick: s.opts.Timing.VMTick,
		SSH: remote.Config{Signer: signer, Dial: s.opts.DialVM}, Now: s.opts.Now, Log: s.opts.Log,
		BaseGroups: slices.AppendSeq([]string{}, maps.Keys(s.cfg.Bake)), // none is not nil: images of removed groups go
	}
	if s.cfg.Provider == config.ProviderHetzner {
		s.provider, err = s.hetznerProvider(signer, &cfg)
	} else {
		s.provider, err = s.localProvider(signer)
	}
	if err != nil {
		return err
	}
	s.fleet = fleet.New(s.opts.Hooks.provider(s.provider), cfg)
	s.control = runnerctl.New(s.fleet, s.opts.BinDir)
	return s.makeTether()
}

// localProvider makes boxes on this host.
func (s *Server) localProvider(signer ssh.Signer) (*local.Provider, error) {
	runner := filepath.Join(s.opts.BinDir, "errand-runner")
	if _, err := os.Stat(runner); err != nil {
		return nil, fmt.Errorf("find errand-runner beside the program (make build puts it there): %w", err)
	}
	l := s.cfg.Local
	cfg := local.Config{
		Dir: filepath.Join(s.cfg.Data, "local"), Kind: l.Kind, Runner: runner, ClientKey: signer.PublicKey(),
		Deployment: s.cfg.Deployment, Path: l.Path, IdleExit: l.IdleExit, Now: s.opts.Now,
	}
	for _, b := range l.Binds {
		cfg.Binds = append(cfg.Binds, local.Bind{Path: b.Path, Writable: b.Writable})
	}
	return local.New(cfg)
}

// makeTether makes our end of the VMs' way out.
func (s *Server) makeTether() error {
	key, err := secretFile(filepath.Join(s.cfg.Data, "tether_key"))
	if err != nil {
		return err
	}
	if s.reached, err = egress.OpenLog(filepath.Join(s.cfg.Data, "egress")); err != nil {
		return err
	}
	transport := forward.NewTransport(s.cfg.Limits.Stall)
	if s.opts.Hooks.Upstream != nil {
		transport = s.opts.Hooks.Upstream(transport)
	}
	s.gateway = gateway.New(gateway.Config{
		Tasks:          s.store,
		Providers:      upstreams(s.cfg, s.opts.Now, s.learn),
		Prices:         s.cfg.Prices,
		Ledger:         line{s},
		Journal:        s.store,
		AllowedModels:  s.callable,
		ProviderStates: s.store,
		Backoff:        s.opts.Timing.Backoff,
		IdleTimeout:    s.cfg.Limits.Stall,
		Now:            s.opts.Now,
		Log:            s.opts.Log,
		Denied:         s.noteReached,
		Transport:      transport,
	})
	git := gitproxy.New(gitproxy.Config{
		Repository: func(ctx context.Context, t *state.Task) (string, string, error) {
			r := forge.RepoOf(t)
			token, _, err := s.forge.GitToken(ctx, r)
			return s.forge.GitURL(r), token, err
		},
		Submodule:    s.submodule,
		TokenRefused: s.forge.ForgetToken,
		Transport:    transport,
		Log:          s.opts.Log,
	})
	internet := s.opts.Hooks.Internet
	s.tether = tether.New(tether.Config{
		Tasks:        s.store,
		Key:          key,
		Gateway:      s.gateway,
		Git:          git,
		Callback:     s.callbacks().Serve,
		Egress:       egress.New(egress.Config{Now: s.opts.Now, Resolver: internet.Resolver, Dial: internet.Dial}),
		EgressPolicy: func(t *state.Task) egress.Policy { return s.cfg.Egress.For(t.Repo.FullName()) },
		EgressDone:   s.noteReached,
		Log:          s.opts.Log,
	})
	s.keeper = tether.NewKeeper(s.control, s.tether, s.opts.Log)
	return nil
}

// submodule is how a task reads a repository besides its own, nil if it may not.
func (s *Server) submodule(t *state.Task, repo string) gitproxy.Reader {
	if !s.cfg.Submodules.Allow(t.Repo.FullName(), repo) {
		return nil
	}
	owner, name, _ := strings.Cut(repo, "/")
	return func(ctx context.Context) (string, string, error) {
		token, err := s.forge.NamedToken(ctx, repo)
		return s.forge.GitURL(forge.Repo{Owner: owner, Name: name}), token, err
	}
}

// noteReached writes down which other host a task's VM asked for, and what came of it.
func (s *Server) noteReached(t *state.Task, r egress.Request) {
	log := s.opts.Log.Debug()
	if !r.Allowed {
		log = s.opts.Log.Info()
	}
	log.Str("task", t.Key.String()).Str("host", r.Host).Str("port", r.Port).Str("method", r.Method).Bool("allowed", r.Allowed).Str("reason", r.Reason).Int64("received", r.Received).Msg("tether: another host")
	if err := s.reached.Add(owner(t.Key), r); err != nil {
		s.opts.Log.Warn().Err(err).Msg("write down which host was asked for")
	}
}

// makeWorkflow makes the steps and the queue that takes them.
func (s *Server) makeWorkflow(context.Context) error {
	var sleeper workflow.Sleeper
	if _, ok := s.provider.(fleet.Imager); ok {
		sleeper = disks{s}
	}
	s.steps = workflow.New(workflow.Config{
		Sleeper: sleeper, SpanAllowed: s.fleet.SpanAllowed, Outlives: s.fleet.Outlives,
		Store: s.store, GitHub: s.forge, VMs: vms{s}, Runner: s.opts.Hooks.runner(s.control), Tether: line{s}, Files: s.opts.Hooks.files(s.archive), Agents: s.agents, Agent: s.cfg.Agent, Providers: s.cfg.Providers(), Subscribed: s.cfg.Subscribed(), Submodules: s.cfg.Submodules.Of,
		Redact: s.redact, Scanner: s.scanner, RepoConfig: s.repoConfig, Defaults: s.cfg.Settings(), Gate: state.Gate(s.cfg.Gate),
		ShellFor: s.cfg.Repository.Tools.For,
		TestsFor: func(repo string) workspace.Tests {
			return workspace.Tests{Env: s.cfg.TestEnv.For(repo), Files: s.cfg.TestFiles.For(repo)}
		},
		Now: s.opts.Now, StatusURL: s.taskURL, AllowUsers: s.cfg.Trust.AllowUsers, AllowBots: s.cfg.Trust.AllowBots,
		Held: line{s}.MayStart, RealAgent: !s.opts.StandInAgent, AllowUnsandboxed: s.cfg.Local.AllowUnsandboxed,
	})
	s.queue = queue.New(queue.Config{
		Store: s.store, Handle: s.opts.Hooks.handle(s.steps.Handle), Rescue: s.opts.Timing.RescueEvery, Judge: Judge, Now: s.opts.Now, Log: s.opts.Log, Backoff: s.opts.Timing.JobRetry, Exclusive: true,
		Lease: Lease, Patient: Patient, Workers: map[state.Lane]int{state.LaneWork: 8, state.LaneControl: 8, state.LaneTalk: 4, state.LaneStatus: 4},
		Done: func(j *state.Job, d time.Duration, err error) { s.metrics.Job(string(j.Kind), d, err) },
	})
	return nil
}

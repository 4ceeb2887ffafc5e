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

	"github.com/errand-bot/errand/internal/attachment"
	"github.com/errand-bot/errand/internal/budget"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/forge"
	"github.com/errand-bot/errand/internal/forward"
	"github.com/errand-bot/errand/internal/gateway"
	"github.com/errand-bot/errand/internal/gitproxy"
	"github.com/errand-bot/errand/internal/keyfile"
	"github.com/errand-bot/errand/internal/queue"
	"github.com/errand-bot/errand/internal/remote"
	"github.com/errand-bot/errand/internal/runnerctl"
	"github.com/errand-bot/errand/internal/taskvm"
	"github.com/errand-bot/errand/internal/tether"
	"github.com/errand-bot/errand/internal/workflow"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

// makeFleet creates the provider of VMs, the fleet, and the connections to VMs.
func (s *Server) makeFleet(ctx context.Context) error {
	signer, err := keyfile.SSH(s.clientKeyFile())
	if err != nil {
		return err
	}
	if err := s.findBinDir(); err != nil {
		return err
	}
	cfg := fleet.Config{
		Deployment: s.cfg.Deployment,
		Rows:       s.store.VMs,
		Store:      s.store,
		Caps:       s.cfg.VMCaps(),
		Grace:      s.opts.Timing.ReapGrace,
		Tick:       s.opts.Timing.VMTick,
		SSH:        remote.Config{Signer: signer, Dial: s.opts.DialVM},
		Now:        s.opts.Now,
		Log:        s.opts.Log,
		BaseGroups: slices.AppendSeq([]string{}, maps.Keys(s.cfg.Bake)), // not nil if empty: images of removed groups are deleted
	}
	create, ok := providers[s.cfg.Provider]
	if !ok {
		return fmt.Errorf("unknown provider of VMs %q", s.cfg.Provider)
	}
	if s.provider, err = create(s, signer, &cfg); err != nil {
		return err
	}
	s.fleet = fleet.New(s.opts.Hooks.provider(s.provider), cfg)
	s.control = runnerctl.New(s.fleet, s.opts.BinDir)
	return s.makeTether(ctx)
}

// clientKeyFile returns the file of the key with which errand logs in to VMs.
func (s *Server) clientKeyFile() string { return filepath.Join(s.cfg.Data, "client_key") }

// findBinDir sets the folder of errand-runner if the options do not name it.
func (s *Server) findBinDir() error {
	if s.opts.BinDir != "" {
		return nil
	}
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find the program's folder: %w", err)
	}
	s.opts.BinDir = filepath.Dir(exe)
	return nil
}

// makeTether creates the server's end of the connections to VMs.
func (s *Server) makeTether(ctx context.Context) error {
	key, err := s.tetherKey(ctx)
	if err != nil {
		return err
	}
	if s.reached, err = egress.OpenLog(filepath.Join(s.cfg.Data, "egress")); err != nil {
		return err
	}
	s.budget = budget.Budget{Store: s.store, Caps: s.cfg.Caps(), Now: s.opts.Now}
	transport := forward.NewTransport(s.cfg.Limits.Stall)
	if s.opts.Hooks.Upstream != nil {
		transport = s.opts.Hooks.Upstream(transport)
	}
	s.upstreams = upstreams(s.cfg, s.opts.Now, s.redactTokens)
	s.gateway = gateway.New(gateway.Config{
		Tasks:          s.store,
		Providers:      s.upstreams,
		Prices:         s.cfg.Prices,
		Ledger:         s.budget,
		Journal:        s.store.Reservations,
		AllowedModels:  s.allowedModels,
		ProviderStates: s.store.ProviderStates,
		Backoff:        s.opts.Timing.Backoff,
		IdleTimeout:    s.cfg.Limits.Stall,
		Now:            s.opts.Now,
		Log:            s.opts.Log,
		Denied:         s.recordRequest,
		Transport:      transport,
	})
	git := gitproxy.New(gitproxy.Config{
		Repository:   s.repository,
		Submodule:    s.submodule,
		TokenRefused: s.forge.ForgetToken,
		Transport:    transport,
		Log:          s.opts.Log,
	})
	internet := s.opts.Hooks.Internet
	internet.Now = s.opts.Now
	if internet.Authority, err = s.makeAuthority(); err != nil {
		return err
	}
	s.tetherConfig = tether.Config{
		Tasks:        s.store,
		Key:          key.Current,
		PreviousKey:  key.Previous,
		Gateway:      s.gateway,
		Git:          git,
		Callback:     s.makeCallbacks().Serve,
		Egress:       egress.New(internet),
		EgressPolicy: func(t *state.Task) egress.Policy { return s.cfg.EgressFor(t.Repo.FullName()) },
		EgressDone:   s.recordRequest,
		Log:          s.opts.Log,
	}
	s.tether = tether.New(s.tetherConfig)
	s.keeper = tether.NewKeeper(s.control, s.tether, s.opts.Log)
	return nil
}

// registryKeyFile is the file, in the data folder, from which the key of the registries' authority is derived.
const registryKeyFile = "registry_key"

// makeAuthority returns the authority for certificates of private registries, nil if there are none.
func (s *Server) makeAuthority() (*egress.Authority, error) {
	hosts := s.cfg.Registries.Hosts()
	if len(hosts) == 0 {
		return nil, nil
	}
	secret, err := keyfile.Secret(filepath.Join(s.cfg.Data, registryKeyFile))
	if err != nil {
		return nil, err
	}
	return egress.NewAuthority(secret, hosts, s.opts.Now)
}

// registryAuthority returns the certificate that VMs of a repository trust for its registries, nil if it has none.
func (s *Server) registryAuthority(repo string) []byte {
	if len(s.cfg.Registries.For(repo)) == 0 {
		return nil
	}
	return s.tetherConfig.Egress.Authority()
}

// TetherKeyFile is the file, in the data folder, with the key of the tokens of VMs and runs.
const TetherKeyFile = "tether_key"

// tetherKey reads the key of the tokens of VMs and runs. The previous one is accepted while a run works that may have begun with it.
func (s *Server) tetherKey(ctx context.Context) (keyfile.Pair, error) {
	path := filepath.Join(s.cfg.Data, TetherKeyFile)
	key, err := keyfile.ReadPair(path)
	if err != nil || key.Previous == nil {
		return key, err
	}
	tasks, err := s.store.TasksIn(ctx, slices.DeleteFunc(state.Phases(), state.Phase.Terminal)...)
	if err != nil {
		return key, err
	}
	// A run that waits to be launched has no token yet.
	working := slices.DeleteFunc(tasks, func(t *state.Task) bool {
		return t.Run == nil || t.Waiting != nil && t.Run.State == state.RunLaunching
	})
	if len(working) > 0 {
		s.opts.Log.Info().Int("runs", len(working)).Msg("the previous tether key is accepted, because runs work that may have begun with it")
		return key, nil
	}
	if err := keyfile.Forget(path); err != nil { // both are accepted until the next start
		s.opts.Log.Warn().Err(err).Msg("failed to remove the previous tether key")
		return key, nil
	}
	key.Previous = nil
	return key, nil
}

// connection returns the connections to VMs.
func (s *Server) connection() taskvm.Connection {
	return taskvm.Connection{Keeper: s.keeper, Tokens: s.tether}
}

// repository returns the URL of a task's repository and a token to read it.
func (s *Server) repository(ctx context.Context, t *state.Task) (url, token string, err error) {
	r := forge.RepoOf(t)
	token, _, err = s.forge.GitToken(ctx, r)
	return s.forge.GitURL(r), token, err
}

// submodule returns the access of a task to a repository other than its own, or nil if it has none.
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

// recordRequest records a request of a task's VM to another host, and its result.
func (s *Server) recordRequest(t *state.Task, r egress.Request) {
	log := s.opts.Log.Debug()
	if !r.Allowed {
		log = s.opts.Log.Info()
	}
	log.Str("task", t.Key.String()).Str("host", r.Host).Str("port", r.Port).Str("method", r.Method).
		Bool("allowed", r.Allowed).Str("reason", r.Reason).Int64("received", r.Received).
		Msg("request from a VM to another host")
	if err := s.reached.Add(egressLog(t.Key), r); err != nil {
		s.opts.Log.Warn().Err(err).Msg("failed to log a request to another host")
	}
}

// egressLog returns the name of a task in the log of requests to other hosts.
func egressLog(k state.TaskKey) string { return fmt.Sprintf("%d-%d", k.Repo, k.Issue) }

// taskVMs returns the configuration of the tasks' VMs, and what images their disks, if the provider can.
func (s *Server) taskVMs() (taskvm.Config, workflow.Sleeper) {
	vms := taskvm.Config{
		Fleet:      s.fleet,
		Store:      s.store,
		Rows:       s.store.VMs,
		Times:      s.store.VMs.Times,
		RefusedAt:  s.fleet.AccountRefusedAt,
		Disconnect: s.keeper.Forget,
		Provider:   s.cfg.Provider,
		BaseGroup:  func(string) (string, bool) { return "", false },
		Log:        s.opts.Log,
	}
	if _, ok := s.provider.(fleet.Imager); !ok {
		return vms, nil
	}
	vms.BaseGroup = s.cfg.Bake.Of
	return vms, taskvm.Disks{Imager: s.fleet}
}

// makeWorkflow creates the steps and the queue that runs them.
func (s *Server) makeWorkflow(context.Context) error {
	vms, sleeper := s.taskVMs()
	if _, err := s.provenanceKey(); err != nil { // created at the first start
		return err
	}
	attachments, err := attachment.New(s.cfg.GitHub.URL, s.opts.Transport)
	if err != nil {
		return err
	}
	s.steps = workflow.New(workflow.Config{
		Store:             s.store,
		GitHub:            s.forge,
		VMs:               taskvm.New(vms),
		Sleeper:           sleeper,
		Paused:            s.pause.Waiting,
		SpanAllowed:       s.fleet.SpanAllowed,
		Outlives:          s.fleet.Outlives,
		Runner:            s.opts.Hooks.runner(s.control),
		Tether:            s.connection(),
		Files:             s.opts.Hooks.files(s.archive),
		Attachments:       attachments,
		Agents:            s.agents,
		Agent:             s.cfg.Agent,
		Providers:         s.cfg.Providers(),
		Subscribed:        s.cfg.Subscribed(),
		SubscriptionTurns: s.cfg.SubscriptionTurns(),
		IsFree:            s.cfg.Prices.IsFree,
		Submodules:        s.cfg.Submodules.Of,
		Authority:         s.registryAuthority,
		Redact:            s.redact,
		Scanner:           s.scanner,
		RepoConfig:        s.repoConfig,
		Defaults:          s.cfg.Settings(),
		Gate:              settings.Gate(s.cfg.Gate),
		ShellFor:          s.cfg.Repository.Tools.For,
		TestsFor:          s.testsFor,
		Now:               s.opts.Now,
		ChecksQuiet:       s.opts.Timing.ChecksQuiet,
		StatusURL:         s.taskURL,
		AllowUsers:        s.cfg.Trust.AllowUsers,
		Assignee:          s.cfg.Trigger.Assignee,
		AllowBots:         s.cfg.Trust.AllowBots,
		Provenance:        s.statements(),
		CapReached:        budget.Starter{Budget: s.budget, Models: s.gateway, Subscribed: s.cfg.Subscribed()}.MayStart,
		RealAgent:         !s.opts.StandInAgent,
		AllowUnsandboxed:  s.cfg.Local.AllowUnsandboxed,
	})
	s.queue = queue.New(queue.Config{
		Store:     s.store,
		Handle:    s.opts.Hooks.handle(s.steps.Handle),
		Rescue:    s.opts.Timing.RescueEvery,
		Judge:     Judge,
		Now:       s.opts.Now,
		Log:       s.opts.Log,
		Backoff:   s.opts.Timing.JobRetry,
		Exclusive: true,
		Lease:     Lease,
		Patient:   Patient,
		Workers:   map[state.Lane]int{state.LaneWork: 8, state.LaneControl: 8, state.LaneTalk: 4, state.LaneStatus: 4},
		Done:      func(j *state.Job, d time.Duration, err error) { s.metrics.Job(string(j.Kind), d, err) },
	})
	return nil
}

// repoConfig reads a repository's own settings on top of the operator's.
func (s *Server) repoConfig(data []byte) (settings.Settings, error) {
	return config.ParseRepo(data, s.cfg.Settings(), func(text string) bool {
		_, n := s.redact.Redact(text)
		return n > 0
	})
}

// taskURL returns the address of a task's page, or "".
func (s *Server) taskURL(t *state.Task) string {
	if s.cfg.PublicURL == "" {
		return ""
	}
	return fmt.Sprintf("%s/tasks/%s/%d", strings.TrimSuffix(s.cfg.PublicURL, "/"), t.Repo.FullName(), t.Key.Issue)
}

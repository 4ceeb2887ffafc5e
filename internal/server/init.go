package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/internal/initrepo"
	"github.com/errand-bot/errand/internal/logview"
	"github.com/errand-bot/errand/internal/taskvm"
	"github.com/errand-bot/errand/internal/tether"
	"github.com/errand-bot/errand/internal/workflow/workspace"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/settings"
)

// Init is the part of a server that proposes a repository's settings. It needs neither the store nor a running errand: everything
// that it creates on this host is in a temporary folder.
type Init struct {
	s   *Server
	dir string
}

// OpenInit creates the client of GitHub. The caller closes the Init.
func OpenInit(ctx context.Context, cfg config.Config, opts Options) (*Init, error) {
	dir, err := initDir()
	if err != nil {
		return nil, fmt.Errorf("make a temporary folder: %w", err)
	}
	i := &Init{dir: dir, s: &Server{opts: opts.withDefaults(), metrics: admin.NewMetrics(opts.Version)}}
	i.s.cfg = cfg
	i.s.cfg.Data, i.s.cfg.Provider = dir, config.ProviderLocal
	for _, part := range []func(context.Context) error{i.s.openStore, i.s.makeSecrets, i.s.makeForge} {
		if err := part(ctx); err != nil {
			return nil, errors.Join(err, i.Close())
		}
	}
	return i, nil
}

// initDir makes a temporary folder for sandboxes, with checkouts and what they install: in TMPDIR, or else where large files belong,
// because /tmp is often in memory.
func initDir() (string, error) {
	const large, pattern = "/var/tmp", "errand-init-"
	if os.Getenv("TMPDIR") == "" {
		if dir, err := os.MkdirTemp(large, pattern); err == nil {
			return dir, nil
		}
	}
	return os.MkdirTemp("", pattern)
}

// Close deletes the temporary folder.
func (i *Init) Close() error { return errors.Join(i.s.Close(), os.RemoveAll(i.dir)) }

// Proposer returns the proposer of settings.
func (i *Init) Proposer() *initrepo.Proposer {
	t, start := i.s.cfg.Trigger, "Write a comment that mentions the App on an issue."
	switch {
	case t.Assignee != "":
		start = fmt.Sprintf("Assign an issue to `%s`.", t.Assignee)
	case t.Label != "":
		start = fmt.Sprintf("Add the label `%s` to an issue.", t.Label)
	}
	return &initrepo.Proposer{
		GitHub: i.s.forge,
		Parse:  func(file []byte) (settings.Settings, error) { return i.s.repoConfig(file) },
		Plan:   i.s.cfg.Settings().Plan,
		Start:  start,
	}
}

// Box returns where commands are tried: a sandbox on this host, also if agents work elsewhere. agents is where they work.
func (i *Init) Box(ctx context.Context, agents string) (*initrepo.Box, error) {
	s := i.s
	if err := s.makeFleet(ctx); err != nil {
		return nil, fmt.Errorf("%w: %w", initrepo.ErrNoBox, err)
	}
	return &initrepo.Box{
		Fleet: s.fleet, Runner: s.control, Env: s.cfg.Agent.Env, Elsewhere: agents != config.ProviderLocal,
		Warn: func(err error) { s.opts.Log.Warn().Err(err).Msg("something of the trial is left on this host") },
		Redact: func(text string) string {
			text, _ = s.redact.Redact(text)
			return logview.Plain(text)
		},
		Open: func(t *state.Task, done func(egress.Request)) (*workspace.Opener, func()) {
			return s.openTrial(ctx, t, done)
		},
	}, nil
}

// openTrial serves the tether of a task that is in no store, and returns its workspaces.
func (s *Server) openTrial(ctx context.Context, t *state.Task, done func(egress.Request)) (*workspace.Opener, func()) {
	cfg := s.tetherConfig
	cfg.Tasks, cfg.Key, cfg.PreviousKey = onlyTask{t}, []byte(rand.Text()), nil
	cfg.EgressDone = func(_ *state.Task, r egress.Request) { done(r) }
	handler := tether.New(cfg)
	keeper := tether.NewKeeper(s.control, handler, s.opts.Log)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = keeper.Run(ctx) // it returns nil when ctx has ended
	}()
	return &workspace.Opener{
		Runner: s.control, Tether: startingTether{taskvm.Connection{Keeper: keeper, Tokens: handler}}, GitHub: s.forge,
		Submodules: s.cfg.Submodules.Of, TestsFor: s.testsFor, Now: s.opts.Now,
	}, func() { cancel(); <-ended }
}

// startingTether is a connection whose keeper may not have begun to run yet.
type startingTether struct{ taskvm.Connection }

// Ensure waits until the keeper runs.
func (t startingTether) Ensure(ctx context.Context, vm string, task state.TaskKey) error {
	for {
		err := t.Connection.Ensure(ctx, vm, task)
		if !errors.Is(err, tether.ErrNotRunning) {
			return err
		}
		if err := clock.Sleep(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}

// onlyTask is a store with one task, which never changes.
type onlyTask struct{ task *state.Task }

// Task implements tether.Tasks.
func (o onlyTask) Task(context.Context, state.TaskKey) (*state.Task, error) { return o.task, nil }

// testsFor returns the operator's variables and files for the tests of a repository.
func (s *Server) testsFor(repo string) workspace.Tests {
	return workspace.Tests{Env: s.cfg.TestEnv.For(repo), Files: s.cfg.TestFiles.For(repo)}
}

package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/errand-bot/errand/internal/admin"
	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/egress"
	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/fleet/local"
	"github.com/errand-bot/errand/internal/initrepo"
	"github.com/errand-bot/errand/internal/keyfile"
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
	s    *Server
	dir  string
	lock *os.File // of the folder; held until it is deleted
}

// OpenInit creates the client of GitHub, after it has deleted what processes that were killed have left. The caller closes the Init.
func OpenInit(ctx context.Context, cfg config.Config, opts Options) (*Init, error) {
	i := &Init{s: &Server{opts: opts.withDefaults(), metrics: admin.NewMetrics(opts.Version)}}
	i.s.cfg = cfg
	i.s.cfg.Provider = config.ProviderLocal
	i.deleteAbandoned(ctx)
	var err error
	if i.dir, i.lock, err = initDir(); err != nil {
		return nil, fmt.Errorf("make a temporary folder: %w", err)
	}
	i.s.cfg.Data = i.dir
	for _, part := range []func(context.Context) error{i.s.openStore, i.s.makeSecrets, i.s.makeForge} {
		if err := part(ctx); err != nil {
			return nil, errors.Join(err, i.Close())
		}
	}
	return i, nil
}

const (
	initLarge   = "/var/tmp" // where large files belong, because /tmp is often in memory
	initPattern = "errand-init-"
	// initMarker is a file in the folders that other processes may delete when nobody holds their lock.
	initMarker = "made-by-errand-init"
	// maxAbandoned is the number of folders that one start deletes.
	maxAbandoned = 20
)

// initDir makes a temporary folder for sandboxes, with checkouts and what they install: in TMPDIR, or else where large files belong. As
// long as the lock is held, no other process takes the folder for abandoned. On file systems without locks the folder gets no marker, and
// lock is nil.
func initDir() (dir string, lock *os.File, err error) {
	for range maxAbandoned {
		if dir, err = "", error(nil); os.Getenv("TMPDIR") == "" {
			dir, _ = os.MkdirTemp(initLarge, initPattern)
		}
		if dir == "" {
			dir, err = os.MkdirTemp("", initPattern)
		}
		if err != nil {
			return "", nil, err
		}
		lock, err = lockFolder(dir)
		switch {
		case err == nil:
			if err = os.WriteFile(filepath.Join(dir, initMarker), nil, 0o600); err != nil {
				return "", nil, errors.Join(err, os.RemoveAll(dir), lock.Close())
			}
			return dir, lock, nil
		case !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, errReplaced):
			return dir, nil, nil //nolint:nilerr // there are no locks here
		}
	}
	return "", nil, err
}

var errReplaced = errors.New("another process deleted the folder, or it is another user's")

// lockFolder locks a folder of this user, if nobody else has locked or deleted it.
func lockFolder(dir string) (*os.File, error) {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	var opened, named unix.Stat_t
	err = errors.Join(unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB), unix.Fstat(int(f.Fd()), &opened), unix.Lstat(dir, &named))
	if err == nil && (opened.Dev != named.Dev || opened.Ino != named.Ino || int(opened.Uid) != os.Geteuid()) {
		err = errReplaced
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// deleteAbandoned deletes the folders of this user's processes that were killed, with their sandboxes. An error only leaves them there.
func (i *Init) deleteAbandoned(ctx context.Context) {
	places := []string{os.TempDir()}
	if os.Getenv("TMPDIR") == "" {
		places = append(places, initLarge)
	}
	for _, place := range places {
		list, _ := filepath.Glob(filepath.Join(place, initPattern+"*")) // it fails only for a bad pattern
		list = slices.DeleteFunc(list, func(dir string) bool {          // something else of a person, or just being made
			_, err := os.Lstat(filepath.Join(dir, initMarker))
			return err != nil
		})
		for _, dir := range list[:min(len(list), maxAbandoned)] {
			lock, err := lockFolder(dir)
			if err != nil {
				continue // in use, or another user's
			}
			if err := errors.Join(i.s.deleteTrial(ctx, dir), lock.Close()); err != nil {
				i.s.opts.Log.Warn().Err(err).Str("folder", dir).Msg("failed to delete what an interrupted errand init has left")
			}
		}
	}
}

// deleteTrial deletes the folder of a trial. Its sandboxes may still run.
func (s *Server) deleteTrial(ctx context.Context, dir string) error {
	trial := &Server{cfg: s.cfg, opts: s.opts}
	trial.cfg.Data = dir
	if _, err := os.Stat(trial.localDir()); errors.Is(err, fs.ErrNotExist) {
		return local.RemoveAll(dir)
	}
	signer, err := keyfile.SSH(trial.clientKeyFile())
	if err != nil {
		return err
	}
	if err := trial.findBinDir(); err != nil {
		return err
	}
	provider, err := trial.localProvider(signer, nil)
	if err != nil {
		return err
	}
	vms, err := provider.List(ctx)
	if err != nil {
		return err
	}
	for _, vm := range vms {
		if err := provider.Delete(ctx, vm.Name, fleet.ReasonDone); err != nil {
			return err
		}
	}
	left, err := os.ReadDir(filepath.Join(trial.localDir(), "boxes"))
	if err != nil {
		return err
	}
	for _, e := range left {
		if fleet.ValidName(e.Name()) == nil {
			return fmt.Errorf("the sandbox %s is of another deployment: run errand init with its configuration", e.Name())
		}
	}
	return local.RemoveAll(dir)
}

// Close deletes the temporary folder.
func (i *Init) Close() error {
	err := errors.Join(i.s.Close(), os.RemoveAll(i.dir))
	if i.lock != nil {
		err = errors.Join(err, i.lock.Close())
	}
	return err
}

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
		Submodules: s.cfg.Submodules.Of, Authority: s.registryAuthority, TestsFor: s.testsFor, Now: s.opts.Now,
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

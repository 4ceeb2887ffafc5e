// Package setup guides an operator from nothing to a running errand: it asks questions, creates the GitHub App from a manifest,
// writes the secrets and the configuration, and checks that all of it works.
//
// It is a sequence of steps. Each reports whether it is done, from what exists on disk and on GitHub, so that a setup that was
// interrupted anywhere continues when it is run again. Answers come from a file, from the terminal or from a page in a browser (a front).
// Nothing that exists is overwritten, unless Options.Force is set.
//
// Start with [Run] and the table of steps in setup.go; questions.go lists everything that is asked, front.go how.
package setup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/durable"
)

// Options are the flags of a setup.
type Options struct {
	Dir     string  // folder for the configuration and the secrets
	Answers string  // file with answers; empty: none
	Given   Answers // answers by flags, which take precedence over the file
	Web     bool    // ask on the local page instead of in the terminal
	Listen  string  // address of the local page, on this host
	Force   bool    // replace an existing configuration; the old one is kept beside it
	Skip    []string
}

// Env is the environment of a setup.
type Env struct {
	In  io.Reader
	Out io.Writer
	// Interactive reports whether somebody can answer questions at In.
	Interactive bool
	Lookup      func(string) (string, bool) // environment variables
	Now         func() time.Time
	Transport   http.RoundTripper // to GitHub
	Poll        time.Duration     // how often GitHub is asked while the setup waits for something there
	Wait        time.Duration     // how long it waits for the installation
	UnitPath    string            // where the systemd unit of the service is written; that of its socket is beside it
	Program     string            // path of the errand program
	// TryModels asks each configured provider of models whether it accepts its key.
	TryModels func(context.Context, config.Config) map[string]error
	// TryVMs asks Hetzner whether it accepts a token: it returns a sentence if not, and fleet.ErrUnknownOutcome or fleet.ErrLimited if that cannot be said.
	TryVMs func(ctx context.Context, token string) (problem string, err error)
	// Install installs the program of an agent below a folder.
	Install func(ctx context.Context, dir, agent string) error
	// Systemctl runs systemctl with arguments. It is nil on hosts without systemd.
	Systemctl func(ctx context.Context, args ...string) error
	// Doctor makes the checks of `errand doctor` and returns their report, and the names of the failed ones.
	Doctor func(ctx context.Context, path string) (report string, failed []string, err error)
}

// run is a setup while it runs.
type run struct {
	Env
	opts      Options
	dir       string
	given     Answers           // from the file
	held      map[string]string // secrets and codes that were entered and are not stored yet
	refused   map[string]string // why others refused an answer
	skip      []string          // steps of Options.Skip, and those that the operator skipped
	front     front
	left      []string     // what steps that were left out leave to do
	unlock    func() error // lets another setup work in the folder
	progress  Progress
	rescued   string        // copy of the App's credentials, outside of a folder that could not be written
	cfg       config.Config // valid if loaded is set
	loaded    bool
	asked     bool   // for the user that runs errand
	chosen    bool   // that user gets the files at the end
	handed    bool   // it has them, so root changes nothing in the folder any more
	warned    string // address on this host that errand cannot have, which the operator has heard
	version   string // of the Enterprise Server, or "" if it is not known
	rewritten bool   // the configuration or a unit is new
	reopened  bool   // the unit of the socket is new
	started   bool   // the service runs
}

// lockName is the file that keeps two setups apart.
const lockName = "setup.lock"

// ErrLocked means that another setup works in the same folder.
var ErrLocked = errors.New("another `errand setup` is running in this folder; wait for it or stop it")

// errInterrupted ends a setup after Ctrl-C.
var errInterrupted = errors.New("interrupted; run the same command again to continue here")

// Run runs a setup. It can be repeated after an error, and after an interruption at any time.
func Run(ctx context.Context, env Env, opts Options) (err error) {
	r := &run{Env: env, opts: opts, skip: slices.Clone(opts.Skip), held: map[string]string{}, refused: map[string]string{}}
	if r.front = newTerminal(env); opts.Web {
		if r.front, err = newWebFront(env.Out); err != nil {
			return err
		}
	}
	if r.dir, err = filepath.Abs(opts.Dir); err != nil {
		return fmt.Errorf("find the folder of the setup: %w", err)
	}
	for _, name := range opts.Skip {
		if !slices.Contains(StepNames(), name) {
			return fmt.Errorf("--skip %s: write one of %s", name, strings.Join(StepNames(), ", "))
		}
	}
	if opts.Answers != "" {
		if r.given, err = readAnswers(opts.Answers); err != nil {
			return err
		}
	}
	if len(opts.Given) > 0 {
		given := maps.Clone(opts.Given)
		for key, v := range r.given {
			if _, ok := given[key]; !ok {
				given[key] = v
			}
		}
		r.given = given
	}
	defer func() { err = r.withRemedy(err) }()
	if err := r.prepareFolder(); err != nil {
		return err
	}
	lock := flock.New(r.path(lockName), flock.SetFlag(os.O_CREATE|os.O_RDONLY|syscall.O_NOFOLLOW), flock.SetPermissions(0o600))
	held, err := lock.TryLock()
	if err != nil {
		return fmt.Errorf("lock the folder of the setup: %w; choose another one with --dir", err)
	}
	if !held {
		return ErrLocked
	}
	r.unlock = lock.Unlock
	defer func() { err = errors.Join(err, r.unlock()) }()
	return r.all(ctx)
}

// prepareFolder creates the folder, and checks that only its owner can write to it.
func (r *run) prepareFolder() error {
	if err := makeFolder(r.dir); err != nil {
		return fmt.Errorf("create the folder of the setup: %w; choose another one with --dir", err)
	}
	info, err := os.Stat(r.dir)
	if err != nil {
		return fmt.Errorf("read the folder of the setup: %w", err)
	}
	if info.Mode()&0o022 != 0 {
		return fmt.Errorf("other users can write to %s, where the secrets will be: run `chmod go-w %[1]s`, or choose another folder with --dir",
			r.dir)
	}
	return r.checkOwner()
}

// makeFolder creates a folder for its owner only. Everybody can pass its missing parents.
func makeFolder(dir string) error {
	if err := durable.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	return durable.MkdirAll(dir, 0o700)
}

// all runs the steps, and again if the operator wants that.
func (r *run) all(ctx context.Context) (err error) {
	if r.progress, err = r.readProgress(); err != nil {
		return err
	}
	if err := r.loadConfig(); err != nil {
		return err
	}
	if err := r.checkAnswers(); err != nil {
		return err
	}
	if err := r.checkFoldersEarly(); err != nil && (r.loaded || !r.front.interactive()) {
		return err // an operator who is asked can choose another folder for data first
	}
	closeFront, err := r.front.open(ctx, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeFront()) }()
	defer func() {
		if err != nil && r.chosen { // what root wrote is handed over even if a later step fails
			err = errors.Join(err, r.handOver())
		}
	}()
	for {
		r.skip, r.left, r.asked, r.rewritten, r.reopened, r.started = slices.Clone(r.opts.Skip), nil, false, false, false, false
		if err := r.sequence(ctx); err != nil {
			return err
		}
		title, text := r.result(ctx)
		var ways []decision
		if !r.handed {
			ways = append(ways, again)
		} else if err := r.unlock(); err != nil { // the text may name a command for another user
			return fmt.Errorf("unlock the folder of the setup: %w", err)
		}
		if r.front.finished(ctx, title, text, ways) != again {
			return nil
		}
	}
}

// sequence runs all steps once, and hands the files over.
func (r *run) sequence(ctx context.Context) error {
	list := steps()
	for i := 0; i < len(list); {
		how, err := r.play(ctx, i, list[i])
		switch {
		case err != nil:
			return err
		case how == back:
			i, r.asked, r.skip, r.left = 0, false, slices.Clone(r.opts.Skip), nil
		case how == again:
			r.asked = false // the user may be the reason why the step failed
		case how == skipStep:
			r.skip = append(r.skip, list[i].name) // and the step is played once more, which ends it
		case how == "":
			i++
		}
	}
	r.chosen = false
	for {
		err := r.handOver()
		if err == nil {
			return nil
		}
		err = r.withRemedy(err)
		if how := r.front.failed(ctx, err, []decision{again}); how != again {
			return r.ended(ctx, err)
		}
	}
}

// play runs a step. It returns how the operator wants to continue, or nothing if the next step follows.
func (r *run) play(ctx context.Context, n int, s step) (decision, error) {
	own, leave := r.front.begin(ctx, n, s, r.ways(s, false))
	defer leave()
	switch {
	case ctx.Err() != nil:
		return "", errInterrupted
	case s.done != nil && s.done(r):
		r.say("Done before.\n")
		r.front.end(doneBefore)
		return "", nil
	case s.needs != nil && s.needs(r) != "":
		r.say("Not possible yet, without %s.\n", s.needs(r))
		r.front.end(skipped)
		return "", nil
	}
	how, err := done, error(nil)
	if r.isSkipped(s.name) {
		how, err = skipped, r.leaveOut(s)
	} else if err = r.reloadConfig(); err == nil {
		err = s.do(r, own)
	}
	if err == nil {
		err = r.saveProgress()
	}
	if err == nil {
		r.front.end(how)
		return "", nil
	}
	return r.afterFailure(ctx, own, s, err)
}

// afterFailure returns how the operator wants to continue after a step that failed, or that the operator left.
func (r *run) afterFailure(ctx, own context.Context, s step, err error) (decision, error) {
	var how decision
	err = r.withRemedy(err)
	left := errors.As(context.Cause(own), &how) && !errors.As(err, new(credentialsError))
	if ctx.Err() != nil || !left {
		if ctx.Err() == nil {
			how = r.front.failed(ctx, err, r.ways(s, true))
		}
		if ctx.Err() != nil || how == stop {
			return "", r.ended(ctx, fmt.Errorf("%s: %w", strings.ToLower(s.title[:1])+s.title[1:], err))
		}
	}
	return how, nil
}

// ended returns the error of a setup that ends because of err.
func (r *run) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return errInterrupted
	}
	return err
}

// loadConfig loads the configuration if it exists.
func (r *run) loadConfig() error {
	cfg, err := config.Load(r.configFile(), r.Lookup)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case r.opts.Force:
		if r.progress.App == nil && err == nil && cfg.SecretFiles()["github.private_key"] == r.path("app.pem") {
			r.progress.App = &SavedApp{ID: cfg.GitHub.AppID} // only the configuration is replaced, not the App
		}
		return nil
	case err != nil:
		return fmt.Errorf("%w\nCorrect it, or let the setup write a new one with --force", err)
	}
	r.cfg, r.loaded = cfg, true
	r.say("%s exists and is not changed; --force writes a new one.\n", r.configFile())
	return nil
}

// reloadConfig loads the configuration again, because the operator may have corrected it, or a secret, since an earlier step. Root reads
// nothing any more that another user can change.
func (r *run) reloadConfig() error {
	if !r.loaded || r.handed {
		return nil
	}
	cfg, err := config.Load(r.configFile(), r.Lookup)
	if err != nil {
		return fmt.Errorf("%w\nCorrect it and %s", err, r.front.again())
	}
	r.cfg = cfg
	return nil
}

// configured reports whether a valid configuration exists.
func (r *run) configured() bool { return r.loaded }

func (r *run) path(name string) string { return filepath.Join(r.dir, name) }

func (r *run) configFile() string { return r.path("config.yml") }

// say shows a text to the operator. If nobody reads it, the setup continues.
func (r *run) say(format string, args ...any) { r.front.say(fmt.Sprintf(format, args...)) }

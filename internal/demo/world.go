// Package demo runs errand with simulators of all external systems: GitHub, a model, an agent and VMs (sandboxes on
// this host), all on loopback. `make demo` and the stories in e2e use it.
//
// A [World] is the simulators and one errand server with a real configuration file. A [Play] is a scripted person who
// takes one issue from its opening to the merge.
//
// Start here: [New].
package demo

import (
	"context"
	"crypto/rsa"
	"embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/handlers"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/forge/oauth"
	"github.com/errand-bot/errand/internal/server"
	"github.com/errand-bot/errand/internal/sim/simgithub"
	"github.com/errand-bot/errand/internal/sim/simgithub/web"
	"github.com/errand-bot/errand/internal/sim/simhetzner"
	"github.com/errand-bot/errand/internal/sim/simmodel"
)

//go:embed fixture/*.txt fixture/trial/*.txt script.yaml trial.yaml
var files embed.FS

// The accounts and the repository of the simulated GitHub.
const (
	Owner      = "acme"
	Name       = "slug"
	Full       = Owner + "/" + Name
	Maintainer = "ada"        // admin
	Writer     = "grace"      // write
	Outsider   = "eve"        // read access: may comment, like everyone
	Machine    = "errand-bot" // the account that issues are assigned to
	ModelKey   = "sk-sim-4c1f0a9d7e"
	AdminToken = "demo-admin-token"
)

// Config configures a [World].
type Config struct {
	Dir    string // folder for all files; created if missing
	BinDir string // folder of errand-runner
	// Agent is the agent's command; for the simulator it is [PROGRAM, "simagent"].
	Agent   []string
	Adapter string // default claude, with which the simulator is compatible
	StandIn bool   // the agent is the simulator
	Model   string
	// Subscription makes errand use the model on a subscription, ByLogin or ByToken, instead of a key.
	Subscription string
	// Unreachable makes errand read webhooks from GitHub's log, as if GitHub could not reach it.
	Unreachable bool
	Fast        bool // short intervals; otherwise production's
	// Timing sets intervals that the configuration does not have; nil means production's, or short ones if Fast.
	Timing *server.Timing
	Kind   string // kind of sandboxes, default auto
	// Provider is the VM provider: sandboxes unless it is ProviderHetzner. Sleep is how VMs are suspended there,
	// archive unless it is snapshot. Machines are the simulator's servers, sandboxes unless set.
	Provider, Sleep string
	Machines        simhetzner.Machines
	// Took are the durations of the cloud; nil means short ones if Fast, otherwise realistic ones.
	Took    *simhetzner.Took
	VMHours int // the limit on a task's VM hours there, default 100
	// Account may modify the configuration of the Hetzner simulator; it may be nil.
	Account func(*simhetzner.Config)
	Script  string // the model's script in YAML; default the demo's
	Pace    int    // words per second of the model, 0 for no pause
	// Extra is appended to the configuration: top-level keys that it lacks.
	Extra string
	// AgentMore is appended to the section agent: keys that it lacks.
	AgentMore string
	// Files replaces the repository's first commit.
	Files map[string]string
	// Key is the App's key; nil generates one, which takes a while.
	Key     *rsa.PrivateKey
	Log     zerolog.Logger
	Version string
	Now     func() time.Time
	// Listen opens errand's port at each start, for example a socket that stays open meanwhile, as a service manager's does. It may
	// be nil.
	Listen func(context.Context) (net.Listener, error)
	// Options may modify the server's options at each start of errand; tests use it to install hooks. It may be nil.
	Options func(*server.Options)

	noApp bool // errand's App does not exist yet
}

// World is the simulators and one errand.
type World struct {
	cfg    Config
	GitHub *simgithub.Sim
	Model  *simmodel.Server
	Cloud  *simhetzner.Sim // nil unless it provides the VMs
	Server *server.Server
	URL    string // errand's URL

	model *http.Server
	addr  string
	cloud string        // its API's address
	paid  time.Duration // billing period of a VM
	dial  func(ctx context.Context, network, address string) (net.Conn, error)
	stop  context.CancelFunc
	done  chan error
}

// New starts the simulators and errand. Close ends everything.
func New(ctx context.Context, cfg Config) (w *World, err error) {
	if cfg.Fast && cfg.Timing == nil {
		cfg.Timing = fastTiming()
	}
	w = &World{cfg: cfg}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
			w = nil
		}
	}()
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return w, fmt.Errorf("create the demo's folder: %w", err)
	}
	if err := w.startGitHub(); err != nil {
		return w, err
	}
	if err := w.startModel(); err != nil {
		return w, err
	}
	if err := w.startCloud(ctx); err != nil {
		return w, err
	}
	if err := w.writeConfig(); err != nil {
		return w, err
	}
	return w, w.Start(ctx)
}

// startGitHub creates the accounts and the repository.
func (w *World) startGitHub() (err error) {
	slug := "errand"
	if w.cfg.noApp {
		slug = "another-app" // the simulator always has one
	}
	w.GitHub, err = simgithub.New(simgithub.Config{
		Dir: filepath.Join(w.cfg.Dir, "github"), Key: w.cfg.Key, Log: w.cfg.Log.With().Str("part", "simgithub").Logger(), Now: w.cfg.Now, Pages: web.Handler,
		AppSlug: slug,
	})
	if err != nil {
		return fmt.Errorf("create the GitHub simulator: %w", err)
	}
	if _, err := w.GitHub.Start("127.0.0.1:0"); err != nil {
		return fmt.Errorf("start the GitHub simulator: %w", err)
	}
	files := w.cfg.Files
	if files == nil {
		if files, err = fixture(); err != nil {
			return err
		}
	}
	if w.cfg.Sleep != "" {
		files[".errand.yml"] += "vm: {sleep: " + w.cfg.Sleep + "}\n"
	}
	w.GitHub.AddOrg(Owner)
	w.GitHub.AddUser(Outsider)
	_, err = w.GitHub.SeedRepo(simgithub.RepoSeed{Owner: Owner, Name: Name, Files: files, NotInstalled: w.cfg.noApp, Collaborators: map[string]simgithub.Role{
		Maintainer: simgithub.RoleAdmin, Writer: simgithub.RoleWrite, Machine: simgithub.RoleTriage,
	}})
	return err
}

// fixture returns the small Go repository with a bug.
func fixture() (map[string]string, error) {
	return readFixture("fixture", "slug.go", "slug_test.go", "go.mod", "README.md", "errand.yml")
}

// readFixture returns files of a folder of the fixtures; errand.yml is the repository's .errand.yml.
func readFixture(folder string, names ...string) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range names {
		data, err := files.ReadFile(folder + "/" + name + ".txt")
		if err != nil {
			return nil, fmt.Errorf("read the demo's repository: %w", err)
		}
		if name == "errand.yml" {
			name = ".errand.yml"
		}
		out[name] = string(data)
	}
	return out, nil
}

// startModel serves the scripted model.
func (w *World) startModel() error {
	text := w.cfg.Script
	if text == "" {
		data, err := files.ReadFile("script.yaml")
		if err != nil {
			return fmt.Errorf("read the model's script: %w", err)
		}
		text = string(data)
	}
	script, err := simmodel.ParseScript([]byte(text))
	if err != nil {
		return err
	}
	if w.Model, err = simmodel.New(simmodel.Config{Script: script, Key: ModelKey, Pace: float64(w.cfg.Pace)}); err != nil {
		return fmt.Errorf("create the model simulator: %w", err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen for the model: %w", err)
	}
	w.model = &http.Server{Handler: w.Model, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = w.model.Serve(ln) }() // ends with Close
	w.addr = "http://" + ln.Addr().String()
	return nil
}

// Start starts errand with the data in its folder, as after a restart. The address stays the same.
func (w *World) Start(ctx context.Context) error {
	cfg, err := config.Load(w.ConfigFile(), os.LookupEnv)
	if err != nil {
		return err
	}
	ln, err := w.listen(ctx)
	if err != nil {
		return fmt.Errorf("listen for errand: %w", err)
	}
	w.URL = "http://" + ln.Addr().String()
	cfg.PublicURL = w.URL
	cfg.Admin.SignIn, cfg.Admin.Operators = true, []string{Maintainer}
	w.GitHub.SetCallbackURLs(oauth.CallbackURL(w.URL))
	hook := w.URL + handlers.HookPath
	if w.cfg.Unreachable {
		hook = handlers.NoHook
	}
	w.GitHub.SetWebhook(hook, "") // the secret stays: it is replaced at GitHub and in errand's file, one after the other
	bin, err := w.binDir()
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	opts := server.Options{
		Log:          w.cfg.Log.With().Str("part", "errand").Logger(),
		Version:      w.cfg.Version,
		BinDir:       bin,
		Listener:     ln,
		StandInAgent: w.cfg.StandIn,
		Now:          w.cfg.Now,
		DialVM:       w.dial,
		Timing:       w.cfg.Timing,
	}
	if w.cfg.Options != nil {
		w.cfg.Options(&opts)
	}
	w.Server, err = server.New(ctx, cfg, opts)
	if err != nil {
		return fmt.Errorf("create errand: %w", errors.Join(err, ln.Close()))
	}
	run, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.stop, w.done = stop, make(chan error, 1)
	srv, done := w.Server, w.done
	go func() { done <- srv.Run(run) }()
	return nil
}

// listen opens errand's port, the same one each time. While errand was down another process may have used it, so listen
// retries for a while.
func (w *World) listen(ctx context.Context) (ln net.Listener, err error) {
	if w.cfg.Listen != nil {
		return w.cfg.Listen(ctx)
	}
	var lc net.ListenConfig
	if w.URL == "" {
		return lc.Listen(ctx, "tcp", "127.0.0.1:0")
	}
	pause := time.NewTicker(100 * time.Millisecond)
	defer pause.Stop()
	for range 100 {
		ln, err = lc.Listen(ctx, "tcp", strings.TrimPrefix(w.URL, "http://"))
		if !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-pause.C:
		}
	}
	return ln, err
}

// Stop ends errand as a signal would; the simulators continue.
func (w *World) Stop() error {
	if w.stop == nil {
		return nil
	}
	w.stop()
	err := <-w.done
	w.stop = nil
	return errors.Join(err, w.Server.Close())
}

// Close ends everything, including sandboxes.
func (w *World) Close() error {
	var errs []error
	errs = append(errs, w.Stop())
	if w.Server != nil {
		errs = append(errs, w.deleteBoxes())
	}
	if w.Cloud != nil {
		w.Cloud.Close()
	}
	if w.model != nil {
		errs = append(errs, w.model.Close())
	}
	if w.GitHub != nil {
		errs = append(errs, w.GitHub.Close())
	}
	return errors.Join(errs...)
}

// Timing returns the intervals that errand was given in addition to its configuration; nil means production's.
func (w *World) Timing() *server.Timing { return w.cfg.Timing }

// ConfigFile returns the path of errand's configuration.
func (w *World) ConfigFile() string { return filepath.Join(w.cfg.Dir, "config.yml") }

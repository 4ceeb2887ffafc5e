// Command errand-demo plays errand's whole life against simulators on this machine: a small GitHub, a scripted model, a
// scripted agent and local sandboxes. `make demo` runs it; -interactive keeps it running.
//
// Start here: [run]. The simulated world is in internal/demo.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/demo"
	"github.com/errand-bot/errand/internal/provenance"
	"github.com/errand-bot/errand/internal/sim/simagent"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "simagent" {
		os.Exit(simagent.Main(os.Args[2:], os.Stdin, os.Stdout, os.Stderr, os.Environ()))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// logName is the name of errand's log in the demo's folder.
const logName = "errand.log"

// options are the flags.
type options struct {
	interactive, fast bool
	setup             bool
	agent, keep, kind string
	provider, sleep   string
}

func parse(args []string, out io.Writer) (options, error) {
	var o options
	fs := flag.NewFlagSet("errand-demo", flag.ContinueOnError)
	fs.SetOutput(out)
	fs.BoolVar(&o.interactive, "interactive", false, "keep everything running for a browser, and print the addresses")
	fs.BoolVar(&o.setup, "setup", false, "simulate GitHub and a model for `errand setup`, and print what to do; needs bin/errand")
	fs.BoolVar(&o.fast, "fast", true, "short intervals; false uses the production defaults")
	fs.StringVar(&o.agent, "agent", "simagent", "simagent, or a command compatible with claude, with its arguments")
	fs.StringVar(&o.keep, "keep", "", "folder for all files, which is kept; by default a temporary one")
	fs.StringVar(&o.kind, "boxes", "auto", "kind of sandboxes: auto, bwrap, userns or plain")
	fs.StringVar(&o.provider, "provider", "local", "VM provider: local, or hetzner (a simulator of its API with sandboxes as servers)")
	fs.StringVar(&o.sleep, "sleep", "archive", "how hetzner VMs are suspended: archive or snapshot")
	err := fs.Parse(args)
	if err == nil && (o.provider != "local" && o.provider != demo.ProviderHetzner || o.sleep != "archive" && o.sleep != "snapshot") {
		err = errors.New("-provider is local or hetzner, and -sleep archive or snapshot")
	}
	if err == nil && o.setup && fs.NFlag() > 1 {
		err = errors.New("-setup goes with no other flag")
	}
	if err == nil && fs.NArg() > 0 {
		err = fmt.Errorf("unknown argument %q", fs.Arg(0))
	}
	return o, err
}

// run plays the demo in a folder, or starts a trial of the setup there, and cleans up.
func run(ctx context.Context, args []string, out io.Writer) (err error) {
	o, err := parse(args, out)
	if err != nil {
		return err
	}
	dir, remove, err := folder(o.keep)
	if err != nil {
		return err
	}
	inUse := false
	defer func() {
		if !inUse {
			err = errors.Join(err, remove())
		}
	}()
	logFile, err := os.Create(filepath.Join(dir, logName))
	if err != nil {
		return fmt.Errorf("create the log: %w", err)
	}
	defer func() { err = errors.Join(err, logFile.Close()) }()
	log := zerolog.New(logFile).With().Timestamp().Logger()
	if o.setup {
		inUse, err = trial(ctx, out, dir, log)
		return err
	}
	return show(ctx, o, out, dir, log)
}

// show starts the world, and plays the demo or waits.
func show(ctx context.Context, o options, out io.Writer, dir string, log zerolog.Logger) (err error) {
	cfg, err := world(o, dir, log)
	if err != nil {
		return err
	}
	say := newTeller(out)
	say.Say("starting GitHub, the model and errand on loopback")
	if err := warm(ctx, say); err != nil {
		return err
	}
	w, err := demo.New(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	d, err := w.Server.Describe(ctx)
	if err != nil {
		return err
	}
	where := fmt.Sprintf("agents work in sandboxes (%s, %s isolation)", d.Kind, d.Isolation)
	if o.provider == demo.ProviderHetzner {
		where = "agents work on servers of a Hetzner simulator, which are sandboxes here"
	}
	say.Say("errand runs at %s, GitHub at %s; %s", w.URL, w.GitHub.BaseURL(), where)
	for _, note := range d.Notes {
		say.Say("note: %s", note)
	}
	if o.interactive {
		say.Say("watch it: %s/%s (act as %s), and errand's board %s/status (token %s)", w.GitHub.BaseURL(), demo.Full, demo.Maintainer, w.URL, demo.AdminToken)
	}
	patience := 2 * time.Minute
	if !o.fast {
		patience = 20 * time.Minute
	}
	play := &demo.Play{World: w, Say: say.Say, Wait: say.Wait, Patience: patience}
	res, err := play.Run(ctx)
	if err != nil {
		return fmt.Errorf("%w (the log is %s; keep it with -keep DIR)", err, filepath.Join(dir, logName))
	}
	say.Say("in addition to the calls for the issue: %d reads of reactions, %d calls for start and sweeps, %d reads by git", res.Polls, res.Others, res.Git)
	if o.keep != "" && !o.interactive {
		say.Say("files and log are in %s", dir)
	}
	say.end()
	_, err = fmt.Fprintf(out, "demo: issue #%d -> pull request #%d merged in %.1f s (%d comments, %d agent runs, %d GitHub calls)\n",
		res.Issue, res.Pull, res.Took.Seconds(), res.Comments, res.Runs, res.Calls)
	if err == nil && !o.interactive {
		_, err = fmt.Fprintln(out, "demo: -interactive keeps it running for your browser; -setup is for trying errand's setup (make demo ARGS=-setup)")
	}
	if err != nil || !o.interactive {
		return err
	}
	return interact(ctx, w, play, res.Pull, say, dir)
}

// folder creates the demo's folder. remove deletes it unless keep is set.
func folder(keep string) (dir string, remove func() error, err error) {
	if keep != "" {
		dir, err = filepath.Abs(keep)
		if err == nil {
			err = os.MkdirAll(dir, 0o700)
		}
		return dir, func() error { return nil }, err
	}
	dir, err = os.MkdirTemp("", "errand-demo-")
	return dir, func() error { return removeAll(dir) }, err
}

// removeAll deletes a folder, including read-only files of sandboxes.
func removeAll(dir string) error {
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return nil // RemoveAll reports unreadable folders
	})
	return errors.Join(err, os.RemoveAll(dir))
}

// world returns the configuration of the simulators.
func world(o options, dir string, log zerolog.Logger) (demo.Config, error) {
	exe, err := os.Executable()
	if err != nil {
		return demo.Config{}, fmt.Errorf("find the program: %w", err)
	}
	cfg := demo.Config{
		Dir:     dir,
		BinDir:  filepath.Dir(exe),
		Fast:    o.fast,
		Kind:    o.kind,
		Log:     log,
		Version: "demo",
		StandIn: o.agent == "simagent",
		Agent:   []string{exe, "simagent"},
	}
	if o.interactive {
		cfg.Pace = 60
	}
	if cfg.Provider = o.provider; o.provider == demo.ProviderHetzner && o.sleep != "archive" {
		cfg.Sleep = o.sleep
	}
	if !cfg.StandIn {
		cfg.Agent = strings.Fields(o.agent)
		if len(cfg.Agent) == 0 {
			return cfg, errors.New("-agent: name a command")
		}
		if cfg.Agent[0], err = exec.LookPath(cfg.Agent[0]); err != nil {
			return cfg, fmt.Errorf("-agent: %w", err)
		}
	}
	return cfg, nil
}

// warm compiles the standard library's tests once into the cache that the sandboxes share, so that the first demo on a
// machine does not wait for it in a sandbox.
func warm(ctx context.Context, say *teller) error {
	cache, err := demo.Cache()
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(cache)
	if err != nil || len(entries) > 10 {
		return err
	}
	say.Say("compiling Go's standard library for the sandboxes, the first time only (%s)", cache)
	dir, err := os.MkdirTemp("", "errand-warm-")
	if err != nil {
		return fmt.Errorf("warm the build cache: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // a few small files in the temporary folder
	if err := demo.WriteFixture(dir); err != nil {
		return err
	}
	for _, args := range [][]string{{"vet", "./..."}, {"test", "./..."}} {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOCACHE="+cache, "GOTOOLCHAIN=local", "GOPROXY=off", "GOFLAGS=-mod=mod")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("warm the build cache: go %s: %w\n%s", args[0], err, out)
		}
	}
	_, err = demo.Cache() // makes the compiled packages available in the sandboxes
	return err
}

// interact keeps everything running until Ctrl-C, with another open issue.
func interact(ctx context.Context, w *demo.World, play *demo.Play, pull int, say *teller, dir string) error {
	n, err := play.OpenAnother()
	if err != nil {
		return err
	}
	say.Say("your turn: open %s/%s/issues/%d, act as %s and assign it to %s", w.GitHub.BaseURL(), demo.Full, n, demo.Maintainer, demo.Machine)
	say.Say("errand's board is %s/status, its token %s", w.URL, demo.AdminToken)
	if u, ok := w.GitHub.User(demo.Maintainer); ok {
		say.Say("verify the merged one: curl -fsS %s%s -o keys.json; GITHUB_TOKEN=%s errand verify %s#%d --github %s --key keys.json",
			w.URL, provenance.KeysPath, u.Token, demo.Full, pull, w.GitHub.BaseURL())
	}
	say.Say("files and log are in %s; Ctrl-C ends everything", dir)
	<-ctx.Done()
	say.Say("cleaning up")
	return nil
}

package demo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"github.com/rs/zerolog"

	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/fleet"
	"github.com/errand-bot/errand/internal/server"
	"github.com/errand-bot/errand/internal/sim/simgithub"
)

// A Trial is a simulated GitHub Enterprise Server and a simulated model for somebody who tries `errand setup` and `errand serve`
// without an account anywhere. It has a repository with one issue, which needs no toolchain, and no App yet.
type Trial struct {
	GitHub *simgithub.Sim
	w      *World
	// Answers is the path of a file with the answers for `errand setup`, and Folder the one for the setup, which does not exist yet.
	Answers, Folder string
	Issue           string // address of the issue
	Listen          string // address at which errand will serve
}

// NewTrial starts the simulators with files in a folder. Close ends them.
func NewTrial(dir string, log zerolog.Logger) (t *Trial, err error) {
	script, err := files.ReadFile("trial.yaml")
	if err != nil {
		return nil, fmt.Errorf("read the model's script: %w", err)
	}
	repo, err := readFixture("fixture/trial", "slug.sh", "test.sh", "README.md", "errand.yml")
	if err != nil {
		return nil, err
	}
	w := &World{cfg: Config{Dir: dir, Script: string(script), Files: repo, Log: log, noApp: true}}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	if err := errors.Join(w.startGitHub(), w.startModel()); err != nil {
		return nil, err
	}
	text, err := files.ReadFile("fixture/trial/issue.md.txt")
	if err != nil {
		return nil, fmt.Errorf("read the issue: %w", err)
	}
	i, err := w.GitHub.As(Maintainer).OpenIssue(Full, simgithub.NewIssue{Title: "Slugs end in a hyphen when the title ends in punctuation", Body: string(text)})
	if err != nil {
		return nil, fmt.Errorf("open the issue: %w", err)
	}
	t = &Trial{
		GitHub: w.GitHub, w: w, Answers: filepath.Join(dir, "answers.yml"), Folder: filepath.Join(dir, "errand"),
		Issue: fmt.Sprintf("%s/%s/issues/%d", w.GitHub.BaseURL(), Full, i.Number),
	}
	return t, t.writeAnswers(dir)
}

// Close ends the simulators.
func (t *Trial) Close() error { return t.w.Close() }

// EndSandboxes ends the sandboxes that errand left behind when it was stopped, which work in the trial's folder. It returns boltkv.ErrLocked while
// errand runs.
func (t *Trial) EndSandboxes(ctx context.Context, binDir string) error {
	cfg, err := config.Load(filepath.Join(t.Folder, "config.yml"), os.LookupEnv)
	if errors.Is(err, fs.ErrNotExist) { // setup was not completed
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(cfg.Data, "errand.db")); errors.Is(err, fs.ErrNotExist) { // errand was never started
		return nil
	}
	if cfg.Provider != config.ProviderLocal {
		return fmt.Errorf("the VMs of %s were not deleted", cfg.Provider)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("end the sandboxes: %w", err)
	}
	s, err := server.New(ctx, cfg, server.Options{Log: t.w.cfg.Log, BinDir: binDir, Listener: ln, StandInAgent: true}) // no agent is started
	if err != nil {
		_ = ln.Close() // nothing was served
		return fmt.Errorf("end the sandboxes: %w", err)
	}
	return errors.Join(s.DeleteVMs(ctx, fleet.ReasonOperator), s.Close())
}

// writeAnswers writes the answers and the model's key.
func (t *Trial) writeAnswers(dir string) error {
	who, err := user.Current()
	if err != nil {
		return fmt.Errorf("find the current user: %w", err)
	}
	if t.Listen, err = freeAddress(); err != nil {
		return err
	}
	key := filepath.Join(dir, "model-key")
	if err := os.WriteFile(key, []byte(ModelKey+"\n"), 0o600); err != nil {
		return fmt.Errorf("write the model's key: %w", err)
	}
	var b strings.Builder
	b.WriteString("# Written by errand-demo: answers for `errand setup`. Everything that they name is on this machine.\n")
	for _, a := range [][2]string{
		{"github", t.GitHub.BaseURL()}, {"public_url", "http://" + t.Listen}, {"listen", t.Listen}, {"assignee", Machine}, {"agent", "api"},
		{"model_url", t.w.addr}, {"model_key", "file:" + key}, {"organization", Owner}, {"user", who.Username},
	} {
		value, err := inline(a[1])
		if err != nil {
			return fmt.Errorf("write the answers: %w", err)
		}
		fmt.Fprintf(&b, "%s: %s\n", a[0], value)
	}
	if err := os.WriteFile(t.Answers, []byte(b.String()), 0o600); err != nil {
		return fmt.Errorf("write the answers: %w", err)
	}
	return nil
}

// freeAddress returns an address of this host whose port is free now.
func freeAddress() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port for errand: %w", err)
	}
	return ln.Addr().String(), ln.Close()
}

package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/errand-bot/errand/internal/durable"
	"github.com/errand-bot/errand/internal/runner/proc"
)

// user is who does the work of one run: the runner's own user, or another one that it becomes for that.
type user interface {
	// root is where this user has what a run needs.
	root() Root
	// write writes the run's files.
	write(files []File) error
	// prepare makes the workspace's folder, looks what is there, and chooses the isolation.
	prepare(spec Spec) (ready, error)
	// setUp remembers that the set-up has succeeded.
	setUp(dir string, commands []SetupCommand) error
	// start starts a command. What it started is gone when the process is done.
	start(c proc.Command, stdin string, isolation proc.Isolation) (process, error)
	// clear kills what earlier runs and what came of them have left, and returns how many processes could not be ended.
	clear() int
	// end kills what is left of a run that nobody supervises, and returns how many processes could not be ended.
	end() int
}

// process is a command that runs; *proc.Process says what the methods do.
type process interface {
	Interrupt()
	Kill()
	Done() <-chan struct{}
	Wait() proc.Exit
	CPU() (used time.Duration, known bool)
}

var (
	_ process = (*proc.Process)(nil)
	_ user    = ownUser{}
	_ user    = (*otherUser)(nil)
)

// ready is what was found before a run's first command.
type ready struct {
	Isolation proc.Isolation `json:"isolation"`
	// SetUp says that the set-up has succeeded in this workspace before.
	SetUp bool `json:"set_up,omitempty"`
	// NoDir is why there is no folder to work in.
	NoDir string `json:"no_dir,omitempty"`
}

// userOf is the user of a run.
func userOf(root Root, spec Spec) user {
	if len(spec.Become) == 0 {
		return ownUser{at: root, id: spec.ID}
	}
	return &otherUser{become: spec.Become, home: spec.Home, id: spec.ID, keeper: root}
}

// ownUser is the runner's own user.
type ownUser struct {
	at Root
	id string
}

func (u ownUser) root() Root { return u.at }

func (u ownUser) write(files []File) error { return writeFiles(files) }

func (u ownUser) prepare(spec Spec) (ready, error) { return getReady(u.at, spec), nil }

func (u ownUser) setUp(dir string, commands []SetupCommand) error {
	return markSetUp(u.at, dir, commands)
}

func (u ownUser) start(c proc.Command, stdin string, isolation proc.Isolation) (process, error) {
	return startWith(u.at.RunDir(u.id), c, stdin, isolation)
}

// clear does nothing: among its own processes the runner knows only those of one run, and that run has ended them.
func (u ownUser) clear() int { return 0 }

func (u ownUser) end() int { return proc.KillMarked(u.at.RunDir(u.id)) }

// getReady is prepare for the calling user.
func getReady(root Root, spec Spec) ready {
	r := ready{Isolation: spec.Isolation}
	if r.Isolation == "" {
		r.Isolation = proc.Probe()
	}
	if err := os.MkdirAll(spec.Dir, 0o755); err != nil {
		r.NoDir = err.Error()
		return r
	}
	r.SetUp = len(spec.Setup) > 0 && exists(setupMarker(root, spec.Dir, spec.Setup))
	return r
}

// startWith starts a command as the calling user. What it reads lies in a file: a pipe would need somebody who
// writes it.
func startWith(dir string, c proc.Command, stdin string, isolation proc.Isolation) (process, error) {
	if stdin != "" {
		path := filepath.Join(dir, "stdin")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("create the run's directory: %w", err)
		}
		if err := durable.WriteFile(path, []byte(stdin), 0o600); err != nil {
			return nil, err
		}
		f, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("open stdin: %w", err)
		}
		defer f.Close()
		c.Stdin = f
	}
	p, err := proc.Start(c, isolation)
	if err != nil {
		return nil, err // no *proc.Process in an interface
	}
	return p, nil
}

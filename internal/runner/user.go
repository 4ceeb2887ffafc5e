package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/errand-bot/errand/internal/durable"
	"github.com/errand-bot/errand/internal/runner/proc"
)

// user does the work of one run, either as the runner's own user or as another one.
type user interface {
	// root is the directory with this user's files of a run.
	root() Root
	// write writes the run's files.
	write(files []File) error
	// prepare creates the workspace's folder, checks its state, and chooses the isolation.
	prepare(spec Spec) (workspaceState, error)
	// setUp records that the set-up has succeeded.
	setUp(dir string, commands []SetupCommand) error
	// start starts a command. When the process is done, all its descendants have ended.
	start(c proc.Command, stdin string, isolation proc.Isolation) (process, error)
	// clearLeftovers kills the leftover processes of earlier runs, and returns how many could not be ended.
	clearLeftovers() int
	// endLeftovers kills the leftover processes of a run without a supervisor, and returns how many could not be ended.
	endLeftovers() int
}

// process is a running command; see *proc.Process for the methods.
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

// workspaceState is the result of prepare.
type workspaceState struct {
	Isolation proc.Isolation `json:"isolation"`
	// SetUp reports that the set-up has succeeded in this workspace before.
	SetUp bool `json:"set_up,omitempty"`
	// NoDir is the error if the folder to work in could not be created.
	NoDir string `json:"no_dir,omitempty"`
}

// userOf returns the user of a run.
func userOf(root Root, spec Spec) user {
	if len(spec.Become) == 0 {
		return ownUser{at: root, id: spec.ID}
	}
	return &otherUser{become: spec.Become, home: spec.Home, id: spec.ID, keeper: root}
}

// ownUser does the work as the runner's own user.
type ownUser struct {
	at Root
	id string
}

func (u ownUser) root() Root { return u.at }

func (u ownUser) write(files []File) error { return writeFiles(files) }

func (u ownUser) prepare(spec Spec) (workspaceState, error) { return probeWorkspace(u.at, spec), nil }

func (u ownUser) setUp(dir string, commands []SetupCommand) error {
	return markSetUp(u.at, dir, commands)
}

func (u ownUser) start(c proc.Command, stdin string, isolation proc.Isolation) (process, error) {
	return startWith(u.at.RunDir(u.id), c, stdin, isolation)
}

// clearLeftovers does nothing: the runner can only recognize its processes of one run, and the supervisor of that run
// has ended them.
func (u ownUser) clearLeftovers() int { return 0 }

func (u ownUser) endLeftovers() int { return proc.KillMarked(u.at.RunDir(u.id)) }

// probeWorkspace implements prepare for the calling user.
func probeWorkspace(root Root, spec Spec) workspaceState {
	r := workspaceState{Isolation: spec.Isolation}
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

// startWith starts a command as the calling user. The command's input is in a file, because a pipe would need a writing
// process.
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
		return nil, err // not a nil *proc.Process in an interface
	}
	return p, nil
}

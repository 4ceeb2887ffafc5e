package runner

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner/proc"
)

// Defaults for zero fields of a Spec.
const (
	DefaultDuration = 2 * time.Hour
	DefaultStall    = 10 * time.Minute
	// DefaultMaxLine is the number of bytes of one line that are kept.
	DefaultMaxLine = 4 << 20
	// DefaultMaxLog is the size of the log in bytes beyond which only the last lines of output are kept.
	DefaultMaxLog = 256 << 20
	// DefaultIdleCPU is the share of one processor below which a run counts as idle.
	DefaultIdleCPU = 0.02
	// DefaultGrace is the time for a command to end after SIGINT.
	DefaultGrace = 5 * time.Second
	// DefaultSetupTimeout bounds one set-up command.
	DefaultSetupTimeout = 15 * time.Minute
)

// Spec describes one run. `errand-runner start` reads it. In Argv, Dir, the values of Env and the paths of Files,
// "{runner}" stands for the runner's executable, "{root}" for its root and "{run_dir}" for the run's directory, both
// those of the user who runs the command. Durations are in nanoseconds.
type Spec struct {
	// ID names the run and its directory: letters, digits, dots, dashes and underscores.
	ID   string   `json:"id"`
	Argv []string `json:"argv"`
	// Env is added to a small environment (PATH, HOME, USER, LANG, TMPDIR and the like).
	Env map[string]string `json:"env,omitempty"`
	// Dir is the workspace. "~/" at its start stands for the home directory.
	Dir string `json:"dir"`
	// Stdin is the complete input of the command.
	Stdin string `json:"stdin,omitempty"`
	Files []File `json:"files,omitempty"`
	// Setup runs once per workspace and list of commands, before the command.
	Setup []SetupCommand `json:"setup,omitempty"`
	// Duration is the time limit of the command, excluding set-up.
	Duration time.Duration `json:"duration,omitempty"`
	// Stall is the time without activity after which a run is ended. A negative value disables the check.
	Stall   time.Duration `json:"stall,omitempty"`
	IdleCPU float64       `json:"idle_cpu,omitempty"`
	// Grace is the time for the command to end after SIGINT before all processes are killed.
	Grace   time.Duration `json:"grace,omitempty"`
	MaxLine int           `json:"max_line,omitempty"`
	MaxLog  int64         `json:"max_log,omitempty"`
	// Isolation requests weaker isolation than the best available: "subreaper" if a PID namespace would cause problems.
	Isolation proc.Isolation `json:"isolation,omitempty"`
	// Become is a command prefix for running the commands as another user, such as `sudo -n -H -u errand --`. All
	// processes of the run then belong to that user, and the records to the runner. Home is that user's home, and
	// contains its part of "{root}". Both are empty if the runner's own user does the work.
	Become []string `json:"become,omitempty"`
	Home   string   `json:"home,omitempty"`
}

// File is written before a run starts, with exactly this mode. A relative path is relative to the run's directory.
type File struct {
	Path    string `json:"path"`
	Mode    uint32 `json:"mode,omitempty"`
	Content []byte `json:"content"`
	// Keep leaves an existing file as it is.
	Keep bool `json:"keep,omitempty"`
}

// SetupCommand is one line of a repository's set-up, for sh. No process that it starts outlives it.
type SetupCommand struct {
	Command string        `json:"command"`
	Timeout time.Duration `json:"timeout,omitempty"`
}

// Started is the answer of the start command.
type Started struct {
	Started bool `json:"started,omitempty"`
	// Already is true if a run with this id was started before, whatever its state is now.
	Already   bool           `json:"already,omitempty"`
	Isolation proc.Isolation `json:"isolation,omitempty"`
}

// State is the state of a run.
type State string

// The states of a run.
const (
	StateRunning State = "running" // its supervisor is alive
	StateExited  State = "exited"  // its exit is written
	StateLost    State = "lost"    // neither: the supervisor was killed or the VM restarted
	StateUnknown State = "unknown" // there never was such a run
)

// Status is the answer of the status command.
type Status struct {
	ID        string         `json:"id"`
	State     State          `json:"state"`
	Isolation proc.Isolation `json:"isolation,omitempty"`
	Exit      *runlog.Exit   `json:"exit,omitempty"`
}

// ErrUnknownRun is returned for the id of a run that was never started here.
var ErrUnknownRun = errors.New("no such run")

// maxID is the maximum length of a run's id in bytes.
const maxID = 128

// CheckID returns an error unless the id is a valid name of a run: letters, digits, dots, dashes and underscores, the
// first of them a letter or a digit.
func CheckID(id string) error {
	invalid := func(c rune) bool { return !isAlphanumeric(c) && !strings.ContainsRune("._-", c) }
	if id == "" || len(id) > maxID || !isAlphanumeric(rune(id[0])) || strings.ContainsFunc(id, invalid) {
		return fmt.Errorf("run id %q: use letters, digits, dots, dashes and underscores, at most %d", id, maxID)
	}
	return nil
}

func isAlphanumeric(c rune) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// Validate returns an error that names the first invalid field.
func (s *Spec) Validate() error {
	if err := CheckID(s.ID); err != nil {
		return err
	}
	switch {
	case len(s.Argv) == 0 || s.Argv[0] == "":
		return errors.New("argv: no command given")
	case s.Dir == "":
		return errors.New("dir: no workspace given")
	case s.Duration < 0 || s.Grace < 0:
		return errors.New("duration, grace: must not be negative")
	case len(s.Become) > 0 && !filepath.IsAbs(s.Home):
		return errors.New("become: needs the home of the user as an absolute path in home")
	case s.MaxLine < 0 || s.MaxLog < 0 || s.IdleCPU < 0:
		return errors.New("max_line, max_log, idle_cpu: must not be negative")
	}
	switch s.Isolation {
	case "", proc.PIDNamespace, proc.Subreaper, proc.Group:
	default:
		return fmt.Errorf("isolation: unknown kind %q", s.Isolation)
	}
	for i, f := range s.Files {
		if f.Path == "" || f.Mode&^0o777 != 0 {
			return fmt.Errorf("files[%d]: needs a path and a mode of at most 0777", i)
		}
	}
	for i, c := range s.Setup {
		if c.Command == "" || c.Timeout < 0 {
			return fmt.Errorf("setup[%d]: needs a command and a timeout that is not negative", i)
		}
	}
	return nil
}

// withDefaults returns the spec with defaults for zero limits.
func (s Spec) withDefaults() Spec {
	s.Duration = orDefault(s.Duration, DefaultDuration)
	s.Stall = orDefault(s.Stall, DefaultStall)
	s.IdleCPU = orDefault(s.IdleCPU, DefaultIdleCPU)
	s.Grace = orDefault(s.Grace, DefaultGrace)
	s.MaxLine = orDefault(s.MaxLine, DefaultMaxLine)
	s.MaxLog = orDefault(s.MaxLog, DefaultMaxLog)
	return s
}

func orDefault[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}

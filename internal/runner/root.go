package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/errand-bot/errand/internal/durable"
)

// Root is the directory that contains all of the runner's files.
type Root string

// DefaultRoot returns $HOME/.errand.
func DefaultRoot() (Root, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find home directory: %w", err)
	}
	return Root(filepath.Join(home, ".errand")), nil
}

// RunDir returns the directory of one run.
func (r Root) RunDir(id string) string { return filepath.Join(string(r), "runs", id) }

// TetherDir returns the directory of the tether's daemon.
func (r Root) TetherDir() string { return filepath.Join(string(r), "tether") }

// CheckDir returns the directory of the worktrees and homes of checks.
func (r Root) CheckDir() string { return filepath.Join(string(r), "checks") }

// The files in a run's directory.
const (
	specFile      = "spec.json"      // written once, before the supervisor starts
	aliveFile     = "alive.lock"     // locked while the supervisor lives
	logFile       = "events.jsonl"   // the log, one runlog.Line per line
	exitFile      = "exit.json"      // written once, after all processes have ended
	stopFile      = "stop"           // a stop was requested; contains the reason
	isolationFile = "isolation"      // the isolation of the run
	reserveFile   = "reserve"        // space that is freed if the disk is full when the exit is written
	superviseLog  = "supervisor.log" // output of a failing supervisor
)

// begunFile, in the root, contains the time before which no process belongs to an agent, for runs with their own user.
const begunFile = "begun"

func writeJSON(path string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	return durable.WriteFile(path, data, 0o600)
}

// reserve is the size of reserveFile in bytes: some blocks, enough for an exit.
const reserve = 64 << 10

// minFreeBytes is the free space on a disk below which the disk counts as full.
const minFreeBytes = 1 << 20

// diskFull reports, with best effort, whether the disk of a folder is full.
func diskFull(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Bavail*uint64(st.Bsize) < minFreeBytes //nolint:gosec,unconvert // differs by system
}

// writeExit writes a run's exit; on a full disk it uses the reserved space.
func writeExit(dir string, exit any) error {
	err := writeJSON(filepath.Join(dir, exitFile), exit)
	if errors.Is(err, unix.ENOSPC) && os.Remove(filepath.Join(dir, reserveFile)) == nil {
		err = writeJSON(filepath.Join(dir, exitFile), exit)
	}
	if err == nil {
		_ = os.Remove(filepath.Join(dir, reserveFile)) // errors do not matter: the run's folder is deleted later
	}
	return err
}

func readJSON(path string, value any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, value); err != nil {
		return fmt.Errorf("decode %s: %w", path, err)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// errLocked means that another process holds the lock.
var errLocked = errors.New("locked")

// tryLock opens the file and locks it for this open file and all processes that inherit it. The lock is released when
// the last of them closes it, or dies.
func tryLock(path string) (*os.File, error) { return tryFlock(path, unix.LOCK_EX) }

// trySharedLock only checks whether the lock is held. Several checks do not disturb one another.
func trySharedLock(path string) (*os.File, error) { return tryFlock(path, unix.LOCK_SH) }

func tryFlock(path string, kind int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	err = unix.Flock(int(f.Fd()), kind|unix.LOCK_NB)
	if err == nil {
		return f, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errLocked
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// expandHome replaces "~" and "~/" at the start of a path by home, by default the caller's.
func expandHome(path, home string) (string, error) {
	if path != "~" && !strings.HasPrefix(path, "~/") {
		return path, nil
	}
	if home == "" {
		var err error
		if home, err = os.UserHomeDir(); err != nil {
			return "", fmt.Errorf("find home directory: %w", err)
		}
	}
	return filepath.Join(home, strings.TrimPrefix(path, "~")), nil
}

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

// Root is the directory beneath which the runner keeps everything.
type Root string

// DefaultRoot is $HOME/.errand.
func DefaultRoot() (Root, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find home directory: %w", err)
	}
	return Root(filepath.Join(home, ".errand")), nil
}

// RunDir is the directory of one run.
func (r Root) RunDir(id string) string { return filepath.Join(string(r), "runs", id) }

// TetherDir is the directory of the tether's daemon.
func (r Root) TetherDir() string { return filepath.Join(string(r), "tether") }

// CheckDir is the directory beneath which checks get their worktrees and homes.
func (r Root) CheckDir() string { return filepath.Join(string(r), "checks") }

// The files of a run's directory.
const (
	specFile      = "spec.json"      // written once, before the supervisor starts
	aliveFile     = "alive.lock"     // locked for as long as the supervisor lives
	logFile       = "events.jsonl"   // the log, one runlog.Line per line
	exitFile      = "exit.json"      // written once, after every process is gone
	stopFile      = "stop"           // somebody asked for the end; holds the reason
	isolationFile = "isolation"      // which isolation the run got
	reserveFile   = "reserve"        // space that is given up if the disk is full when the exit is written
	superviseLog  = "supervisor.log" // what a broken supervisor had to say
)

// begunFile lies in the root: before which moment nothing is of an agent's, for runs with a user of their own.
const begunFile = "begun"

func writeJSON(path string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return fmt.Errorf("encode %s: %w", path, err)
	}
	return durable.WriteFile(path, data, 0o600)
}

// reserve is the size of reserveFile: some blocks, in which an exit has room.
const reserve = 64 << 10

// leastRoom is the room on a disk, in bytes, below which nothing can be done there any more.
const leastRoom = 1 << 20

// diskFull says whether there is no room left where a folder is. It is best effort.
func diskFull(dir string) bool {
	var st unix.Statfs_t
	return unix.Statfs(dir, &st) == nil && st.Bavail*uint64(st.Bsize) < leastRoom //nolint:gosec,unconvert // differs by system
}

// writeExit writes how a run ended, on a full disk into the space that was kept for it.
func writeExit(dir string, exit any) error {
	err := writeJSON(filepath.Join(dir, exitFile), exit)
	if errors.Is(err, unix.ENOSPC) && os.Remove(filepath.Join(dir, reserveFile)) == nil {
		err = writeJSON(filepath.Join(dir, exitFile), exit)
	}
	if err == nil {
		_ = os.Remove(filepath.Join(dir, reserveFile)) // the run's folder goes some day
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

// errLocked says that somebody else holds a lock.
var errLocked = errors.New("locked")

// tryLock opens the file and locks it for this open file and all that inherit it. The lock goes
// when the last of them is closed, also by a crash.
func tryLock(path string) (*os.File, error) { return tryFlock(path, unix.LOCK_EX) }

// trySharedLock is for those who only want to know whether somebody holds the lock; they do not
// disturb one another.
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

package runner

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/errand-bot/errand/internal/durable"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner/proc"
)

// stopTimeout bounds the wait for a run's end: the grace period, the kill, and the rest of the output.
const stopTimeout = 40 * time.Second

// Stop ends a run: SIGINT to the agent, a grace period of 5 s, then SIGKILL to all processes. It returns the run's exit
// after all processes have ended. It may be called repeatedly.
func Stop(ctx context.Context, root Root, id, reason string) (*runlog.Exit, error) {
	if err := checkKnown(root, id); err != nil {
		return nil, err
	}
	dir := root.RunDir(id)
	if path := filepath.Join(dir, stopFile); !exists(path) && !exists(filepath.Join(dir, exitFile)) {
		if err := requestStop(path, reason); err != nil {
			return nil, fmt.Errorf("stop run %s: %w", id, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	var exit *runlog.Exit
	var err error
	ended := await(ctx, func() bool {
		if exit, err = readExit(dir); exit == nil && err == nil {
			exit, err = finishLost(root, id)
		}
		return exit != nil || err != nil
	})
	if !ended {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("stop run %s: %w", id, err)
	}
	return exit, nil
}

// requestStop writes the reason into the stop file; on a full disk it creates an empty file, which only needs space in
// the folder.
func requestStop(path, reason string) error {
	err := durable.WriteFile(path, []byte(reason), 0o600)
	if !errors.Is(err, unix.ENOSPC) {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("create %s: %w", path, err)
	}
	return f.Close()
}

// StatusOf returns the state of a run. Unlike [Follow] and [Stop], it has no side effects.
func StatusOf(root Root, id string) (Status, error) {
	status := Status{ID: id, State: StateUnknown}
	err := checkKnown(root, id)
	if errors.Is(err, ErrUnknownRun) {
		return status, nil
	}
	if err != nil {
		return status, err
	}
	dir := root.RunDir(id)
	status.Isolation = readIsolation(dir)
	lock, err := trySharedLock(filepath.Join(dir, aliveFile))
	if err == nil {
		defer lock.Close()
	} else if !errors.Is(err, errLocked) {
		return status, err
	}
	alive := errors.Is(err, errLocked)
	if status.Exit, err = readExit(dir); err != nil {
		return status, err
	}
	switch {
	case status.Exit != nil:
		status.State = StateExited
	case alive:
		status.State = StateRunning
	default:
		status.State = StateLost
	}
	return status, nil
}

// Runs returns the ids of the runs that were started here, in the order of their names.
func Runs(root Root) ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(root.RunDir("any")))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	ids := []string{}
	for _, e := range entries {
		if CheckID(e.Name()) == nil && exists(filepath.Join(root.RunDir(e.Name()), specFile)) {
			ids = append(ids, e.Name())
		}
	}
	return ids, nil
}

// finishLost handles a run whose supervisor has died without an exit: it kills the leftover processes and writes the
// exit. It returns nil while the supervisor is alive, and the exit if there is one. If there is no space for the exit,
// because the agent has filled the disk and the reserve, it is not written, and the next call returns the same.
func finishLost(root Root, id string) (*runlog.Exit, error) {
	dir := root.RunDir(id)
	lock, err := tryLock(filepath.Join(dir, aliveFile))
	if errors.Is(err, errLocked) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer lock.Close()
	if exit, err := readExit(dir); exit != nil || err != nil {
		return exit, err
	}
	var spec Spec // an unreadable spec names no user, so the processes are searched for as the runner's
	_ = readJSON(filepath.Join(dir, specFile), &spec)
	spec.ID = id
	left := userOf(root, spec).endLeftovers()
	exit := runlog.Exit{
		Cause: runlog.CauseLost, Code: -1, EndedAt: time.Now().UTC(),
		Message: "The run's supervisor was killed or the VM restarted.",
	}
	if left > 0 {
		exit.Message += fmt.Sprintf(" %d processes could not be ended.", left)
	}
	exit.DiskFull = diskFull(dir) || spec.Home != "" && diskFull(spec.Home)
	exit.StartedAt, exit.LastSeq = logSpan(dir)
	if err := writeExit(dir, exit); err != nil && !errors.Is(err, unix.ENOSPC) {
		return nil, err
	}
	return &exit, nil
}

// logSpan returns a run's start time and the last number in its log.
func logSpan(dir string) (began time.Time, last int64) {
	if info, err := os.Stat(filepath.Join(dir, specFile)); err == nil {
		began = info.ModTime().UTC()
	}
	tail := &tailReader{path: filepath.Join(dir, logFile)}
	defer tail.close()
	for {
		line, err := tail.next()
		if err != nil {
			return began, last
		}
		last = line.Seq
	}
}

func readIsolation(dir string) proc.Isolation {
	data, err := os.ReadFile(filepath.Join(dir, isolationFile))
	if err != nil {
		return ""
	}
	return proc.Isolation(strings.TrimSpace(string(data)))
}

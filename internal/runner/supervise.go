package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/errand-bot/errand/internal/durable"
	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/runner/proc"
)

// The files that spawn passes to a supervisor.
const (
	lockFD  = 3
	readyFD = 4
)

// supervisor runs one run to its end.
type supervisor struct {
	root      Root
	dir       string
	spec      Spec
	user      user
	ready     workspaceState
	isolation proc.Isolation
	log       *logWriter
	now       func() time.Time
	started   time.Time
	// openRequests returns the number of the VM's open requests at the tether.
	openRequests func() int
}

// Supervise is the "supervise" subcommand: it runs one run to its end, detached from the process that started it. It
// returns after the run's exit is written, or with an error if that failed.
func Supervise(root Root, id string) error {
	unix.CloseOnExec(lockFD)
	unix.CloseOnExec(readyFD)
	proc.Detach()
	ready := os.NewFile(readyFD, "ready")
	s := &supervisor{
		root: root, dir: root.RunDir(id), now: time.Now,
		openRequests: func() int { return openTetherRequests(root) },
	}
	if err := readJSON(filepath.Join(s.dir, specFile), &s.spec); err != nil {
		return fmt.Errorf("supervise run %s: %w", id, err)
	}
	s.user = userOf(root, s.spec)
	left := s.user.clearLeftovers()
	var err error
	if s.ready, err = s.user.prepare(s.spec); err != nil {
		return fmt.Errorf("supervise run %s: %w", id, err)
	}
	s.isolation = s.ready.Isolation
	if err := durable.WriteFile(filepath.Join(s.dir, isolationFile), []byte(s.isolation), 0o600); err != nil {
		return fmt.Errorf("supervise run %s: %w", id, err)
	}
	if err := durable.WriteFile(filepath.Join(s.dir, reserveFile), make([]byte, reserve), 0o600); err != nil {
		return fmt.Errorf("supervise run %s: %w", id, err)
	}
	if s.log, err = openLog(filepath.Join(s.dir, logFile), s.spec.MaxLog, s.now); err != nil {
		return fmt.Errorf("supervise run %s: %w", id, err)
	}
	if left > 0 {
		s.log.note("%d processes from before this run could not be ended.", left)
	}
	s.started = s.now()
	err = json.NewEncoder(ready).Encode(Started{Started: true, Isolation: s.isolation})
	if err := errors.Join(err, ready.Close()); err != nil {
		// The starter is gone; the run continues without it.
		s.log.note("The starter did not wait: %v", err)
	}
	return s.finish(s.runCommands())
}

// runCommands runs the set-up and the command and returns the exit, without LastSeq and the times.
func (s *supervisor) runCommands() runlog.Exit {
	if s.ready.NoDir != "" {
		return runlog.Exit{Cause: runlog.CauseStartFailed, Code: 127, Message: s.ready.NoDir}
	}
	if exit, failed := s.runSetup(); failed {
		return exit
	}
	return s.runCommand(runPart{
		command: proc.Command{Argv: s.spec.Argv}, stdin: s.spec.Stdin,
		stdout: runlog.StreamStdout, stderr: runlog.StreamStderr, outputFile: true,
		duration: s.spec.Duration, stall: s.spec.Stall,
	})
}

// finish writes the exit. It must be called after all processes of the run have ended.
func (s *supervisor) finish(exit runlog.Exit) error {
	seq, err := s.log.finish()
	if err != nil && exit.Message == "" {
		exit.Message = err.Error()
	}
	exit.DiskFull = errors.Is(err, unix.ENOSPC) || diskFull(s.dir) || s.spec.Home != "" && diskFull(s.spec.Home)
	exit.LastSeq = seq
	exit.StartedAt, exit.EndedAt = s.started.UTC(), s.now().UTC()
	if err := writeExit(s.dir, exit); err != nil {
		return fmt.Errorf("finish run %s: %w", s.spec.ID, err)
	}
	return nil
}

// runPart is one command of a run: a set-up command or the agent.
type runPart struct {
	command        proc.Command
	stdin          string // empty: end of file at once
	stdout, stderr runlog.Stream
	outputFile     bool // standard output is a file, so nothing is lost at exit
	duration       time.Duration
	stall          time.Duration // negative: not watched
}

// runCommand runs one command, with all its descendants, to its end.
func (s *supervisor) runCommand(part runPart) runlog.Exit {
	part.command.Env = environment(s.spec, s.user.root().RunDir(s.spec.ID))
	part.command.Dir = s.spec.Dir
	process, output, err := s.startRecorded(part)
	if err != nil {
		return runlog.Exit{Cause: runlog.CauseStartFailed, Code: 127, Message: err.Error()}
	}
	cause := s.watch(process, part)
	end := process.Wait()
	output.wait()
	exit := runlog.Exit{Cause: cause, Code: end.Code, Signal: end.Signal}
	switch {
	case end.Leftovers > 0:
		exit.Message = fmt.Sprintf("%d processes could not be ended.", end.Leftovers)
	case cause == runlog.CauseStopped:
		exit.Message = s.stopReason()
	}
	return exit
}

// stopReason returns the reason of the requested stop.
func (s *supervisor) stopReason() string {
	data, err := os.ReadFile(filepath.Join(s.dir, stopFile))
	if err != nil {
		return ""
	}
	return string(data)
}

// Package proc starts a command so that none of its processes can outlive it.
//
// Agents and their tools start processes in their own sessions and groups, which outlive both a normal exit and a kill
// of the process group. Where the kernel allows it, a command therefore runs in its own PID namespace, whose processes
// the kernel ends. Otherwise it runs below a subreaper, whose descendants are found in the process table. Where neither
// is available, only the command's process group is ended. [Isolation] names the kind in use.
//
// A program that uses this package calls [Init] from its hidden "ns-init" subcommand. A subreaper cannot distinguish
// the descendants of two commands, so a program must run one command at a time.
//
// Start here: [Start], or [RunAlone] for a short command.
package proc

import (
	"errors"
	"os"
	"time"
)

// InitCommand is the name of the hidden subcommand that a program must pass to Init.
const InitCommand = "ns-init"

// Isolation is the mechanism that keeps the processes of a command together.
type Isolation string

// The kinds of isolation, best first.
const (
	// PIDNamespace is a separate PID namespace with its own /proc. No process can leave it.
	PIDNamespace Isolation = "pidns"
	// Subreaper finds every descendant, including those with their own session. If the supervising program is killed,
	// remaining processes are only found by a mark in their environment.
	Subreaper Isolation = "subreaper"
	// Group ends only the process group.
	Group Isolation = "group"
)

// ErrNotStarted is wrapped by the error of Start if the command itself could not be started, as opposed to its
// isolation.
var ErrNotStarted = errors.New("command could not be started")

// MarkVariable is the environment variable that marks the processes of a run. Its value is the run's directory, which
// is unique on this host.
const MarkVariable = "ERRAND_RUN_DIR"

// Command describes a command. The command inherits the files; the caller closes its own copies. nil means /dev/null.
type Command struct {
	Argv   []string
	Env    []string
	Dir    string
	Stdin  *os.File
	Stdout *os.File
	Stderr *os.File
}

// Exit is the end of the command itself. Code is 128 plus the signal's number if Signal is set.
type Exit struct {
	Code   int
	Signal string
	// Leftovers is the number of processes that could not be ended, usually 0.
	Leftovers int `json:"Left"`
}

// killTimeout bounds the time until all processes have ended. Processes in disk sleep may exceed it.
const killTimeout = 20 * time.Second

// killRound is the interval between two reads of the process table while processes are being ended.
const killRound = 5 * time.Millisecond

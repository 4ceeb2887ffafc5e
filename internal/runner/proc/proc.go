// Package proc starts one command so that none of its processes can outlive it.
//
// Agents and their tools start processes in sessions and groups of their own, which outlive both a
// normal exit and a kill of the process group. So a command runs in a PID namespace of its own where
// the kernel allows one (its end is the kernel's work), and otherwise beneath a subreaper, whose
// descendants are found by walking the process table. Where neither exists, only the command's
// process group is ended, and Isolation says so.
//
// A program that uses this package calls Init from its hidden "ns-init" subcommand. A subreaper sees
// no difference between the descendants of two commands, so a program runs one command at a time.
package proc

import (
	"errors"
	"os"
	"time"
)

// InitCommand is the name of the hidden subcommand that a program must hand to Init.
const InitCommand = "ns-init"

// Isolation says what holds the processes of a command together.
type Isolation string

// The kinds of isolation, best first.
const (
	// PIDNamespace is a PID namespace of its own, with its own /proc. Nothing leaves it.
	PIDNamespace Isolation = "pidns"
	// Subreaper finds every descendant, also those with a session of their own. If the supervising
	// program is killed, what is left is found by a mark in its environment only.
	Subreaper Isolation = "subreaper"
	// Group ends the process group and nothing else.
	Group Isolation = "group"
)

// ErrNotStarted is wrapped by the error of Start when the command itself could not be started, as
// opposed to what surrounds it.
var ErrNotStarted = errors.New("command could not be started")

// MarkVariable is the environment variable that marks the processes of a run. Its value is the run's
// directory, which no other run on this host has.
const MarkVariable = "ERRAND_RUN_DIR"

// Command is what to start. The files are inherited by the command as they are and stay the
// caller's to close; nil means /dev/null.
type Command struct {
	Argv   []string
	Env    []string
	Dir    string
	Stdin  *os.File
	Stdout *os.File
	Stderr *os.File
}

// Exit is how the command itself ended. Code is 128 plus the signal's number when Signal is set.
type Exit struct {
	Code   int
	Signal string
	// Left is the number of processes that could not be ended, 0 in all ordinary cases.
	Left int
}

// killTimeout bounds how long the end of all processes may take, such as those in disk sleep.
const killTimeout = 20 * time.Second

// killRound is the pause between two looks at the process table while processes are being ended.
const killRound = 5 * time.Millisecond

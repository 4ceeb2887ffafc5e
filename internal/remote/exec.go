package remote

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"
)

const (
	defaultMaxOutput = 1 << 20
	stderrTail       = 64 << 10
)

// Cmd is a command for the VM.
type Cmd struct {
	// Argv is executed without interpretation by a shell. Argv[0] is looked up in the VM's PATH.
	Argv []string
	// Env is added to the environment of the login.
	Env map[string]string
	// Dir is the working directory; empty means the login's home.
	Dir string
	// Stdin is read to its end or until the command ends; nil means empty. A reader that blocks forever leaks one
	// goroutine.
	Stdin io.Reader
	// MaxOutput bounds standard output in bytes for Run. Default 1 MiB.
	MaxOutput int
}

// Result is the outcome of a command.
type Result struct {
	Stdout []byte
	// Stderr is the last 64 KiB of standard error.
	Stderr []byte
	// Code is the exit status, or 128 + n if signal n ended the command.
	Code int
	// Signal is the name of the signal that ended the command, such as "KILL".
	Signal string
}

// ExitError means that a command exited with a status other than 0.
type ExitError struct {
	Command string
	Code    int
	Stderr  string
}

func (e *ExitError) Error() string {
	if e.Stderr == "" {
		return fmt.Sprintf("%s: exit status %d", e.Command, e.Code)
	}
	return fmt.Sprintf("%s: exit status %d: %s", e.Command, e.Code, e.Stderr)
}

// Check returns nil if the command exited with 0, else an *ExitError with the last 2000 bytes of standard error. what
// names the command for people.
func (r Result) Check(what string) error {
	if r.Code == 0 {
		return nil
	}
	tail := bytes.TrimSpace(r.Stderr)
	if len(tail) > 2000 {
		tail = tail[len(tail)-2000:]
	}
	return &ExitError{Command: what, Code: r.Code, Stderr: string(tail)}
}

// Run runs a command to its end. A status other than 0 is not an error; see Result.Check. The error matches
// ErrConnectionLost if the outcome of the command is unknown, or ErrTooMuchOutput (with the beginning of the output in
// Result), or is that of ctx. When ctx ends, the command gets SIGTERM and its channel is closed.
func (c *Client) Run(ctx context.Context, cmd Cmd) (Result, error) {
	limit := cmd.MaxOutput
	if limit <= 0 {
		limit = defaultMaxOutput
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stdout := &headBuffer{limit: limit, full: func() { cancel(ErrTooMuchOutput) }}
	p, err := c.start(ctx, cmd, stdout, closeStdin)
	if err != nil {
		return Result{}, err
	}
	res, err := p.wait()
	res.Stdout = stdout.bytes()
	if stdout.isFull() {
		err = ErrTooMuchOutput
	}
	if err != nil {
		return res, fmt.Errorf("run %s: %w", cmd.Argv[0], err)
	}
	return res, nil
}

// Stream starts a command and returns its standard output as it arrives, without limit. The caller must call wait once
// the output has been read or closed; wait returns when the command has ended. Closing the output ends the command.
// When ctx ends, reading fails and the command gets SIGTERM.
func (c *Client) Stream(ctx context.Context, cmd Cmd) (stdout io.ReadCloser, wait func() (Result, error), err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	p, err := c.start(ctx, cmd, nil, closeStdin)
	if err != nil {
		cancel(nil)
		return nil, nil, err
	}
	wait = sync.OnceValues(func() (Result, error) {
		defer cancel(nil)
		res, err := p.wait()
		if err != nil {
			return res, fmt.Errorf("run %s: %w", cmd.Argv[0], err)
		}
		return res, nil
	})
	return &stream{process: p, cancel: func() { cancel(io.ErrClosedPipe) }}, wait, nil
}

// Attach starts a command and returns its standard input and output as one byte stream. Close ends the command. When
// ctx ends, reads and writes fail. Standard error is discarded, except that a Read after a failure of the command
// returns it in its error.
func (c *Client) Attach(ctx context.Context, cmd Cmd) (io.ReadWriteCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	p, err := c.start(ctx, cmd, nil, keepStdin)
	if err != nil {
		cancel(nil)
		return nil, err
	}
	s := &stream{process: p, cancel: func() { cancel(io.ErrClosedPipe) }}
	go func() { // ends with the command
		_, _ = p.wait()
		cancel(io.ErrClosedPipe)
	}()
	return s, nil
}

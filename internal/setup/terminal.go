package setup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// terminal asks people.
type terminal struct {
	in          *bufio.Reader
	out         io.Writer
	fd          int
	interactive bool // somebody can answer
}

func newTerminal(env Env) *terminal {
	t := &terminal{in: bufio.NewReader(env.In), out: env.Out, fd: -1, interactive: env.Interactive}
	if f, ok := env.In.(*os.File); ok {
		t.fd = int(f.Fd())
	}
	return t
}

// IsTerminal reports whether a person can answer at in.
func IsTerminal(in io.Reader) bool {
	f, ok := in.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// noAnswer is typed for an empty answer where there is a default.
const noAnswer = "-"

// ask prints a question and returns the line that is typed, or the default for an empty one. Secrets are not echoed.
func (t *terminal) ask(ctx context.Context, q Question, fallback string) (string, error) {
	hint := ""
	switch {
	case q.Secret:
		hint = " (not shown)"
	case fallback != "" && q.Optional:
		hint = fmt.Sprintf(" [%s; %s for none]", fallback, noAnswer)
	case fallback != "":
		hint = fmt.Sprintf(" [%s]", fallback)
	}
	_, _ = fmt.Fprintf(t.out, "%s%s: ", q.Text, hint)
	line, err := t.line(ctx, q.Secret)
	switch {
	case err != nil:
		return "", err
	case strings.HasPrefix(line, "-----BEGIN"):
		return "", errors.Join(errPasted, t.discard())
	case line == "":
		return fallback, nil
	case line == noAnswer && q.Optional:
		return "", nil
	}
	return line, nil
}

// errPasted refuses the first line of a key. The other lines must reach neither the next questions nor the shell.
var errPasted = errors.New("a key of several lines cannot be entered here, and all of it was discarded: store it in a file, and write file:/path")

const (
	quiet    = 200 // milliseconds without input after which nothing more of a paste is expected
	maxReads = 1000
)

// discard reads what was typed already, and what follows without a pause, without showing it.
func (t *terminal) discard() error {
	if _, err := t.in.Discard(t.in.Buffered()); err != nil || !term.IsTerminal(t.fd) {
		return err
	}
	state, err := term.MakeRaw(t.fd) // incomplete lines can be read, too
	if err != nil {
		return fmt.Errorf("discard the input: %w", err)
	}
	var buf [4096]byte
	for range maxReads {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(t.fd), Events: unix.POLLIN}}, quiet)
		if err == nil && n > 0 {
			n, err = unix.Read(t.fd, buf[:])
		}
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return errors.Join(err, term.Restore(t.fd, state))
		}
	}
	return errors.Join(errors.New("the input does not end"), term.Restore(t.fd, state))
}

// DiscardTyped discards what was typed at in before now: what buffered, which reads from in, holds, and what a terminal holds.
func DiscardTyped(in io.Reader, buffered *bufio.Reader) error {
	t := &terminal{in: buffered, fd: -1}
	if f, ok := in.(*os.File); ok {
		t.fd = int(f.Fd())
	}
	return t.discard()
}

// line reads a line. After ctx has ended, the read continues in the background until the program ends.
func (t *terminal) line(ctx context.Context, secret bool) (string, error) {
	type result struct {
		text string
		err  error
	}
	got := make(chan result, 1)
	state, stateErr := term.GetState(t.fd)
	go func() {
		var r result
		if secret && stateErr == nil {
			var raw []byte
			raw, r.err = term.ReadPassword(t.fd)
			r.text = string(raw)
			_, _ = fmt.Fprintln(t.out)
		} else {
			r.text, r.err = t.in.ReadString('\n')
		}
		got <- r
	}()
	select {
	case r := <-got:
		if errors.Is(r.err, io.EOF) && r.text == "" {
			return "", errors.New("the input has ended; run errand setup in a terminal, or give answers with --answers")
		}
		if r.err != nil && !errors.Is(r.err, io.EOF) {
			return "", fmt.Errorf("read from the terminal: %w", r.err)
		}
		return strings.TrimSpace(r.text), nil
	case <-ctx.Done():
		if stateErr == nil {
			_ = term.Restore(t.fd, state) // the echo is off while a secret is typed
		}
		return "", ctx.Err()
	}
}

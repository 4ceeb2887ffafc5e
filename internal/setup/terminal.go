package setup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/errand-bot/errand/internal/cli"
)

// terminal asks people.
type terminal struct {
	from        io.Reader
	in          *bufio.Reader
	out         io.Writer
	fd          int
	interactive bool // somebody can answer
}

func newTerminal(env Env) *terminal {
	t := &terminal{from: env.In, in: bufio.NewReader(env.In), out: env.Out, fd: -1, interactive: env.Interactive}
	if f, ok := env.In.(*os.File); ok {
		t.fd = int(f.Fd())
	}
	return t
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
		return "", errors.Join(errPasted, cli.DiscardTyped(t.from, t.in))
	case line == "":
		return fallback, nil
	case line == noAnswer && q.Optional:
		return "", nil
	}
	return line, nil
}

// errPasted refuses the first line of a key. The other lines must reach neither the next questions nor the shell.
var errPasted = errors.New("a key of several lines cannot be entered here, and all of it was discarded: store it in a file, and write file:/path")

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

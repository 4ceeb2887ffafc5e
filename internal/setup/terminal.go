package setup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/term"

	"github.com/errand-bot/errand/internal/cli"
)

// terminal is a front for people at a terminal. If there are none, it asks nothing.
type terminal struct {
	from   io.Reader
	in     *bufio.Reader
	out    io.Writer
	fd     int
	person bool // somebody can answer
}

func newTerminal(env Env) *terminal {
	t := &terminal{from: env.In, in: bufio.NewReader(env.In), out: env.Out, fd: -1, person: env.Interactive}
	if f, ok := env.In.(*os.File); ok {
		t.fd = int(f.Fd())
	}
	return t
}

func (t *terminal) open(_ context.Context, r *run) (func() error, error) {
	if t.person {
		t.say("Enter accepts the value in brackets. Ctrl-C loses nothing: the same command continues where it was. --skip NAME leaves a step out.\n")
	}
	if t.person && !r.loaded {
		t.say("To answer on a page in a browser instead, press Ctrl-C and run errand setup --web.\n")
	}
	return func() error { return nil }, nil
}

func (t *terminal) interactive() bool { return t.person }

func (t *terminal) say(text string) { _, _ = io.WriteString(t.out, text) }

// begin prints the title of a step. In a terminal a step is left only after it has failed.
func (t *terminal) begin(ctx context.Context, n int, s step, _ []decision) (context.Context, context.CancelFunc) {
	t.say(header(n, s))
	return ctx, func() {}
}

// header is the line before the output of a step.
func header(n int, s step) string {
	return fmt.Sprintf("\n[%d/%d] %s (%s)\n", n+1, len(steps()), s.title, s.name)
}

func (t *terminal) end(outcome) {}

// failed asks how to continue.
func (t *terminal) failed(ctx context.Context, err error, ways []decision) decision {
	if !t.person || errors.Is(err, errNoInput) {
		return stop
	}
	names := ""
	for _, w := range ways {
		names += string(w) + ", "
	}
	t.say(fmt.Sprintf("\n%v\n", err))
	for range maxTries {
		t.say(fmt.Sprintf("How to continue (%s or %s) [%s]: ", strings.TrimSuffix(names, ", "), string(stop), string(stop)))
		line, err := t.line(ctx, false)
		how := decision(line)
		switch {
		case err != nil, how == "", how == stop:
			return stop
		case slices.Contains(ways, how):
			return how
		}
	}
	return stop
}

func (t *terminal) finished(_ context.Context, _, text string, _ []decision) decision {
	t.say(text)
	return stop
}

// page starts a page for the creation of an App.
func (t *terminal) page(ctx context.Context, r *run) (*site, func() error, error) {
	s, err := newSite(true)
	if err != nil {
		return nil, nil, err
	}
	if err := s.start(ctx, r); err != nil {
		return nil, nil, err
	}
	return s, func() error { return s.shutDown(ctx) }, nil
}

func (t *terminal) again() string {
	if t.person {
		return "try it again"
	}
	return "run errand setup again"
}

func (t *terminal) skip(name string) string {
	if t.person {
		return "skip this step"
	}
	return "continue with --skip " + name
}

func (t *terminal) repeat(command string, _ bool) string { return "run `" + command + "`" }

// maxTries is how often a question is repeated after invalid answers.
const maxTries = 5

// ask asks one question after the other.
func (t *terminal) ask(ctx context.Context, r *run, list []Question) error {
	for _, q := range list {
		if !q.applies(r) {
			continue
		}
		isOpen, err := r.isOpen(q)
		switch {
		case err != nil:
			return err
		case isOpen && t.person:
			if err := t.askOne(ctx, r, q); err != nil {
				return err
			}
		case !isOpen:
			r.sayKept(q)
		}
	}
	return nil
}

// askOne asks a question until the answer is valid. An earlier answer is the default.
func (t *terminal) askOne(ctx context.Context, r *run, q Question) error {
	fallback := r.answer(q.Key)
	if q.masked() {
		fallback = ""
	}
	for range maxTries {
		value, err := t.prompt(ctx, q, fallback)
		if errors.Is(err, errPasted) {
			r.say("%v\n", err)
			continue
		}
		if err != nil {
			return err
		}
		if err := q.validate(r, value); err != nil {
			r.say("%v\n", err)
			continue
		}
		return r.remember(q, value)
	}
	return fmt.Errorf("%s: no valid answer after %d attempts", q.Key, maxTries)
}

// noAnswer is typed for an empty answer where there is a default.
const noAnswer = "-"

// prompt prints a question and returns the line that is typed, or the default for an empty one. Secrets are not echoed.
func (t *terminal) prompt(ctx context.Context, q Question, fallback string) (string, error) {
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

var errNoInput = errors.New("the input has ended; run errand setup in a terminal or with --web, or give answers with --answers")

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
			return "", errNoInput
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

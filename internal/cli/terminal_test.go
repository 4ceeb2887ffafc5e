package cli_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/errand-bot/errand/internal/cli"
)

// TestConfirm: only yes is a yes, the question goes to where a person sees it, and nothing is asked where nobody can answer.
func TestConfirm(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]bool{
		"y\n": true, "YES\r\n": true, " yes ": true, "": false, "\n": false, "n\n": false, "yess\n": false, "no\ny\n": false, strings.Repeat("y", 1<<20) + "\n": false,
	} {
		for _, isScreen := range []bool{true, false} {
			var out, errs bytes.Buffer
			got, err := cli.NewAsker(cli.World{In: strings.NewReader(answer), Terminal: true, Screen: isScreen, Out: &out, Err: &errs}).Confirm(t.Context(), "Open it?")
			shown, other := out.String(), errs.String()
			if !isScreen {
				shown, other = other, shown
			}
			if err != nil || got != want || shown != "Open it? [y/N] " || other != "" {
				t.Errorf("%.20q, screen %v: got %v, %v: %q and %q", answer, isScreen, got, err, shown, other)
			}
		}
	}
	for name, c := range map[string]struct {
		w    cli.World
		want string
	}{
		"no terminal":  {cli.World{In: strings.NewReader("y\n")}, "repeat the command with --yes"},
		"broken input": {cli.World{In: iotest.ErrReader(errors.New("gone")), Terminal: true}, "read the answer: gone"},
	} {
		c.w.Out, c.w.Err = io.Discard, io.Discard
		if ok, err := cli.NewAsker(c.w).Confirm(t.Context(), "Open it?"); ok || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, %v", name, ok, err)
		}
	}
}

// TestConfirmAsksSeveralTimes: each question has its own answer, and what was typed before a question does not answer it.
func TestConfirmAsksSeveralTimes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   io.Reader
		want []bool
	}{
		"one line at a time": {iotest.OneByteReader(strings.NewReader("y\nn\ny\n")), []bool{true, false, true}},
		"all at once":        {strings.NewReader("y\ny\ny\n"), []bool{true, false, false}},
	} {
		asker := cli.NewAsker(cli.World{In: c.in, Terminal: true, Out: io.Discard, Err: io.Discard})
		for i, want := range c.want {
			if got, err := asker.Confirm(t.Context(), "Open it?"); err != nil || got != want {
				t.Errorf("%s: answer %d is %v, %v", name, i, got, err)
			}
		}
	}
}

// TestConfirmEndsWithItsContext: Ctrl-C ends the question, although nobody answers.
func TestConfirmEndsWithItsContext(t *testing.T) {
	t.Parallel()
	in, keyboard := io.Pipe()
	defer func() { _ = keyboard.Close() }()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if ok, err := cli.NewAsker(cli.World{In: in, Terminal: true, Out: io.Discard, Err: io.Discard}).Confirm(ctx, "Open it?"); ok || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", ok, err)
	}
}

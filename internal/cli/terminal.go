package cli

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

// IsTerminal reports whether a file, as a reader or a writer, is a terminal.
func IsTerminal(file any) bool {
	f, ok := file.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// TerminalSize returns a function that returns the size of the terminal that out is, or nil if it is none.
func TerminalSize(out io.Writer) func() (columns, rows int) {
	f, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return func() (int, int) {
		columns, rows, err := term.GetSize(int(f.Fd()))
		if err != nil || columns < 1 || rows < 2 {
			return 80, 24
		}
		return columns, rows
	}
}

const (
	quiet    = 200 // milliseconds without input after which nothing more of a paste is expected
	maxReads = 1000
)

// DiscardTyped discards input that was typed before this call, without showing it: the data in buffered, which reads from in, the data that
// the terminal holds, and data that follows without a pause.
func DiscardTyped(in io.Reader, buffered *bufio.Reader) error {
	if _, err := buffered.Discard(buffered.Buffered()); err != nil || !IsTerminal(in) {
		return err
	}
	fd := int(in.(*os.File).Fd())
	state, err := term.MakeRaw(fd) // incomplete lines can be read, too
	if err != nil {
		return fmt.Errorf("discard the input: %w", err)
	}
	var buf [4096]byte
	for range maxReads {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, quiet)
		if err == nil && n > 0 {
			n, err = unix.Read(fd, buf[:])
		}
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return errors.Join(err, term.Restore(fd, state))
		}
	}
	return errors.Join(errors.New("the input does not end"), term.Restore(fd, state))
}

// An Asker asks the person at the program's terminal.
type Asker struct {
	w  World
	in *bufio.Reader
}

// NewAsker returns an Asker. All questions of a command need the same one.
func NewAsker(w World) *Asker { return &Asker{w, bufio.NewReader(w.In)} }

// Confirm asks a question to which only y and yes are a yes; the end of the input is a no, and so is what was typed before the question.
// Without a terminal it returns an error of usage.
func (a *Asker) Confirm(ctx context.Context, question string) (bool, error) {
	if !a.w.Terminal {
		return false, Usage(errors.New("nobody can confirm this here: repeat the command with --yes"))
	}
	if err := DiscardTyped(a.w.In, a.in); err != nil {
		return false, err
	}
	out := a.w.Out
	if !a.w.Screen {
		out = a.w.Err // the output goes to a file or a program
	}
	if _, err := fmt.Fprintf(out, "%s [y/N] ", question); err != nil {
		return false, err
	}
	type answer struct {
		text string
		err  error
	}
	got := make(chan answer, 1)
	go func() { // after ctx has ended, the read goes on until the program ends
		text, err := a.in.ReadString('\n')
		got <- answer{text, err}
	}()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case r := <-got:
		if r.err != nil && !errors.Is(r.err, io.EOF) {
			return false, fmt.Errorf("read the answer: %w", r.err)
		}
		text := strings.ToLower(strings.TrimSpace(r.text))
		return text == "y" || text == "yes", nil
	}
}

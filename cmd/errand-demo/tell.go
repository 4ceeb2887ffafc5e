package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// teller prints a line per step with its time, and a live line while one takes long.
type teller struct {
	out   io.Writer
	begun time.Time
	live  bool // the last line will be overwritten
	tty   bool
}

func newTeller(out io.Writer) *teller {
	t := &teller{out: out, begun: time.Now()}
	if f, ok := out.(*os.File); ok {
		info, err := f.Stat()
		t.tty = err == nil && info.Mode()&os.ModeCharDevice != 0
	}
	return t
}

// Say prints a step.
func (t *teller) Say(format string, args ...any) {
	t.end()
	_, _ = fmt.Fprintf(t.out, "%6.1f s  %s\n", time.Since(t.begun).Seconds(), fmt.Sprintf(format, args...))
}

// Wait shows the current wait: one line that is overwritten on a terminal, otherwise a line every ten seconds.
func (t *teller) Wait(subject string, since time.Duration) {
	if t.tty {
		_, _ = fmt.Fprintf(t.out, "\r\x1b[K%6.1f s  … waiting for %s (%.0f s)", time.Since(t.begun).Seconds(), subject, since.Seconds())
		t.live = true
		return
	}
	if int(since.Seconds())%10 == 0 {
		_, _ = fmt.Fprintf(t.out, "%6.1f s  … waiting for %s (%.0f s)\n", time.Since(t.begun).Seconds(), subject, since.Seconds())
	}
}

// end removes the live line.
func (t *teller) end() {
	if t.live {
		_, _ = fmt.Fprint(t.out, "\r\x1b[K")
		t.live = false
	}
}

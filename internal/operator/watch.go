package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/clock"
	"github.com/errand-bot/errand/internal/config"
	"github.com/errand-bot/errand/internal/logview"
	"github.com/errand-bot/errand/internal/selfclient"
)

// watcher repeats the report of status. On a terminal each report replaces the previous one; elsewhere a report is printed only if
// something has changed.
type watcher struct {
	out   io.Writer
	size  func() (columns, rows int) // of the terminal; nil if it is none
	every time.Duration
	drawn bool   // on the terminal
	seen  string // the latest report without its times
	shown string // the latest report
	lost  bool   // the latest request failed
}

// watch repeats the report until ctx ends. The first request has to succeed; after that, errand may be down for a while.
func (v *watcher) watch(ctx context.Context, cfg config.Config) error {
	for first := true; ; first = false {
		b, err := readBoard(ctx, cfg)
		switch {
		case ctx.Err() != nil:
			return nil // Ctrl-C
		case err != nil && (first || errors.Is(err, selfclient.ErrWrongToken)):
			return err
		case err != nil:
			err = v.unreachable(err, time.Now())
		default:
			err = v.report(b)
		}
		if err != nil {
			return err
		}
		if clock.Sleep(ctx, v.every) != nil {
			return nil // Ctrl-C
		}
	}
}

// readBoard returns the board of the running errand.
func readBoard(ctx context.Context, cfg config.Config) (b board, err error) {
	body, err := selfclient.GetJSON(ctx, cfg, boardPath, boardFields...)
	if err != nil {
		return b, err
	}
	if err := json.Unmarshal(body, &b); err != nil {
		return b, fmt.Errorf("read errand's answer: %w", err)
	}
	return b, nil
}

// report shows the board.
func (v *watcher) report(b board) error {
	lost := v.lost
	v.lost = false
	if v.size != nil {
		columns, _ := v.size()
		v.shown = b.text(columns)
		return v.draw(v.shown)
	}
	v.shown = b.text(0)
	b.At = time.Time{} // spans and the time are not a change
	seen := b.text(0)
	if seen == v.seen && !lost {
		return nil
	}
	separator := ""
	if v.seen != "" {
		separator = "\n"
	}
	v.seen = seen
	_, err := io.WriteString(v.out, separator+v.shown)
	return err
}

// unreachable says that errand does not answer: below the latest report on a terminal, otherwise once.
func (v *watcher) unreachable(err error, now time.Time) error {
	reason, _, _ := strings.Cut(err.Error(), "\n")
	text := fmt.Sprintf("\n%s: %s\nTrying again every %s until Ctrl-C.\n", now.UTC().Format("15:04:05 MST"), logview.OneLine(reason), v.every)
	lost := v.lost
	v.lost = true
	switch {
	case v.size != nil:
		return v.draw(strings.TrimPrefix(text, "\n") + "\n" + v.shown)
	case lost:
		return nil
	}
	_, err = io.WriteString(v.out, text)
	return err
}

// Control sequences of terminals.
const (
	clearScreen = "\x1b[2J"
	cursorHome  = "\x1b[H"
	clearLine   = "\x1b[K" // from the cursor on
	clearRest   = "\x1b[J"
	wrapOff     = "\x1b[?7l"
	wrapOn      = "\x1b[?7h"
)

// draw writes a text over the previous one, so that nothing flickers. Lines that are too long for the terminal are cut, and so is the end
// of a text that is too high.
func (v *watcher) draw(text string) error {
	columns, rows := v.size()
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if most := rows - 1; len(lines) > most { // the last line is for the cursor
		more := fmt.Sprintf("… and %d more lines; `errand tasks` lists all tasks", len(lines)-most+1)
		lines = append(lines[:most-1:most-1], more)
	}
	var s strings.Builder
	if !v.drawn {
		s.WriteString(clearScreen)
		v.drawn = true
	}
	s.WriteString(cursorHome + wrapOff) // some characters are wider than others
	for _, line := range lines {
		if r := []rune(line); len(r) > columns {
			line = string(r[:columns-1]) + "…"
		}
		s.WriteString(line + clearLine + "\n")
	}
	s.WriteString(clearRest + wrapOn)
	_, err := io.WriteString(v.out, s.String())
	return err
}

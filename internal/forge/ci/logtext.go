package ci

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/errand-bot/errand/internal/forge/green"
)

// span is the time of a step in whole seconds, as GitHub names it: a line of the last second may belong to the next step. Zero times are
// unknown.
type span struct{ from, to time.Time }

func (s span) isBefore(at time.Time) bool { return !s.to.IsZero() && !at.Before(s.to.Add(time.Second)) }
func (s span) isAfter(at time.Time) bool  { return at.Before(s.from) }

// Limits of lines, in bytes. More of a step is kept than is returned because lines of the next step may have to be removed.
const (
	maxLine  = 1 << 10
	readLine = 4 * maxLine // before escape sequences are removed
	keepStep = 8 * green.MaxLog
)

// logLine is a line without its timestamp.
type logLine struct {
	text string
	at   time.Time // that of an earlier line if it has none
}

// lines are the last lines that were added, up to a limit in bytes.
type lines struct {
	list  []logLine
	size  int
	limit int
	cut   bool // lines were left out
}

func (l *lines) add(n logLine) {
	l.list, l.size = append(l.list, n), l.size+len(n.text)+1
	for l.size > l.limit && len(l.list) > 1 {
		l.size -= len(l.list[0].text) + 1
		l.list, l.cut = l.list[1:], true
	}
}

// logEnd keeps the end of a log and that of a step in it.
type logEnd struct {
	during    span
	all, step lines
	complete  bool // the step has ended, so the rest need not be read
}

func newLogEnd(during span) *logEnd {
	return &logEnd{during: during, all: lines{limit: green.MaxLog}, step: lines{limit: keepStep}}
}

// readFrom reads a log until its end or that of the step.
func (e *logEnd) readFrom(r *bufio.Reader) error {
	var at time.Time
	for !e.complete {
		raw, err := nextLine(r)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(raw) > 0 {
			var text []byte
			text, at = splitTime(raw, at)
			e.add(logLine{clean(text), at})
		}
		if err != nil {
			return nil
		}
	}
	return nil
}

func (e *logEnd) add(l logLine) {
	e.all.add(l)
	switch {
	case e.during.from.IsZero() || l.at.IsZero() || e.during.isAfter(l.at):
	case e.during.isBefore(l.at):
		e.complete = len(e.step.list) > 0
	default:
		e.step.add(l)
	}
}

// nextLine returns the next line with its end, of a long one only the beginning. At the end the error is io.EOF.
func nextLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part[:min(len(part), readLine-len(line))]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// splitTime removes the timestamp that GitHub Actions puts before each line. Without one the time is that of the line before.
func splitTime(line []byte, before time.Time) ([]byte, time.Time) {
	line = bytes.TrimPrefix(line, []byte("\ufeff"))
	stamp, rest, _ := bytes.Cut(line, []byte(" "))
	if len(stamp) < len("2026-01-02T03:04:05Z") || stamp[4] != '-' {
		return line, before
	}
	at, err := time.Parse(time.RFC3339Nano, string(bytes.TrimSpace(stamp)))
	if err != nil {
		return line, before
	}
	return rest, at
}

// text returns the end of the step, or of the log if the step's lines cannot be told, and whether something before it was left out.
func (e *logEnd) text() (string, bool) {
	kept := e.all
	if len(e.step.list) > 0 {
		kept = e.step
		kept.list = cutEarlier(cutNext(kept.list, e.during), e.during)
	}
	end := lines{limit: green.MaxLog, cut: kept.cut}
	for _, l := range kept.list {
		end.add(l)
	}
	out := make([]string, 0, len(end.list))
	for _, l := range end.list {
		out = append(out, l.text)
	}
	return strings.Trim(strings.Join(out, "\n"), "\n"), end.cut
}

// beginsStep reports whether the runner writes such a line first for a step.
func beginsStep(l logLine) bool { return strings.HasPrefix(l.text, "##[group]Run ") }

// beginsCleanUp reports whether the runner writes such a line first for the clean-up of an earlier step.
func beginsCleanUp(l logLine) bool { return strings.HasPrefix(l.text, "Post job cleanup.") }

// cutNext removes the lines of the next step, which may have begun within the last second.
func cutNext(list []logLine, during span) []logLine {
	failed := false
	for i, l := range list {
		failed = failed || strings.HasPrefix(l.text, "##[error]")
		if failed && (beginsStep(l) || beginsCleanUp(l)) && !during.to.IsZero() && !l.at.Before(during.to) {
			return list[:i]
		}
	}
	return list
}

// cutEarlier removes the lines of the step before, which may have ended within the first second.
func cutEarlier(list []logLine, during span) []logLine {
	i := slices.IndexFunc(list, beginsStep)
	if i > 0 && list[i].at.Before(during.from.Add(time.Second)) {
		return list[i:]
	}
	return list
}

// escapes are the escape sequences of terminals: for colors and the cursor, for titles and links, and the short ones.
var escapes = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x1b[ -/]*[0-Z\\-~]`)

// clean returns a line as a terminal shows it at its end: without escape sequences, control characters, and parts that were overwritten.
func clean(line []byte) string {
	s := strings.TrimRight(string(line), "\r\n")
	return cutText(strings.TrimRight(visible(s[strings.LastIndexByte(s, '\r')+1:]), " \t"), maxLine)
}

// text returns at most limit bytes of a text by others, as valid UTF-8 without escape sequences and control characters.
func text(s string, limit int) string { return cutText(strings.TrimSpace(visible(s)), limit) }

// visible returns a text as valid UTF-8 without escape sequences and control characters.
func visible(s string) string {
	s = escapes.ReplaceAllString(strings.ToValidUTF8(s, "\ufffd"), "")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' && r != '\n' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, s)
}

// cutText returns at most limit bytes of a text, with an ellipsis if it is longer.
func cutText(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := limit - len("…")
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}

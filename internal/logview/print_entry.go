package logview

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"

	"github.com/errand-bot/errand/internal/runlog"
)

// printEntry prints an entry's events, or the line itself if the adapter derived none.
func (v *view) printEntry(f *file, e runlog.Entry) error {
	if e.End != nil {
		return v.printEnd(f, *e.End)
	}
	if len(e.Events) == 0 && e.Line != nil {
		e.Events = []runlog.Event{{Seq: e.Line.Seq, Time: e.Line.Time, Kind: runlog.Kind(e.Line.Stream), Text: e.Line.Text}}
	}
	for _, ev := range e.Events {
		if levelOf(ev) < v.q.Level || ev.Time.Before(v.q.Since) {
			continue
		}
		if err := v.printEvent(f, ev); err != nil {
			return err
		}
	}
	return nil
}

// printEnd prints the outcome of the run.
func (v *view) printEnd(f *file, e runlog.End) error {
	if endLevel(e) < v.q.Level || !e.Ended.IsZero() && e.Ended.Before(v.q.Since) {
		return nil
	}
	if !v.q.Events {
		words := e.Words()
		if e.ProgramError != "" {
			words += "\nthe agent's program reported: " + e.ProgramError
		}
		if e.RunnerNote != "" {
			words += "\nthe runner reported: " + e.RunnerNote
		}
		return v.print(e.Ended, f.seq, "ended: %s", words)
	}
	data, err := json.Marshal(struct {
		Run  string     `json:"run"`
		Kind string     `json:"kind"`
		End  runlog.End `json:"end"`
	}{f.head.Run, "end", e})
	if err != nil {
		return fmt.Errorf("print an end: %w", err)
	}
	_, err = fmt.Fprintf(v.out, "%s\n", PlainJSON(data))
	return err
}

// endLevel returns the level of an outcome.
func endLevel(e runlog.End) Level {
	switch e.Class {
	case runlog.ClassSuccess:
		return Info
	case runlog.ClassRetryable:
		return Warn
	}
	return Error
}

func (v *view) printEvent(f *file, ev runlog.Event) error {
	if v.q.Events {
		data, err := json.Marshal(struct {
			Run string `json:"run"`
			runlog.Event
		}{f.head.Run, ev})
		if err != nil {
			return fmt.Errorf("print an event: %w", err)
		}
		_, err = fmt.Fprintf(v.out, "%s\n", PlainJSON(data))
		return err
	}
	text := ev.Text
	switch ev.Kind {
	case runlog.KindToolUse:
		text = ev.ToolName + " " + runlog.InputWords(ev.Input)
	case runlog.KindUsage:
		if u := ev.Usage; u != nil {
			text = fmt.Sprintf("%d tokens in, %d out, %d from caches", u.Input+u.CacheWrite, u.Output, u.CacheRead)
		}
	case runlog.KindText:
		f.lastText = text
	case runlog.KindResult:
		if text != "" && text == f.lastText { // programs repeat the agent's last text as the result
			text = "as above"
		}
	case runlog.KindStarted:
		text = strings.TrimSpace("session " + ev.Session + " " + ev.Model)
	}
	if ev.IsError {
		text = "failed: " + text
	}
	return v.print(ev.Time, f.seq, "%s: %s", strings.ReplaceAll(string(ev.Kind), "_", " "), text)
}

// levelOf returns the level of an event.
func levelOf(e runlog.Event) Level {
	switch e.Kind {
	case runlog.KindThinking, runlog.KindUsage, runlog.Kind(runlog.StreamStdout):
		return Debug
	case runlog.KindToolResult:
		if e.IsError {
			return Warn
		}
		return Debug
	case runlog.KindResult:
		if e.IsError {
			return Error
		}
		return Info
	case runlog.KindRetry, runlog.Kind(runlog.StreamStderr), runlog.Kind(runlog.StreamRunner):
		return Warn
	}
	return Info
}

// print writes one entry and indents the further lines of its text.
func (v *view) print(at time.Time, run int, format string, args ...any) error {
	text := Plain(runlog.Cut(strings.TrimSpace(fmt.Sprintf(format, args...)), runlog.ShownLength))
	stamp := "                   "
	if !at.IsZero() {
		stamp = at.UTC().Format("2006-01-02 15:04:05")
	}
	_, err := fmt.Fprintf(v.out, "%s  run %d  %s\n", stamp, run, strings.ReplaceAll(text, "\n", "\n    "))
	return err
}

// Plain removes control characters, which a terminal would interpret, and those that change the direction of the text after them.
func Plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || !isControl(r) && !unicode.Is(unicode.Bidi_Control, r) {
			return r
		}
		return -1
	}, s)
}

// OneLine returns a text without control characters and line breaks.
func OneLine(text string) string { return strings.Join(strings.Fields(Plain(text)), " ") }

// isControl reports whether a character is a control character: in C0, in C1, or DEL.
func isControl(r rune) bool { return r < ' ' || r >= 0x7f && r <= 0x9f }

// PlainJSON escapes the characters in strings that Plain removes, as far as JSON's encoder leaves them as they are: the value is the same,
// but a terminal interprets none of them.
func PlainJSON(data []byte) []byte {
	if !bytes.ContainsFunc(data, isEscapedInJSON) {
		return data
	}
	var b bytes.Buffer
	for _, r := range string(data) {
		if isEscapedInJSON(r) {
			fmt.Fprintf(&b, "\\u%04x", r)
			continue
		}
		b.WriteRune(r)
	}
	return b.Bytes()
}

// isEscapedInJSON reports whether PlainJSON escapes a character. All of these occur in strings only, and all have four digits.
func isEscapedInJSON(r rune) bool {
	return r >= 0x7f && r <= 0x9f || unicode.Is(unicode.Bidi_Control, r)
}

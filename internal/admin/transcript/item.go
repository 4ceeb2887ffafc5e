package transcript

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/words"
)

// An Item is one entry of a run's log, on the page and in the live log.
type Item struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"` // CSS class
	What string    `json:"what"` // label
	Text string    `json:"text,omitempty"`
	More int       `json:"more,omitempty"` // number of omitted characters
	From int64     `json:"from"`           // offset of the full record
}

// Items returns the visible entries of a record, none for records without relevant content.
func (r Record) Items() ([]Item, *runlog.End) {
	if r.data == nil {
		return []Item{r.item(time.Time{}, "notice", "notice", fmt.Sprintf("A record of %s is too long to show; it is in the file.", words.Bytes(r.Next-r.At)))}, nil
	}
	e, ok := r.entry()
	if !ok {
		return nil, nil
	}
	var list []Item
	for i := range e.Events {
		if it, ok := r.event(&e.Events[i]); ok {
			list = append(list, it)
		}
	}
	if l := e.Line; l != nil && len(e.Events) == 0 && l.Stream != runlog.StreamStdout && l.Text != "" {
		list = append(list, r.item(l.Time, "notice", string(l.Stream), l.Text))
	}
	if e.End != nil {
		list = append(list, r.item(e.End.Ended, "exit", "ended", e.End.Words()))
	}
	return list, e.End
}

func (r Record) item(t time.Time, kind, what, text string) Item {
	c := Cut(text)
	return Item{At: t, Kind: kind, What: what, Text: c.Text, More: c.More, From: r.At}
}

// event returns the item of an event, or false if it is not shown.
func (r Record) event(e *runlog.Event) (Item, bool) {
	kind, what, text := "notice", strings.ReplaceAll(string(e.Kind), "_", " "), e.Text
	switch e.Kind {
	case runlog.KindStarted:
		what, text = "started", strings.TrimSpace(e.Model+" "+e.Text)
	case runlog.KindText:
		kind, what = "said", "says"
	case runlog.KindThinking:
		kind, what = "thought", "thinks"
	case runlog.KindToolUse:
		kind, what, text = "tool", toolWords(e.ToolName), joined(runlog.InputWords(e.Input), e.Text)
	case runlog.KindToolResult:
		kind, what = "output", "result"
		if e.IsError {
			kind, what = "wrong", "error"
		}
	case runlog.KindUsage:
		if e.Usage == nil || *e.Usage == (runlog.Usage{}) {
			return Item{}, false
		}
		kind, text = "usage", fmt.Sprintf("%s tokens in, %s from the cache, %s out",
			words.Count(e.Usage.Input+e.Usage.CacheWrite), words.Count(e.Usage.CacheRead), words.Count(e.Usage.Output))
	case runlog.KindRetry:
		kind, text = "wrong", joined(e.Text, "retries in "+words.ExactSpan(e.Delay))
	case runlog.KindResult:
		kind, what = "result", "last word"
		if e.IsError {
			kind = "wrong"
		}
	}
	return r.item(e.Time, kind, what, text), true
}

func toolWords(name string) string {
	if name == "" {
		return "uses a tool"
	}
	return "uses " + Cut(name).Text
}

func joined(parts ...string) string {
	var some []string
	for _, s := range parts {
		if s != "" {
			some = append(some, s)
		}
	}
	return strings.Join(some, "\n")
}

// An Excerpt is the beginning of a text, for a page. More is the number of omitted characters.
type Excerpt struct {
	Text string
	More int
}

// Cut limits a text to runlog.ShownLength characters.
func Cut(text string) Excerpt {
	if len(text) <= runlog.ShownLength {
		return Excerpt{Text: text}
	}
	n := utf8.RuneCountInString(text)
	if n <= runlog.ShownLength {
		return Excerpt{Text: text}
	}
	shown, left := 0, runlog.ShownLength
	for i := range text {
		if left == 0 {
			shown = i
			break
		}
		left--
	}
	return Excerpt{Text: text[:shown], More: n - runlog.ShownLength}
}

// Text returns a record's full text.
func (r Record) Text() string {
	if r.At == 0 {
		var h runlog.Header
		if json.Unmarshal(r.data, &h) == nil {
			return "SYSTEM PROMPT\n\n" + h.System + "\n\nUSER PROMPT\n\n" + h.User + "\n"
		}
	}
	e, ok := r.entry()
	if !ok {
		return string(r.data)
	}
	var b strings.Builder
	for _, ev := range e.Events {
		fmt.Fprintf(&b, "%s %s %s\n\n%s\n\n", ev.Time.UTC().Format(time.RFC3339), ev.Kind, ev.ToolName, joined(ev.Input, ev.Text))
	}
	if e.Line != nil {
		fmt.Fprintf(&b, "raw line %d of %s\n\n%s\n", e.Line.Seq, e.Line.Stream, e.Line.Text)
		if e.Line.Cut > 0 {
			fmt.Fprintf(&b, "(%d more bytes of the line were not stored)\n", e.Line.Cut)
		}
	}
	if e.End != nil {
		b.WriteString(e.End.Words() + "\n")
	}
	return b.String()
}

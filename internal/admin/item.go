package admin

import (
	"fmt"
	"strings"
	"time"

	"github.com/errand-bot/errand/internal/runlog"
)

// item is one entry of a run's log, on the page and in the live log.
type item struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"` // CSS class
	What string    `json:"what"` // label
	Text string    `json:"text,omitempty"`
	More int       `json:"more,omitempty"` // number of omitted characters
	From int64     `json:"from"`           // offset of the full record
}

// items returns the visible entries of a record, none for records without relevant content.
func (r record) items() ([]item, *runlog.End) {
	if r.data == nil {
		return []item{r.item(time.Time{}, "notice", "notice", fmt.Sprintf("A record of %s is too long to show; it is in the file.", size(r.next-r.at)))}, nil
	}
	e, ok := r.entry()
	if !ok {
		return nil, nil
	}
	var list []item
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

func (r record) item(t time.Time, kind, what, text string) item {
	c := cut(text)
	return item{At: t, Kind: kind, What: what, Text: c.Text, More: c.More, From: r.at}
}

// event returns the item of an event, or false if it is not shown.
func (r record) event(e *runlog.Event) (item, bool) {
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
			return item{}, false
		}
		kind, text = "usage", fmt.Sprintf("%s tokens in, %s from the cache, %s out", count(e.Usage.Input+e.Usage.CacheWrite), count(e.Usage.CacheRead), count(e.Usage.Output))
	case runlog.KindRetry:
		kind, text = "wrong", joined(e.Text, "asks again in "+span(e.Delay))
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
	return "uses " + cut(name).Text
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

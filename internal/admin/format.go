package admin

import (
	"html/template"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/errand-bot/errand/internal/admin/transcript"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

// helpers returns the functions of the templates.
func helpers() template.FuncMap {
	return template.FuncMap{
		"at":       at,
		"ago":      ago,
		"since":    since,
		"span":     words.ExactSpan,
		"spent":    words.Spent,
		"spentof":  words.SpentOf,
		"count":    words.Count,
		"many":     words.Many,
		"cut":      transcript.Cut,
		"bytes":    words.Bytes,
		"phase":    words.Phase,
		"tone":     tone,
		"vmtone":   vmTone,
		"vmend":    words.VMEnd,
		"rest":     words.Rest,
		"asleep":   words.Asleep,
		"cash":     words.Cash,
		"run":      words.Run,
		"step":     words.Step,
		"wait":     words.Wait,
		"plan":     words.Plan,
		"via":      viaWords,
		"post":     postWords,
		"plain":    words.Plain,
		"prose":    prose,
		"total":    func(m state.Money) int64 { return m.InputTokens + m.OutputTokens },
		"vm":       vmWords,
		"upper":    upper,
		"sentence": sentence,
		"len64":    func(s string) int64 { return int64(len(s)) },
	}
}

// stamp is a time in UTC as pages show it: only the time for today, otherwise with the date.
type stamp struct{ ISO, Full, Short string }

func at(now, t time.Time) stamp {
	t, now = t.UTC(), now.UTC()
	if t.IsZero() {
		return stamp{}
	}
	s := stamp{ISO: t.Format(time.RFC3339), Full: t.Format("Mon 2 Jan 2006 15:04:05 UTC"), Short: t.Format("15:04:05")}
	if t.Year() != now.Year() || t.YearDay() != now.YearDay() {
		s.Short = t.Format("2 Jan 15:04")
	}
	return s
}

func ago(now, t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	if t.After(now) {
		return "in " + words.Span(t.Sub(now))
	}
	return words.Span(now.Sub(t)) + " ago"
}

// since formats the time since t.
func since(now, t time.Time) string { return words.Span(now.Sub(t)) }

// upper capitalizes the first letter.
func upper(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return strings.ToUpper(string(r)) + s[n:]
}

// sentence capitalizes the first letter and adds a full stop.
func sentence(s string) string {
	s = upper(strings.TrimSpace(s))
	if s == "" || strings.ContainsAny(s[len(s)-1:], ".!?:") {
		return s
	}
	return s + "."
}

// prose renders a sentence as HTML, with text between backticks as code.
func prose(s string) template.HTML {
	parts := strings.Split(s, "`")
	if len(parts)%2 == 0 {
		return template.HTML(template.HTMLEscapeString(s))
	}
	var b strings.Builder
	for i, part := range parts {
		part = template.HTMLEscapeString(part)
		if i%2 == 1 {
			part = "<code>" + part + "</code>"
		}
		b.WriteString(part)
	}
	return template.HTML(b.String())
}

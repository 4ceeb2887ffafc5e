package admin

import (
	"fmt"
	"html/template"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/internal/words"
	"github.com/errand-bot/errand/state"
)

// helpers returns the functions of the templates.
func helpers() template.FuncMap {
	return template.FuncMap{
		"at": at, "ago": ago, "since": since, "span": span, "spent": words.Spent, "spentof": words.SpentOf, "count": count, "many": words.Many, "cut": cut, "bytes": size,
		"phase": words.Phase, "tone": tone, "vmtone": vmTone, "vmend": words.VMEnd, "rest": words.Rest, "asleep": words.Asleep, "cash": words.Cash, "run": words.Run, "step": words.Step, "wait": words.Wait, "plan": words.Plan,
		"via": viaWords, "post": postWords, "plain": words.Plain, "prose": prose,
		"total": func(m state.Money) int64 { return m.InputTokens + m.OutputTokens }, "vm": vmWords, "upper": upper, "sentence": sentence,
		"len64": func(s string) int64 { return int64(len(s)) },
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
		return "in " + rough(t.Sub(now))
	}
	return rough(now.Sub(t)) + " ago"
}

// since formats the time since t.
func since(now, t time.Time) string { return rough(now.Sub(t)) }

// rough formats a duration with its largest unit.
func rough(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// span formats a duration with its two most significant units.
func span(d time.Duration) string {
	d = max(d, 0)
	switch {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// count formats a number in thousands or millions.
func count(n int64) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%.1f M", float64(n)/1e6)
	case n >= 10_000:
		return fmt.Sprintf("%d k", n/1000)
	}
	return fmt.Sprint(n)
}

func size(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", n)
}

// excerpt is a text cut for a page; More is the number of omitted characters.
type excerpt struct {
	Text string
	More int
}

func cut(text string) excerpt {
	if len(text) <= runlog.ShownLength {
		return excerpt{Text: text}
	}
	n := utf8.RuneCountInString(text)
	if n <= runlog.ShownLength {
		return excerpt{Text: text}
	}
	shown, left := 0, runlog.ShownLength
	for i := range text {
		if left == 0 {
			shown = i
			break
		}
		left--
	}
	return excerpt{Text: text[:shown], More: n - runlog.ShownLength}
}

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

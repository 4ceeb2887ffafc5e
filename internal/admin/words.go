package admin

import (
	"fmt"
	"html/template"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/errand-bot/errand/internal/runlog"
	"github.com/errand-bot/errand/state"
)

// words are the functions of the templates.
func words() template.FuncMap {
	return template.FuncMap{
		"at": at, "ago": ago, "span": span, "usd": usd, "count": count, "many": many, "cut": cut, "bytes": size,
		"phase": phaseWords, "tone": tone, "run": runWords, "step": stepWords, "wait": waitWords, "plan": planWords,
		"via": viaWords, "post": postWords,
		"total": func(m state.Money) int64 { return m.InputTokens + m.OutputTokens }, "vm": vmWords, "upper": upper,
		"len64": func(s string) int64 { return int64(len(s)) },
	}
}

// stamp is a time as pages show it: the hour for today, the day with it for others, in UTC.
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
		return "in " + span(t.Sub(now))
	}
	return span(now.Sub(t)) + " ago"
}

// span shows a duration in the two largest units that matter.
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

// usd shows millionths of a dollar.
func usd(micro int64) string {
	if micro > 0 && micro < 5_000 {
		return "under $0.01"
	}
	return fmt.Sprintf("$%.2f", float64(micro)/1e6)
}

// count shows a number in thousands or millions.
func count(n int64) string {
	switch {
	case n >= 1_000_000:
		return fmt.Sprintf("%.1f M", float64(n)/1e6)
	case n >= 10_000:
		return fmt.Sprintf("%d k", n/1000)
	}
	return fmt.Sprint(n)
}

func many(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
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

// excerpt is a text cut to what pages show; More characters are left out.
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

// upper makes a sentence of words: a capital first.
func upper(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return strings.ToUpper(string(r)) + s[n:]
}

// phaseWords is what people read for a phase.
func phaseWords(p state.Phase) string {
	switch p {
	case state.PhaseQueued:
		return "queued"
	case state.PhasePreliminaryPlanning:
		return "drafting a plan"
	case state.PhaseAwaitingPreliminaryApproval:
		return "draft awaits approval"
	case state.PhasePlanning:
		return "working the plan out"
	case state.PhaseAwaitingPlanApproval:
		return "plan awaits approval"
	case state.PhaseImplementing:
		return "implementing"
	case state.PhasePROpen:
		return "pull request open"
	case state.PhaseAddressingReview:
		return "answering the review"
	case state.PhaseAwaitingAnswer:
		return "awaits an answer"
	}
	return strings.ReplaceAll(string(p), "_", " ") // interrupted, done, cancelled, failed
}

// tone groups phases by who has to act; it is a class of the style sheet.
func tone(p state.Phase) string {
	switch {
	case p == state.PhaseFailed:
		return "bad"
	case p == state.PhaseInterrupted:
		return "warn"
	case p.AwaitsApproval(), p == state.PhaseAwaitingAnswer, p == state.PhasePROpen:
		return "people"
	case p == state.PhaseDone:
		return "good"
	case p.Working():
		return "busy"
	}
	return "calm"
}

func runWords(k state.RunKind) string {
	switch k {
	case state.RunPreliminary:
		return "preliminary plan"
	case state.RunPlan:
		return "thorough plan"
	case state.RunImplement:
		return "implementation"
	case state.RunCheck:
		return "checks"
	case state.RunReview:
		return "review round"
	}
	return string(k)
}

func stepWords(k state.JobKind) string {
	switch k {
	case state.StepRun:
		return "the agent runs"
	case state.JobStart:
		return "reading settings and what there is already"
	case state.JobLaunch:
		return "bringing up a VM"
	case state.JobCollect:
		return "reading and judging the commits"
	case state.JobCommit, state.JobMove:
		return "publishing the commits"
	case state.JobRebase:
		return "rebasing onto what was pushed meanwhile"
	case state.JobOpenPR:
		return "opening the pull request"
	case state.JobAnswer:
		return "answering the threads"
	case state.JobGather:
		return "reading the review"
	case state.JobStop:
		return "stopping the run, saving its work"
	}
	return strings.ReplaceAll(string(k), "_", " ")
}

func waitWords(k state.WaitKind) string {
	switch k {
	case state.WaitBlocked:
		return "other issues"
	case state.WaitVM:
		return "a VM"
	case state.WaitLimit:
		return "a limit to end"
	case state.WaitConfig:
		return "a valid .errand.yml"
	case state.WaitEdit:
		return "a word on an edit"
	case state.WaitText:
		return "text that the agent may see"
	case state.WaitDisabled:
		return "being enabled"
	}
	return string(k) // money
}

func planWords(k state.PlanKind) string {
	if k == state.PlanPreliminary {
		return "Preliminary plan"
	}
	return "Thorough plan"
}

func viaWords(v state.ApprovalVia) string {
	switch v {
	case state.ViaReaction:
		return "by 👍"
	case state.ViaBox:
		return "by the box"
	case state.ViaCommand:
		return "by command"
	}
	return "by the settings"
}

func postWords(kind string) string { return strings.ReplaceAll(kind, "_", " ") }

// vmWords says what a kind of VM keeps apart.
func vmWords(kind string) string {
	switch kind {
	case "bwrap":
		return "bubblewrap: own files, own processes, no network"
	case "userns":
		return "user namespaces: own processes, no network"
	case "plain":
		return "plain folder: not isolated"
	}
	return kind
}

package prompts

import (
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"
	"unicode"
	"unicode/utf8"
)

// The names of the prompts, which equal the kinds of runs.
const (
	PreliminaryPlan = "preliminary_plan"
	PlanName        = "plan"
	Implement       = "implement"
	Review          = "review"
)

// Limits, in characters, on texts by others, so that a model can still read the prompt.
const (
	maxText    = 40_000 // an issue's body or a plan
	maxComment = 12_000 // a comment or a diff
	maxGuide   = 24_576 // a file with instructions for agents
	maxTail    = 6_000  // the end of a log
	maxNote    = 1_000  // a note of the agent
	maxTalk    = 60_000 // the end of the conversation so far
)

//go:embed templates/*.tmpl
var files embed.FS

// Prompt is the rendered prompt of a run. Adapters without a system prompt put System before User.
type Prompt struct {
	System string
	User   string
}

// Names returns the names of all prompts.
func Names() []string { return []string{PreliminaryPlan, PlanName, Implement, Review} }

// Render renders the prompt with the given name. data is a Data or a pointer to one; if it lacks a required field the
// error names the field. The first line of User is "errand-step: NAME", the second "errand-task: OWNER/REPO#ISSUE run
// SEQ". Equal data gives an equal prompt.
func Render(name string, data any) (Prompt, error) {
	d, err := dataOf(data)
	if err != nil {
		return Prompt{}, fmt.Errorf("render prompt %s: %w", name, err)
	}
	if !slices.Contains(Names(), name) {
		return Prompt{}, fmt.Errorf("render prompt %q: want one of %s", name, strings.Join(Names(), ", "))
	}
	if err := d.check(name); err != nil {
		return Prompt{}, fmt.Errorf("render prompt %s: %w", name, err)
	}
	t, err := template.New("prompts").Funcs(funcs()).Option("missingkey=error").ParseFS(files, "templates/*.tmpl")
	if err != nil {
		return Prompt{}, fmt.Errorf("parse prompts: %w", err)
	}
	in := struct {
		Data
		Name string
	}{d, name}
	var p Prompt
	for _, part := range []struct {
		file string
		to   *string
	}{{"system.tmpl", &p.System}, {d.template(name) + ".tmpl", &p.User}} {
		var b strings.Builder
		if err := t.ExecuteTemplate(&b, part.file, in); err != nil {
			return Prompt{}, fmt.Errorf("render prompt %s: %w", name, err)
		}
		*part.to = squeeze(b.String())
	}
	return p, nil
}

func dataOf(data any) (Data, error) {
	switch d := data.(type) {
	case Data:
		return d, nil
	case *Data:
		if d != nil {
			return *d, nil
		}
	}
	return Data{}, fmt.Errorf("data is %T, want prompts.Data", data)
}

// funcs returns the functions that templates can call.
func funcs() template.FuncMap {
	return template.FuncMap{
		"text":    func(s string) string { return fence("text", head(s, maxText)) },
		"comment": func(s string) string { return fence("text", head(s, maxComment)) },
		"diff":    func(s string) string { return fence("diff", head(s, maxComment)) },
		"tail":    func(s string) string { return fence("text", end(s, maxTail)) },
		"guide":   func(s string) string { return fence("text", head(s, maxGuide)) },
		"ci":      hasCI,
		"talk":    talk,
		"word":    word,
		"words":   words,
		"note":    func(s string) string { return strconv.Quote(head(strings.Join(strings.Fields(s), " "), maxNote)) },
		"time":    func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") },
		"minutes": func(d time.Duration) string { return strconv.Itoa(int(d.Minutes())) },
		"outcome": outcomes,
		"broken":  broken,
	}
}

// fence encloses s in fences longer than any run of backticks in it. It removes control characters other than tab and
// newline, because a terminal or a log may show the prompt.
func fence(kind, s string) string {
	s = strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(strings.ReplaceAll(s, "\r\n", "\n"), "\uFFFD"))
	ticks := strings.Repeat("`", max(3, longestRun(s)+1))
	return ticks + kind + "\n" + strings.Trim(s, "\n") + "\n" + ticks
}

// longestRun returns the length of the longest run of backticks.
func longestRun(s string) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// word formats a short untrusted text for use within a line of the prompt: quoted, without line breaks, at most 300
// characters.
func word(s string) string {
	return strconv.Quote(head(strings.Join(strings.Fields(s), " "), 300))
}

// words formats several such texts, separated by commas.
func words(list []string) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = word(s)
	}
	return strings.Join(out, ", ")
}

// head returns the first limit characters of s, with a note about the number of those left out.
func head(s string, limit int) string {
	n := utf8.RuneCountInString(s)
	if n <= limit {
		return s
	}
	return string([]rune(s)[:limit]) + fmt.Sprintf("\n[%d more characters are omitted]", n-limit)
}

// end returns the last limit characters of s, with a note about the number of those left out.
func end(s string, limit int) string {
	n := utf8.RuneCountInString(s)
	if n <= limit {
		return s
	}
	return fmt.Sprintf("[the first %d characters are omitted]\n", n-limit) + string([]rune(s)[n-limit:])
}

// talk formats the end of a conversation, turn by turn.
func talk(turns []Turn) string {
	var parts []string
	left := maxTalk
	for _, t := range slices.Backward(turns) {
		if left <= 0 {
			parts = append(parts, "[earlier turns are omitted]")
			break
		}
		cut := end(t.Text, min(left, maxComment))
		left -= utf8.RuneCountInString(cut)
		who := "The agent said:"
		if t.Role == "errand" {
			who = "Prompt to the agent:"
		}
		parts = append(parts, who+"\n\n"+fence("text", cut))
	}
	slices.Reverse(parts)
	return strings.Join(parts, "\n\n")
}

// hasCI reports whether a check of the pull request is to be repaired.
func hasCI(list []Feedback) bool {
	return slices.ContainsFunc(list, func(f Feedback) bool { return f.Kind == "ci" })
}

// broken reports whether the existing commits have a defect: a failed check, a refusal or a conflict.
func broken(d Data) bool {
	return len(d.Checks)+len(d.Refusals) > 0 || slices.ContainsFunc(d.Feedback, func(f Feedback) bool {
		return f.Kind == "checks" || f.Kind == "ci" || f.Kind == "refusal" || f.Kind == "conflict"
	})
}

// outcomes returns the outcomes that a run of the given kind may report.
func outcomes(name string, d Data) string {
	plan := `"build", "report", "already_fixed", "not_reproducible", "question" or "blocked"`
	open := ""
	if d.Asked != "" {
		open = `"answered", "unchanged", `
	} else if d.Shown && name == Implement {
		open = `"answered", `
	}
	if name == Implement || name == Review {
		return open + `"done", "question" or "blocked"`
	}
	if d.Considers {
		return `"revised", "answered", "unchanged"` + strings.TrimPrefix(plan, `"build"`)
	}
	return open + plan
}

// squeeze removes trailing space and repeated blank lines outside of fences, which templates leave behind.
func squeeze(s string) string {
	var out []string
	fenced := ""
	for line := range strings.Lines(s) {
		line = strings.TrimSuffix(line, "\n")
		ticks := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		switch {
		case fenced == "" && len(ticks) >= 3:
			fenced = ticks
		case fenced != "" && line == fenced:
			fenced = ""
		case fenced == "":
			line = strings.TrimRight(line, " \t")
			if line == "" && (len(out) == 0 || out[len(out)-1] == "") {
				continue
			}
		}
		out = append(out, line)
	}
	return strings.TrimRight(strings.Join(out, "\n"), "\n") + "\n"
}

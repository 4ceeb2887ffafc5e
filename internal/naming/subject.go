package naming

import (
	"fmt"
	"regexp"
	"strings"
)

// The value of {task} in the first lines of commits that answer a review.
const (
	roundTask = "Address review feedback"
	roundDash = " — "
)

// SubjectForm returns a template with its fixed values filled in, for the agent: with {task}, or with {summary} in a review
// round, in place of the agent's words. It is empty if any first line is valid.
func SubjectForm(template string, v Values, round bool) string {
	v.Task = "{task}"
	if round {
		v.Task = roundTask + roundDash + "{summary}"
	}
	form, err := Expand(template, v)
	if err != nil || form == "{task}" {
		return ""
	}
	return form
}

// Subject returns the first line of a commit's message in the form of a template, based on the commit's own line.
//
// A line that already has the form is returned unchanged: {key} and {number} are fixed, {task} and {slug} are any words, and
// in a review round {task} is "Address review feedback", optionally with a dash and a summary. From any other line the parts
// of the form are removed, and the rest becomes the {task} or the summary. A template without {task} cannot contain the
// agent's words: kept is then false, unless the line had the form. An empty line stands for the words of v, or, in a
// round, for none.
func Subject(template string, v Values, round bool, line string) (subject string, kept bool) {
	template, v, line = strings.ToValidUTF8(template, ""), v.oneLine(), strings.TrimSpace(strings.ToValidUTF8(line, "\uFFFD"))
	if line == "" && !round {
		line = v.Task
	}
	task := `(.+)`
	if round {
		task = roundTask + `(?:` + roundDash + `(.+))?`
	}
	parts := splitTemplate(template, v)
	if subjectPattern(parts, v, "", task).MatchString(line) {
		return line, true
	}
	if !strings.Contains(template, "{task}") {
		if slug := Slug(line); line != "" {
			v.Slug = slug
		}
		subject, _ = Expand(template, v)
		return subject, false
	}
	v.Task = ownWords(parts, v, line)
	if round {
		v.Task = strings.TrimRight(roundTask+roundDash+withoutRound(v.Task), " —")
	}
	subject, _ = Expand(template, v)
	return subject, true
}

// oneLine returns the values with a key in one line of valid UTF-8.
func (v Values) oneLine() Values {
	v.Key = strings.Join(strings.Fields(strings.ToValidUTF8(v.Key, "")), " ")
	return v
}

// ownWords returns a line without the template's fixed parts, ignoring case.
func ownWords(parts []string, v Values, line string) string {
	if m := subjectPattern(parts, v, "(?i)", `(.+)`).FindStringSubmatch(line); m != nil {
		return m[1]
	}
	for _, p := range parts {
		value := ""
		switch {
		case p == "{key}":
			value = regexp.QuoteMeta(v.Key)
		case p == "{number}":
			value = "#" + fmt.Sprint(v.Number) // a bare number may be a word of its own
		default:
			continue
		}
		for _, at := range []string{`^[\[(]?` + value + `(?:[\])]|\b)[-_:/,. ]*(.+)$`, `^(.+?)[-_:/,. ]*[\[(]` + value + `[\])]$`} {
			if m := regexp.MustCompile("(?i)" + at).FindStringSubmatch(line); m != nil {
				line = m[1]
			}
		}
	}
	return line
}

// withoutRound removes the beginning of the first lines of a review round.
func withoutRound(line string) string {
	if len(line) >= len(roundTask) && strings.EqualFold(line[:len(roundTask)], roundTask) {
		return strings.TrimLeft(line[len(roundTask):], " —–-:")
	}
	return line
}

// splitTemplate splits a template into placeholders and the texts between them, without placeholders that have no value.
func splitTemplate(template string, v Values) (parts []string) {
	if v.Key == "" {
		template = dropEmpty(template, "{key}")
	}
	template = strings.TrimSpace(template)
	at := 0
	for _, m := range placeholder.FindAllStringIndex(template, -1) {
		parts = append(parts, template[at:m[0]], template[m[0]:m[1]])
		at = m[1]
	}
	return append(parts, template[at:])
}

// subjectPattern returns the pattern of a first line: the parts of a template, with a pattern for {task}.
func subjectPattern(parts []string, v Values, flags, task string) *regexp.Regexp {
	var b strings.Builder
	for _, p := range parts {
		switch p {
		case "{task}":
			b.WriteString(task)
		case "{slug}":
			b.WriteString(`[a-z0-9]+(?:-[a-z0-9]+)*`)
		default:
			b.WriteString(regexp.QuoteMeta(valueOf(p, v)))
		}
	}
	return regexp.MustCompile(flags + "^" + b.String() + "$")
}

// valueOf returns the fixed value of a part of a template for one issue.
func valueOf(part string, v Values) string {
	switch part {
	case "{key}":
		return v.Key
	case "{number}":
		return fmt.Sprint(v.Number)
	}
	return part
}

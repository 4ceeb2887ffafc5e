package gates

import (
	"strconv"
	"strings"
	"unicode"
)

// cut returns the beginning of a text, which is valid UTF-8, in at most so many bytes.
func cut(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("…")], "") + "…"
}

// quoted returns a name as it is, or quoted if it has characters that could be taken for something else. It is one line.
func quoted(name string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) || r == '`' || r == '"' || r == unicode.ReplacementChar }
	if name != "" && !strings.ContainsFunc(name, odd) {
		return cut(name, maxName)
	}
	return strconv.Quote(cut(name, maxName))
}

// literal returns a text from a report in quotation marks, so that nobody takes it for one of errand. It is one line.
func literal(text string) string { return strconv.Quote(cut(text, maxName)) }

// plain returns a text from a report as one line without invisible characters.
func plain(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return cut(strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, text), maxName)
}

// listOf joins names.
func listOf(names []string) string {
	short := names[:min(len(names), 10)]
	text := make([]string, len(short))
	for i, name := range short {
		text[i] = quoted(name)
	}
	if more := len(names) - len(short); more > 0 {
		text = append(text, strconv.Itoa(more)+" more")
	}
	return strings.Join(text, ", ")
}

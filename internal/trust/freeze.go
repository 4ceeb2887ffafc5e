package trust

import (
	"fmt"
	"strings"
	"unicode"

	udiff "github.com/aymanbagabas/go-udiff"
)

// Text is an issue's title and body, frozen or current. Compare two with state.FreezeHash.
type Text struct{ Title, Body string }

// Limits of a displayed difference.
const (
	diffContext  = 2
	maxDiffLines = 60
	maxDiffWidth = 200
	diffLead     = 40 // unchanged characters shown on each side of a change in a long line
	maxDiffInput = 256 << 10
)

// Difference returns an edit as the lines of a diff: at most about 60 of 200 characters, and "" if nothing changed.
// It ignores line ends. It shortens long lines to the changed part, and shows invisible characters as code points,
// since an edit may hide text.
func Difference(before, after Text) string {
	old, now := plainText(before), plainText(after)
	if old == now {
		return ""
	}
	hunks, err := udiff.ToUnifiedDiff("before", "after", old, udiff.Lines(old, now), diffContext)
	if err != nil || len(hunks.Hunks) == 0 {
		return ""
	}
	var lines []string
	for i, hunk := range hunks.Hunks {
		if i > 0 {
			lines = append(lines, " …")
		}
		lines = append(lines, hunkLines(hunk.Lines)...)
	}
	if more := len(lines) - maxDiffLines; more > 0 {
		lines = append(lines[:maxDiffLines:maxDiffLines], fmt.Sprintf(" … %d more lines", more))
	}
	return strings.Join(lines, "\n")
}

// plainText joins title and body and makes invisible characters visible.
func plainText(t Text) string {
	body := strings.TrimRight(strings.ReplaceAll(t.Body, "\r\n", "\n"), "\n ")
	text := strings.TrimRight(strings.ReplaceAll(t.Title, "\r\n", " "), "\n ") + "\n\n" + body + "\n"
	if len(text) > maxDiffInput {
		text = text[:maxDiffInput] + "\n"
	}
	return Reveal(text)
}

// Reveal returns a text in which invisible characters and Unicode's line separators, other than line feeds and tabs, are visible as code points, so that a person sees
// all of it.
func Reveal(text string) string {
	var out strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\uFFFD") {
		if r != '\n' && r != '\t' && (isInvisible(r) || unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp)) {
			fmt.Fprintf(&out, "\\u{%X}", r)
			continue
		}
		out.WriteRune(r)
	}
	return out.String()
}

// hunkLines writes the lines of a hunk. Of a long removed line and its added replacement it only shows the surroundings
// of the change.
func hunkLines(in []udiff.Line) []string {
	var out, removed, added []string
	flush := func() {
		for i := range min(len(removed), len(added)) {
			removed[i], added[i] = shorten(removed[i], added[i])
		}
		for _, line := range removed {
			out = append(out, "-"+cutTo(line, maxDiffWidth))
		}
		for _, line := range added {
			out = append(out, "+"+cutTo(line, maxDiffWidth))
		}
		removed, added = nil, nil
	}
	for _, line := range in {
		content := strings.TrimSuffix(line.Content, "\n")
		switch line.Kind {
		case udiff.Delete:
			removed = append(removed, content)
		case udiff.Insert:
			added = append(added, content)
		default:
			flush()
			out = append(out, " "+cutTo(content, maxDiffWidth))
		}
	}
	flush()
	return out
}

// shorten cuts the common start and end of two long lines.
func shorten(a, b string) (string, string) {
	x, y := []rune(a), []rune(b)
	if len(x) <= maxDiffWidth && len(y) <= maxDiffWidth {
		return a, b
	}
	head := 0
	for head < min(len(x), len(y)) && x[head] == y[head] {
		head++
	}
	tail := 0
	for tail < min(len(x), len(y))-head && x[len(x)-1-tail] == y[len(y)-1-tail] {
		tail++
	}
	return around(x, head, tail), around(y, head, tail)
}

func around(line []rune, head, tail int) string {
	from, to := max(head-diffLead, 0), min(len(line)-tail+diffLead, len(line))
	text := string(line[from:to])
	if from > 0 {
		text = "…" + text
	}
	if to < len(line) {
		text += "…"
	}
	return text
}

func cutTo(line string, width int) string {
	runes := []rune(line)
	if len(runes) <= width {
		return line
	}
	return string(runes[:width]) + "…"
}

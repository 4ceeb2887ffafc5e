package markdown

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/errand-bot/errand/internal/words"
)

// Line makes untrusted text safe within a line, truncated to a number of characters. The result has no line breaks.
func Line(s string, limit int) string {
	s = strings.Join(strings.Fields(Clean(s)), " ")
	if cut, more := Cut(s, limit); more > 0 {
		s = strings.TrimRight(cut, " ") + " …"
	}
	if s == "" {
		return ""
	}
	safe, ok := strings.CutPrefix(Embed("x "+s), "x ")
	if !ok || strings.Contains(safe, "\n") {
		safe = "`" + strings.ReplaceAll(s, "`", "'") + "`"
		safe = breakMarkers(safe)
	}
	return escapeBlockStart(safe)
}

// Sentence makes untrusted text a safe sentence that ends with a full stop.
func Sentence(s string) string {
	s = Line(s, 400)
	if s == "" || strings.HasSuffix(s, ".") || strings.HasSuffix(s, "!") || strings.HasSuffix(s, "?") {
		return s
	}
	return s + "."
}

// Capitalize returns the text with its first letter in upper case.
func Capitalize(s string) string {
	if s != "" && 'a' <= s[0] && s[0] <= 'z' {
		return string(s[0]-'a'+'A') + s[1:]
	}
	return s
}

// Uncapitalize returns the text with its first letter in lower case if its first word is an article or a pronoun. Other
// words may be names.
func Uncapitalize(s string) string {
	switch first, _, _ := strings.Cut(s, " "); first {
	case "A", "An", "The", "No", "It", "Its", "This", "Another":
		return strings.ToLower(s[:1]) + s[1:]
	}
	return s
}

// Code returns a text as a code span, without backticks.
func Code(s string) string {
	s = strings.Join(strings.Fields(strings.ReplaceAll(Clean(s), "`", "")), " ")
	if s == "" {
		return ""
	}
	if strings.HasSuffix(s, `\`) {
		s += " "
	}
	return "`" + breakMarkers(s) + "`"
}

// CodeList returns up to limit texts as code spans.
func CodeList(list []string, limit int) string {
	var out []string
	for i, s := range list {
		if i == limit {
			out = append(out, fmt.Sprintf("and %d more", len(list)-limit))
			break
		}
		if c := Code(s); c != "" {
			out = append(out, c)
		}
	}
	return strings.Join(out, ", ")
}

// Cell escapes a line for a table.
func Cell(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, `\|`, "|"), "|", `\|`)
}

// ShortHash returns the first digits of a commit's or plan's hash as a code span.
func ShortHash(h string) string {
	if len(h) > 8 {
		h = h[:8]
	}
	return Code(h)
}

// Link returns a link with the words, or the words alone if the address is empty or unsafe.
func Link(words, url string) string {
	if url == "" || strings.ContainsAny(url, " ()<>\n") {
		return words
	}
	return "[" + words + "](" + url + ")"
}

// Quote returns the text as a block quote.
func Quote(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight("> "+l, " ")
	}
	return strings.Join(lines, "\n")
}

// Fold returns a text as collapsed details with a title.
func Fold(title, body string) string {
	return "<details><summary>" + title + "</summary>\n\n" + body + "\n\n</details>"
}

// EmbedFolded embeds untrusted text, truncated to the budget, and folds it if it has more than long characters.
func EmbedFolded(title, s string, long, budget int, more string) string {
	text := EmbedTruncated(s, budget, more)
	if utf8.RuneCountInString(text) > long {
		return Fold(title, text)
	}
	return text
}

// EmbedTruncated embeds untrusted text, truncated to the budget with a note about the rest. more names the place of the whole text.
func EmbedTruncated(s string, budget int, more string) string {
	cut, missing := Cut(s, budget)
	text := Embed(cut)
	if missing > 0 {
		text += fmt.Sprintf("\n\n*%d more characters: see %s.*", missing, more)
	}
	return text
}

// BulletList returns up to limit untrusted lines as a list.
func BulletList(items []string, limit int) string {
	var b strings.Builder
	for i, s := range items {
		if i == limit {
			b.WriteString("- and " + words.Many(len(items)-limit, "more line") + "\n")
			break
		}
		b.WriteString("- " + Line(s, 300) + "\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// Paragraphs joins non-empty texts with blank lines.
func Paragraphs(parts ...string) string {
	var kept []string
	for _, s := range parts {
		if s = strings.Trim(s, "\n"); strings.TrimSpace(s) != "" {
			kept = append(kept, s)
		}
	}
	return strings.Join(kept, "\n\n")
}

// CutWithNote truncates text and adds the number of removed characters.
func CutWithNote(s string, limit int) string {
	cut, more := Cut(s, limit)
	if more > 0 {
		cut += fmt.Sprintf("\n… %d more characters", more)
	}
	return cut
}

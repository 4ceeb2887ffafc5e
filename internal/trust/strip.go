package trust

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Kind is a class of hidden content.
type Kind string

// The kinds, worded so that a comment can list them: "3 HTML comments".
const (
	KindComment       Kind = "HTML comment"
	KindInvisible     Kind = "invisible character"
	KindTagCharacters Kind = "tag character"
	KindElement       Kind = "hidden HTML element"
	KindMarkup        Kind = "HTML tag that GitHub does not show"
	KindAttribute     Kind = "HTML attribute"
	KindImageText     Kind = "image text"
	KindLinkTitle     Kind = "link title"
	KindEmptyLink     Kind = "link without text"
	KindInlineData    Kind = "address that is itself data"
	KindDefinition    Kind = "link definition that nothing uses"
	KindFootnote      Kind = "footnote that nothing uses"
	KindCell          Kind = "table cell beyond the header"
	KindInfo          Kind = "remark on a code block"
	KindEncoded       Kind = "encoded character"
	KindDiagram       Kind = "part of a diagram that is not drawn"
	KindDrawing       Kind = "text that GitHub draws as a map or a model"
	KindFormula       Kind = "formula with hidden parts"
	KindWide          Kind = "text far to the right in code"
	KindTiny          Kind = "text in tiny letters"
	KindImageAddress  Kind = "address of an image"
	KindSecret        Kind = "secret"
	KindUnclean       Kind = "text that could not be cleaned"

	// kindRoutine is for what goes without a word, because it stands in every other issue and
	// says nothing: alt="image" of a pasted picture, &nbsp;, blank lines.
	kindRoutine Kind = ""
)

// Stripped tells people what was taken out of a text.
type Stripped struct {
	Kind  Kind
	Count int
	// Sample is the beginning of the first one, on one line and visible, empty for a secret.
	Sample string
}

// String returns a clause for people, with the sample as code: nothing in it mentions anybody or is
// markup.
func (s Stripped) String() string {
	text := fmt.Sprintf("%d × %s", s.Count, s.Kind)
	if s.Sample == "" {
		return text
	}
	return text + ": `" + strings.ReplaceAll(s.Sample, "`", "'") + "`"
}

// maxPasses bounds how often a text is gone over. What is taken out can bring together what then
// has to go too; real texts need two passes, only made-up ones more.
const maxPasses = 40

// maxStripBytes is more than GitHub accepts in a body (65,536 characters); the rest is cut off.
const maxStripBytes = 4 * 65536

// Strip returns a Markdown text without what a reader on GitHub does not see, and what that was.
// Fenced and indented code and code spans keep every visible character. Stripping a stripped text
// changes nothing. A text on which this cannot be had is replaced by nothing at all.
func Strip(text string) (string, []Stripped) {
	report := &report{}
	if len(text) > maxStripBytes {
		report.add(KindUnclean, 1, text[maxStripBytes:])
		text = text[:maxStripBytes]
	}
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "\uFFFD").Replace(strings.ToValidUTF8(text, "\uFFFD"))
	// The first look is at the text as GitHub reads it: without a character that nobody sees, or with a plain space in the place of
	// another one, what GitHub hides can become code.
	text = stripMarkdown(text, report)
	for range maxPasses {
		before := text
		text = cleanRunes(text, report)
		text = stripMarkdown(text, report)
		text = strings.TrimRight(strings.TrimLeft(text, "\n"), " \t\n")
		if text == before {
			return text, report.list
		}
	}
	report.add(KindUnclean, 1, text)
	return "", report.list
}

// StripLine is Strip for what GitHub shows literally on one line, such as a title: only characters
// go, and line ends become spaces.
func StripLine(text string) (string, []Stripped) {
	report := &report{}
	text = cleanRunes(strings.ToValidUTF8(text, "\uFFFD"), report)
	return strings.Join(strings.Fields(text), " "), report.list
}

// report gathers what was stripped, one entry per kind in order of appearance.
type report struct{ list []Stripped }

func (r *report) add(kind Kind, count int, sample string) {
	at := slices.IndexFunc(r.list, func(s Stripped) bool { return s.Kind == kind })
	if at < 0 {
		r.list = append(r.list, Stripped{Kind: kind, Count: count, Sample: excerpt(sample)})
		return
	}
	r.list[at].Count += count
	if r.list[at].Sample == "" {
		r.list[at].Sample = excerpt(sample)
	}
}

// maxSample is the length of a sample in characters.
const maxSample = 80

// excerpt makes hidden text fit to be shown: visible characters on one short line.
func excerpt(text string) string {
	var out []rune
	for _, r := range strings.Join(strings.Fields(text), " ") {
		if unseen(r) || !unicode.IsPrint(r) {
			continue
		}
		if len(out) == maxSample {
			return string(out) + "…"
		}
		out = append(out, r)
	}
	return string(out)
}

// Join merges what was stripped from several texts into one list.
func Join(lists ...[]Stripped) []Stripped {
	all := &report{}
	for _, list := range lists {
		for _, s := range list {
			all.add(s.Kind, s.Count, s.Sample)
		}
	}
	return all.list
}

package trust

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// A Kind is a class of hidden content.
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

	// kindRoutine is not reported because it is common and harmless: alt="image" of a pasted picture, &nbsp;, blank
	// lines.
	kindRoutine Kind = ""
)

// Stripped describes removed content to people.
type Stripped struct {
	Kind  Kind
	Count int
	// Sample is the start of the first removed content, visible and on one line; empty for a secret.
	Sample string
}

// String returns a clause for people, with the sample as code, so that it contains no mention or markup.
func (s Stripped) String() string {
	text := fmt.Sprintf("%d × %s", s.Count, s.Kind)
	if s.Sample == "" {
		return text
	}
	return text + ": `" + strings.ReplaceAll(s.Sample, "`", "'") + "`"
}

// maxPasses limits the passes over a text. A removal may join text that must then be removed, too. Real texts need two
// passes, only constructed ones more.
const maxPasses = 40

// maxStripBytes is more than GitHub accepts in a body (65,536 characters). Longer texts are cut.
const maxStripBytes = 4 * 65536

// Strip returns a Markdown text without the parts that readers on GitHub do not see, and a description of these parts.
// Fenced and indented code and code spans keep all visible characters. Stripping a stripped text changes nothing. If
// the result does not stabilize, Strip returns an empty text.
func Strip(text string) (string, []Stripped) {
	report := &report{}
	if len(text) > maxStripBytes {
		report.add(KindUnclean, 1, text[maxStripBytes:])
		text = text[:maxStripBytes]
	}
	text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\x00", "\uFFFD").Replace(strings.ToValidUTF8(text, "\uFFFD"))
	// Strip the text first as GitHub parses it. Removing an invisible character, or replacing it by a space, could turn
	// content that GitHub hides into code.
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

// StripLine strips a text that GitHub shows literally on one line, such as a title: it only removes characters, and
// replaces line ends by spaces.
func StripLine(text string) (string, []Stripped) {
	report := &report{}
	text = cleanRunes(strings.ToValidUTF8(text, "\uFFFD"), report)
	return strings.Join(strings.Fields(text), " "), report.list
}

// report collects removed content, one entry per kind in order of appearance.
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

// excerpt returns hidden text as visible characters on one short line.
func excerpt(text string) string {
	var out []rune
	for _, r := range strings.Join(strings.Fields(text), " ") {
		if isInvisible(r) || !unicode.IsPrint(r) {
			continue
		}
		if len(out) == maxSample {
			return string(out) + "…"
		}
		out = append(out, r)
	}
	return string(out)
}

// Join merges descriptions of several texts.
func Join(lists ...[]Stripped) []Stripped {
	all := &report{}
	for _, list := range lists {
		for _, s := range list {
			all.add(s.Kind, s.Count, s.Sample)
		}
	}
	return all.list
}

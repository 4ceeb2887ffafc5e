package trust

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Seen returns a text without the characters that a reader cannot see, with plain line ends and
// spaces: what people approve must be all that an agent is told.
func Seen(text string) string { return cleanRunes(text, &report{}) }

// cleanRunes makes line ends and spaces plain and drops every character that a reader cannot see,
// in code as well. Emoji that are joined from several fall apart into these.
func cleanRunes(text string, report *report) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	var out, tags strings.Builder
	dropped := map[rune]int{}
	out.Grow(len(text))
	for _, r := range text {
		switch {
		case r == '\r' || r == '\u2028' || r == '\u2029' || r == '\u0085':
			out.WriteByte('\n')
		case r == '\n' || r == '\t':
			out.WriteRune(r)
		case unicode.Is(unicode.Zs, r):
			out.WriteByte(' ')
		case r >= 0xE0020 && r <= 0xE007E:
			tags.WriteRune(r - 0xE0000)
		case r == 0x200D || r == 0xFE0E || r == 0xFE0F || r == 0xFEFF && out.Len() == 0:
			// Parts of emoji and a byte order mark go too, but are nothing to tell people about.
		case unseen(r):
			dropped[r]++
		default:
			out.WriteRune(r)
		}
	}
	if tags.Len() > 0 {
		report.add(KindTagCharacters, utf8.RuneCountInString(tags.String()), tags.String())
	}
	report.addRunes(dropped)
	return out.String()
}

// unseen reports whether a character has no look of its own: controls, joiners, direction marks,
// fillers, variation selectors, private use and what Unicode says to ignore.
func unseen(r rune) bool {
	switch {
	case r < 0x20 || r >= 0x7F && r < 0xA0:
		return true
	case r < 0x300:
		return r == 0xAD
	case r >= 0x0600 && r <= 0x0605, r == 0x06DD, r == 0x070F, r >= 0x0890 && r <= 0x0891, r == 0x08E2, r == 0x110BD, r == 0x110CD:
		return false // signs that Unicode counts as format characters but that are written
	case unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point):
		return true
	}
	return r == 0x2800 // the blank Braille pattern
}

// addRunes reports dropped characters by their code points, the most frequent first.
func (r *report) addRunes(dropped map[rune]int) {
	if len(dropped) == 0 {
		return
	}
	total := 0
	points := make([]rune, 0, len(dropped))
	for point, n := range dropped {
		total += n
		points = append(points, point)
	}
	slices.SortFunc(points, func(a, b rune) int {
		if dropped[a] != dropped[b] {
			return dropped[b] - dropped[a]
		}
		return int(a - b)
	})
	var names []string
	for _, point := range points[:min(len(points), 5)] {
		names = append(names, fmt.Sprintf("U+%04X", point))
	}
	r.add(KindInvisible, total, strings.Join(names, ", "))
}

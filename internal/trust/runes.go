package trust

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// RemoveInvisible returns a text without invisible characters and with normalized line ends and spaces, so that people approve
// exactly the text that the agent gets.
func RemoveInvisible(text string) string { return cleanRunes(text, &report{}) }

// cleanRunes normalizes line ends and spaces and removes all invisible characters, including those in code. It splits
// joined emoji.
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
			// Parts of emoji and a byte order mark are removed without a report.
		case isInvisible(r):
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

// isInvisible reports whether a character is invisible: controls, joiners, direction marks, fillers, variation selectors,
// private use and Unicode's default ignorables.
func isInvisible(r rune) bool {
	switch {
	case r < 0x20 || r >= 0x7F && r < 0xA0:
		return true
	case r < 0x300:
		return r == 0xAD
	case r >= 0x0600 && r <= 0x0605, r == 0x06DD, r == 0x070F, r >= 0x0890 && r <= 0x0891, r == 0x08E2, r == 0x110BD, r == 0x110CD:
		return false // visible signs that Unicode classifies as format characters
	case unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs, unicode.Variation_Selector,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point):
		return true
	}
	return r == 0x2800 // the blank Braille pattern
}

// addRunes reports removed characters by code point, the most frequent first.
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

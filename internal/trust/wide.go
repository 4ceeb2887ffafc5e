package trust

import (
	"strings"
	"unicode"
)

// Columns from which text in code is too far to the right to be seen.
const (
	wideColumn = 100 // after it, a gap of wideGap hides the rest of the line
	wideGap    = 40
	wideBlank  = 160 // after it, any gap does if four fifths of the line are blank
	tabColumns = 8
)

// wide withholds the ends of code lines that spaces push so far to the right that a reader must scroll.
func (p *page) wide(start, end int) {
	line := strings.TrimRight(p.source[start:end], " \t\n")
	column, blank, gap, gapAt := 0, 0, 0, 0
	for i, r := range line {
		switch {
		case r == '\t' || isBlank(r):
			if gap == 0 {
				gapAt = i
			}
			width := 1
			if r == '\t' {
				width = tabColumns - column%tabColumns
			}
			column, blank, gap = column+width, blank+width, gap+width
			continue
		}
		if gap >= wideGap && column > wideColumn || gap > 1 && column > wideBlank && blank*5 >= column*4 {
			if line[i:] != wideNote {
				p.replace(start+gapAt, start+len(line), " "+wideNote, KindWide, line[i:])
			}
			return
		}
		column, gap = column+1, 0
	}
}

// isBlank reports whether a character takes up space but is invisible.
func isBlank(r rune) bool {
	switch r {
	case '\u2800', '\u3164', '\u115F', '\u1160', '\uFFA0':
		return true
	}
	return unicode.Is(unicode.Zs, r)
}

package trust

import (
	"strings"
	"unicode"
)

// Where text in code counts as too far to the right to be seen, in columns.
const (
	wideColumn = 100 // beyond it a gap of wideGap hides what follows
	wideGap    = 40
	wideBlank  = 160 // beyond it any gap does, if four fifths of the line are blank
	tabColumns = 8
)

// wide withholds the ends of lines of code that spaces push to the right, where a reader would have to scroll.
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

// isBlank reports whether a character shows nothing but takes up room.
func isBlank(r rune) bool {
	switch r {
	case '\u2800', '\u3164', '\u115F', '\u1160', '\uFFA0':
		return true
	}
	return unicode.Is(unicode.Zs, r)
}

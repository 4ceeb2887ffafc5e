package trust

import (
	"regexp"
	"strings"
)

var (
	footnoteLabel = regexp.MustCompile(`\[\^[^\]\s]+\]`)
	footnoteStart = regexp.MustCompile(`^[ \t>]*(\[\^[^\]\s]+\]):`)
)

// footnotes removes unreferenced footnotes up to the end of their paragraph and indented text, because GitHub does not
// show them.
func (p *page) footnotes() {
	used := p.footnoteLabels()
	start, end, blank := -1, 0, false
	flush := func() {
		if start >= 0 {
			p.remove(start, end, KindFootnote)
		}
		start = -1
	}
	at := 0
	for line := range strings.Lines(p.source) {
		from, to := at, at+len(strings.TrimRight(line, "\n"))
		at += len(line)
		m := footnoteStart.FindStringSubmatchIndex(line)
		switch {
		case m != nil && !p.inCode(from+m[2], from+m[3]):
			flush()
			if !used[line[m[2]:m[3]]] {
				start, end = from, to
			}
			blank = false
		case start < 0:
		case strings.TrimSpace(line) == "":
			blank = true
		case blank && !strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "\t"):
			flush()
		default:
			end = to
		}
	}
	flush()
}

// footnoteLabels returns the labels that occur anywhere except in a footnote's definition.
func (p *page) footnoteLabels() map[string]bool {
	used := map[string]bool{}
	for _, at := range footnoteLabel.FindAllStringIndex(p.source, -1) {
		if !strings.HasPrefix(p.source[at[1]:], ":") && !p.inCode(at[0], at[1]) {
			used[p.source[at[0]:at[1]]] = true
		}
	}
	return used
}

package trust

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// TeX commands whose output is invisible or unreadable.
var (
	formulaHides = regexp.MustCompile(`(?i)\\[hv]?phantom\b|\\(?:rlap|llap|clap|mathrlap|mathllap|mathclap|smash|tiny|label|ref|eqref|href|url|` +
		`class|cssId|style|bbox|(?:f|page)?colorbox|pagecolor|data|toggle|mathtip|texttip|mathchoice|mmlToken|newcommand|renewcommand|newenvironment|def|let|gdef|edef|require|definecolor|unicode)(?:[^A-Za-z]|$)` +
		`|\\begin\s*\{\s*comment` +
		`|\\(?:hspace|hskip|kern|mkern|mskip|mspace|raise|lower|rule|vspace|moveleft|moveright|hfil{1,3})\*?\s*(?:\[[^\]]*\]\s*)?\{?\s*(?:-|\d{3}|\d{2}(?:\.\d+)?\s*(?:em|ex|mu|cm|in|pc))` +
		`|\\\\\s*\[\s*(?:-|\d{3}|\d{2}(?:\.\d+)?\s*(?:em|ex|cm|in|pc))` +
		`|(?:\\q?quad\s*){20}|(?:\\[,:;! ~]\s*){60}`)
	formulaColor   = regexp.MustCompile(`(?i)\\(?:text)?color\s*(?:\[[^\]]*\]\s*)?\{?\s*(#?[0-9a-f]{6,8}\b|#[0-9a-f]{3,5}|[a-z]+\(?|[0-9.]+(?:\s*,\s*[0-9.]+){0,3})`)
	formulaComment = regexp.MustCompile(`(?:^|[^\\])%`)
	formulaNumbers = regexp.MustCompile(`^(?:1(?:\.0*)?|0?\.9\d*|2[3-5]\d)(?:\s*,\s*(?:1(?:\.0*)?|0?\.9\d*|2[3-5]\d))*$`)
)

// hidesInFormula reports whether a formula has parts that a reader does not see.
func hidesInFormula(tex string) bool {
	if formulaHides.MatchString(tex) || formulaComment.MatchString(tex) {
		return true
	}
	for _, m := range formulaColor.FindAllStringSubmatch(tex, -1) {
		if formulaNumbers.MatchString(m[1]) || hidingColor(m[1]) || areIndistinguishable(hexadecimal(m[1]), "white") ||
			strings.HasPrefix(m[1], "#") && areIndistinguishable(m[1], "#0d1117") { // the dark theme's background
			return true
		}
	}
	return false
}

var sixDigits = regexp.MustCompile(`^[0-9A-Fa-f]{6}`)

// hexadecimal adds the sign # to a color that TeX accepts without it.
func hexadecimal(color string) string {
	if sixDigits.MatchString(color) {
		return "#" + color
	}
	return color
}

// hiddenInFormula returns the parts of a text that hide something if the text is a formula. A percent sign starts a
// comment.
func hiddenInFormula(tex string) []span {
	var list []span
	for _, re := range []*regexp.Regexp{formulaHides, formulaComment} {
		for _, at := range re.FindAllStringIndex(tex, -1) {
			list = append(list, span{at[0], at[1]})
		}
	}
	for _, at := range formulaColor.FindAllStringIndex(tex, -1) {
		if hidesInFormula(tex[at[0]:at[1]]) {
			list = append(list, span{at[0], at[1]})
		}
	}
	slices.SortFunc(list, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	return list
}

var (
	paragraphBreak = regexp.MustCompile(`\n(?:[ \t>]*\n)+`)
	displayed      = regexp.MustCompile(`(?ms)^[ \t>]*\$\$[ \t]*$.*?^[ \t>]*\$\$[ \t]*$`) // lines between lines of dollar signs
)

// formulas withholds formulas in running text that have hidden parts. Text between two dollar signs of a paragraph
// counts as a formula even if GitHub shows the signs.
func (p *page) formulas() {
	masked := []byte(p.source)
	for _, c := range p.code {
		for i := c.start; i < c.end; i++ {
			if masked[i] != '\n' {
				masked[i] = ' '
			}
		}
	}
	for _, at := range displayed.FindAllIndex(masked, -1) {
		if tex := p.source[at[0]:at[1]]; paragraphBreak.MatchString(tex) && hidesInFormula(tex) {
			p.replace(at[0], at[1], formulaNote, KindFormula, tex)
			copy(masked[at[0]:at[1]], strings.Repeat(" ", at[1]-at[0]))
		}
	}
	text, from := string(masked), 0
	for _, gap := range append(paragraphBreak.FindAllStringIndex(text, -1), []int{len(text), len(text)}) {
		p.formulasIn(text[from:gap[0]], from)
		from = gap[1]
	}
}

// formulasIn withholds the formulas of a paragraph that starts at an offset.
func (p *page) formulasIn(text string, offset int) {
	if strings.Count(text, "$") < 2 {
		return
	}
	var signs []int
	for i := range len(text) {
		if text[i] == '$' {
			signs = append(signs, i)
		}
	}
	done := 0
	for _, hidden := range hiddenInFormula(text) {
		next, _ := slices.BinarySearch(signs, hidden.start+1)
		if hidden.start < done || next == 0 || next == len(signs) {
			continue
		}
		first, last := next-1, next
		if strings.HasSuffix(text[hidden.start:hidden.end], "%") && !closesFormula(text, signs[last]) {
			continue
		}
		for first > 0 && signs[first-1] == signs[first]-1 {
			first--
		}
		for last < len(signs)-1 && signs[last+1] == signs[last]+1 {
			last++
		}
		done = signs[last] + 1
		p.replace(offset+signs[first], offset+done, formulaNote, KindFormula, p.source[offset+signs[first]:offset+done])
	}
}

// closesFormula reports whether a dollar sign can end a formula, as opposed to starting an amount of money.
func closesFormula(text string, at int) bool {
	spaced := at > 0 && strings.IndexByte(" \t", text[at-1]) >= 0
	return !spaced && (at+1 == len(text) || !isAlnum(text[at+1]))
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// codeFormula withholds a formula written as code between dollar signs.
func (p *page) codeFormula(start, end int) {
	for start > 0 && strings.IndexByte("` \n", p.source[start-1]) >= 0 {
		start--
	}
	for end < len(p.source) && strings.IndexByte("` \n", p.source[end]) >= 0 {
		end++
	}
	if start == 0 || end == len(p.source) || p.source[start-1] != '$' || p.source[end] != '$' {
		return
	}
	if tex := p.source[start-1 : end+1]; hidesInFormula(tex) {
		p.replace(start-1, end+1, formulaNote, KindFormula, tex)
	}
}

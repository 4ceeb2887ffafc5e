package trust

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Notes that replace withheld text, so that the agent knows that something was there. Stripping again keeps them.
const (
	drawingNote = "[withheld: GitHub draws this, and does not show the text]"
	diagramNote = "[withheld: a diagram whose styles hide parts of it]"
	formulaNote = "(withheld: a formula with hidden parts)"
	wideNote    = "[withheld: text far to the right]"
	imageNote   = "(image)"
)

// drawnData matches the languages of code blocks that GitHub only shows as a map or model.
var drawnData = regexp.MustCompile(`(?i)^(?:geojson|topojson|stl)$`)

// Parts of mermaid diagrams that are not drawn.
var (
	diagramDirective = regexp.MustCompile(`(?s)%%\{.*?(?:\}%%|\z)`)
	diagramHeader    = regexp.MustCompile(`(?s)\A\s*---[ \t]*\n.*?(?:\n[ \t]*---[ \t]*(?:\n|\z)|\z)`)
	diagramComment   = regexp.MustCompile(`(?m)%%.*$`)
	diagramBlock     = regexp.MustCompile(`(?is)\baccDescr[ \t]*\{.*?(?:\}|\z)`)
	diagramUndrawn   = regexp.MustCompile(`(?im)(?:^|;)[ \t]*(?:(?:click|callback|href)[ \t]+\w|(?:links?|properties|details)[ \t]+\w[^\n:]*:|accTitle[ \t]*:|accDescr[ \t]*:).*$`)
	diagramStyle     = regexp.MustCompile(`(?im)(?:^|;)[ \t]*(?:classDef|style|linkStyle|themeCSS)\b(.*)$`)
	diagramTag       = regexp.MustCompile(`<[A-Za-z][^<>]*=[^<>]*>|<!--|(?i:<[a-z][^<>]*\shidden\b)|(?i:<(?:script|style|template|title|head|noscript|iframe|textarea|select|object)\b)|@\{[^}]*\bimg\b`)
	styleProperty    = regexp.MustCompile(`(?i)\b(color|fill)\s*:\s*(#[0-9a-f]{3,8}|[a-z]+\(?)`)
	styleHides       = regexp.MustCompile(`(?i)display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|opacity\s*:\s*(?:0*(?:\.[0-2]\d*)?(?:[^.\d]|$)|\d?\d(?:\.\d*)?%)|font-size\s*:\s*0*\.?[0-3](?:\D|$)|(?:^|[,;\s])(?:transform|clip(?:-path)?|filter|mask|text-indent|letter-spacing|zoom|scale|translate)\s*:`)
)

// stripDrawing removes the hidden parts of a code block that GitHub draws.
func (p *page) stripDrawing(n *ast.FencedCodeBlock) {
	if n.Info == nil {
		return
	}
	language := strings.ToLower(fenceLanguage.FindString(shownInfo(p.source[n.Info.Segment.Start:n.Info.Segment.Stop])))
	code := string(n.Lines().Value([]byte(p.source)))
	switch {
	case drawnData.MatchString(language):
		p.withhold(n.Lines(), drawingNote, KindDrawing)
	case language == "math" && hidesInFormula(code):
		p.withhold(n.Lines(), formulaNote, KindFormula)
	case language == "mermaid" && hidesInDiagram(code):
		p.withhold(n.Lines(), diagramNote, KindDiagram)
	case language == "mermaid":
		p.diagram(n.Lines(), code)
	}
}

// shownInfo returns the info string of a fence as GitHub reads it, with entities and escapes resolved.
func shownInfo(info string) string {
	return string(util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations([]byte(info)))))
}

// withhold replaces a code block's lines by a note.
func (p *page) withhold(lines *text.Segments, note string, kind Kind) {
	code := string(lines.Value([]byte(p.source)))
	if rest := strings.TrimSpace(code); rest == note || rest == "" {
		return
	}
	for i := range lines.Len() {
		line := lines.At(i)
		end := line.Start + len(strings.TrimRight(p.source[line.Start:line.Stop], "\n"))
		if i == 0 {
			p.replace(line.Start, max(end, line.Start), note, kind, code)
			continue
		}
		p.replace(line.Start, end, "", kindRoutine, "")
	}
}

// hidesInDiagram reports whether styles or markup hide a part of a diagram. Only mermaid knows which part.
func hidesInDiagram(code string) bool {
	if diagramTag.MatchString(code) {
		return true
	}
	for _, m := range diagramStyle.FindAllStringSubmatch(code, -1) {
		if styleHides.MatchString(m[1]) {
			return true
		}
		color, fill := "", "#ececff" // mermaid's defaults
		for _, property := range styleProperty.FindAllStringSubmatch(m[1], -1) {
			if strings.EqualFold(property[1], "color") {
				color = property[2]
			} else {
				fill = property[2]
			}
		}
		if color != "" && (hidingColor(color) || areIndistinguishable(color, fill)) {
			return true
		}
	}
	return false
}

// hidingColor reports whether a color is transparent, or can only be computed by a browser.
func hidingColor(color string) bool {
	return strings.HasSuffix(color, "(") || strings.HasPrefix(color, "#") && (len(color) == 5 || len(color) == 9) ||
		slices.Contains([]string{"transparent", "canvas", "currentcolor", "inherit"}, strings.ToLower(color))
}

// areIndistinguishable reports whether a reader cannot distinguish two colors.
func areIndistinguishable(a, b string) bool {
	x, okX := rgb(a)
	y, okY := rgb(b)
	if !okX || !okY {
		return strings.EqualFold(a, b)
	}
	for i := range x {
		if d := x[i] - y[i]; d > 48 || d < -48 {
			return false
		}
	}
	return true
}

// rgb parses a color: hexadecimal, or a name that is invisible on GitHub's backgrounds.
func rgb(color string) (list [3]int, ok bool) {
	switch color = strings.ToLower(color); color {
	case "white", "snow", "ivory", "none", "ghostwhite", "whitesmoke", "floralwhite", "azure", "mintcream", "seashell", "aliceblue":
		return [3]int{255, 255, 255}, true
	case "black":
		return [3]int{}, true
	}
	digits, found := strings.CutPrefix(color, "#")
	if !found || len(digits) < 3 {
		return list, false
	}
	if len(digits) < 6 {
		digits = strings.Repeat(digits[:1], 2) + strings.Repeat(digits[1:2], 2) + strings.Repeat(digits[2:3], 2)
	}
	for i := range list {
		n, err := strconv.ParseUint(digits[2*i:2*i+2], 16, 8)
		if err != nil {
			return list, false
		}
		list[i] = int(n)
	}
	return list, true
}

// diagram removes comments, directives, links and descriptions from a diagram.
func (p *page) diagram(lines *text.Segments, code string) {
	at := offsets(lines)
	for _, re := range []*regexp.Regexp{diagramHeader, diagramDirective, diagramBlock, diagramComment, diagramUndrawn} {
		for _, found := range re.FindAllStringIndex(code, -1) {
			p.removeLines(code, at, span{found[0], found[1]}, KindDiagram)
		}
	}
}

// offsets returns the source position of each byte of a code block's text, and of its end.
func offsets(lines *text.Segments) []int {
	var at []int
	for i := range lines.Len() {
		line := lines.At(i)
		for range line.Padding {
			at = append(at, line.Start)
		}
		for pos := line.Start; pos < line.Stop; pos++ {
			at = append(at, pos)
		}
	}
	return at
}

// removeLines removes a range of a code block's text line by line, because in a quote or list its lines are not
// contiguous in the source. It keeps line ends.
func (p *page) removeLines(code string, at []int, found span, kind Kind) {
	sample := code[found.start:found.end]
	for start := found.start; start < found.end; {
		length := strings.IndexByte(code[start:found.end], '\n')
		end := found.end
		if length >= 0 {
			end = start + length
		}
		if strings.Trim(code[start:end], " \t;") != "" && end <= len(at) {
			p.replace(at[start], at[end-1]+1, "", kind, sample)
			kind, sample = kindRoutine, ""
		}
		start = end + 1
	}
}

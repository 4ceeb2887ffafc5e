package markdown

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Limits beyond which a text is not parsed: parsing time grows with the square of both.
const (
	maxDepth = 60   // nesting depth of quotes on a line
	maxLinks = 3000 // openings of link destinations
)

// Document has the parts of a parsed text in which commands can be written.
type Document struct {
	CommandLines []int    // offsets of the first word of each line that can contain a command, ascending
	plain        []extent // text that readers see as plain text, including lists; ascending
}

// extent is a half-open range of bytes.
type extent struct{ from, to int }

// commandParser returns a parser for GitHub's Markdown. It recognizes footnotes only as blocks, which stay where they are
// defined.
func commandParser() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(append(parser.DefaultBlockParsers(),
			util.Prioritized(extension.NewFootnoteBlockParser(), 999))...),
		parser.WithInlineParsers(append(parser.DefaultInlineParsers(),
			util.Prioritized(extension.NewStrikethroughParser(), 500))...),
		parser.WithParagraphTransformers(append(parser.DefaultParagraphTransformers(),
			util.Prioritized(extension.NewTableParagraphTransformer(), 200))...),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
	)
}

// Parse finds the lines of a text that can contain a command: lines of paragraphs and underlined headings at the top level
// of the document, outside of HTML elements, whose first word is not part of emphasis, a link, an image, code or a
// formula. Lines have to end with "\n", as [Normalize] makes them.
func Parse(body string) Document {
	if TooComplex(body) {
		return Document{}
	}
	r := &blockReader{src: []byte(body), displays: extents(formulaBlock, body, 0)}
	r.children(commandParser().Parse(text.NewReader(r.src)), placeTop)
	return r.Document
}

// TooComplex reports whether a text is nested too deeply or has too many links to be parsed in bounded time, or has
// characters that Markdown parsers treat differently.
func TooComplex(body string) bool {
	if strings.ContainsAny(body, "\v\f") || strings.Count(body, "](") > maxLinks {
		return true
	}
	for line := range strings.Lines(body) {
		if quoteDepth(line) > maxDepth {
			return true
		}
	}
	return false
}

// quoteDepth returns the number of quote markers at the start of a line.
func quoteDepth(line string) int {
	markers := line[:len(line)-len(strings.TrimLeft(line, " \t>-*+"))]
	return strings.Count(markers, ">")
}

// GitHub renders these as formulas.
var (
	formulaBlock = regexp.MustCompile(`(?ms)^[ \t]*\$\$[ \t]*$.*?^[ \t]*\$\$[ \t]*$`)
	formula      = regexp.MustCompile(`\$\$[^$]+\$\$|(?:^|[^\w$\\])\$[^\s$](?:[^$]*[^\s$])?\$(?:[^\w$]|$)`)
)

func extents(re *regexp.Regexp, s string, offset int) []extent {
	var list []extent
	for _, at := range re.FindAllStringIndex(s, -1) {
		list = append(list, extent{offset + at[0], offset + at[1]})
	}
	return list
}

// blockReader visits the blocks of a document in the order in which GitHub shows them.
type blockReader struct {
	Document
	src      []byte
	html     openElements
	displays []extent // formulas on separate lines
	formulas []extent // formulas within the current block
}

// place classifies text by the blocks around it.
type place int

const (
	placeTop    place = iota // its lines can contain commands
	placeNested              // it is text by the comment's author
	placeOther               // it is quoted, in a table or the like
)

// children reads the blocks of a container. HTML elements that a Markdown block opens have to be closed in the same block,
// because the end of the block does not close all of them.
func (r *blockReader) children(container ast.Node, at place) {
	for n := container.FirstChild(); n != nil; n = n.NextSibling() {
		if n, ok := n.(*ast.HTMLBlock); ok {
			r.html.read(blockHTML(n, r.src))
			continue
		}
		floor := r.html.enter()
		r.block(n, at)
		r.html.leave(floor)
	}
}

func (r *blockReader) block(n ast.Node, at place) {
	switch n := n.(type) {
	case *ast.CodeBlock, *ast.FencedCodeBlock, *ast.LinkReferenceDefinition:
	case *ast.Paragraph, *ast.Heading, *ast.TextBlock:
		var starts []int
		if at == placeTop {
			starts = r.lineStarts(n)
		}
		r.formulas = r.formulasIn(n)
		r.inline(n, starts, at != placeOther)
	case *ast.List, *ast.ListItem:
		r.children(n, max(at, placeNested))
	case *extast.Footnote:
		if strings.ContainsAny(string(n.Ref), " \t[]\\") {
			r.html.broken = true // on GitHub this is text, not a footnote
		}
		r.children(n, placeOther)
	case *extast.TableCell:
		r.inline(n, nil, false)
	default:
		r.children(n, placeOther)
	}
}

// formulasIn returns the formulas within a block.
func (r *blockReader) formulasIn(n ast.Node) []extent {
	lines := n.Lines()
	if lines.Len() == 0 {
		return nil
	}
	from, to := lines.At(0).Start, lines.At(lines.Len()-1).Stop
	return extents(formula, string(r.src[from:to]), from)
}

// lineStarts returns the offsets of the first words of a block's lines. A heading that begins with # has none.
func (r *blockReader) lineStarts(n ast.Node) []int {
	var starts []int
	for i := range n.Lines().Len() {
		start := n.Lines().At(i).Start
		for start < len(r.src) && (r.src[start] == ' ' || r.src[start] == '\t') {
			start++
		}
		if margin(r.src, start) {
			starts = append(starts, start)
		}
	}
	return starts
}

// margin reports whether there are only spaces before the offset on its line.
func margin(src []byte, at int) bool {
	for i := at - 1; i >= 0 && src[i] != '\n'; i-- {
		if src[i] != ' ' && src[i] != '\t' {
			return false
		}
	}
	return true
}

// inline reads the content of a block. A line counts if it begins in plain text of the block itself. plain is false for
// text that never counts, such as struck-through text.
func (r *blockReader) inline(parent ast.Node, starts []int, plain bool) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		switch n := n.(type) {
		case *ast.Text:
			at := n.Segment.Start
			if plain && r.html.none() && !within(r.displays, at) && !within(r.formulas, at) {
				r.text(extent{n.Segment.Start, n.Segment.Stop}, starts)
			}
		case *ast.RawHTML:
			r.html.readInline(string(n.Segments.Value(r.src)))
		case *ast.Emphasis:
			r.inline(n, nil, plain)
		case *ast.CodeSpan:
		default: // links, images, struck-through text
			r.inline(n, nil, false)
		}
	}
}

// within reports whether one of the sorted, disjoint ranges begins before the offset and ends after it.
func within(list []extent, at int) bool {
	i, _ := slices.BinarySearchFunc(list, at, func(e extent, at int) int { return cmp.Compare(e.to, at+1) })
	return i < len(list) && list[i].from < at
}

// text records plain text and the lines that begin in it.
func (r *blockReader) text(e extent, starts []int) {
	r.plain = append(r.plain, e)
	at, _ := slices.BinarySearch(starts, e.from)
	for ; at < len(starts) && starts[at] < e.to; at++ {
		r.CommandLines = append(r.CommandLines, starts[at])
	}
}

// VisibleText returns the text with spaces in place of everything that is not plain text.
func (b Document) VisibleText(body string) string {
	out := []byte(body)
	at := 0
	for _, e := range append(b.plain, extent{len(out), len(out)}) {
		for ; at < e.from; at++ {
			if out[at] != '\n' {
				out[at] = ' '
			}
		}
		at = max(at, e.to)
	}
	return string(out)
}

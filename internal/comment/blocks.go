package comment

import (
	"sort"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// maxDepth bounds how deep quotes and lists are nested before a line counts as quoted unread;
// maxBrackets how many lines may begin as a link's definition does.
const (
	maxDepth    = 60
	maxBrackets = 300
)

// blocks is what a Markdown parser says about a text: where plain lines begin, and what is hidden,
// quoted or code.
type blocks struct {
	lines  []int    // starts of the words of plain lines, ascending
	hidden []extent // quotes, code, HTML; ascending
}

// extent is a half-open range of bytes.
type extent struct{ from, to int }

// commandParser returns a parser of blocks, code and HTML: what decides whether a line is plain.
// Links and emphasis are left out; they take time and decide nothing.
func commandParser() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(
			util.Prioritized(parser.NewCodeSpanParser(), 100),
			util.Prioritized(parser.NewRawHTMLParser(), 400),
		),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
	)
}

// parseBlocks finds the plain lines of a text whose line ends are "\n".
func parseBlocks(body string) blocks {
	src := []byte(flatten(body))
	doc := commandParser().Parse(text.NewReader(src))
	var b blocks
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.List: // its words are read, but its lines order nothing
			b.hideWithin(n)
			return ast.WalkSkipChildren, nil
		case *ast.Blockquote, *ast.CodeBlock, *ast.FencedCodeBlock, *ast.HTMLBlock, *ast.LinkReferenceDefinition:
			b.hide(n)
			return ast.WalkSkipChildren, nil
		case *ast.Paragraph, *ast.Heading, *ast.TextBlock:
			b.addLines(n, src)
		case *ast.CodeSpan, *ast.RawHTML:
			b.hideInline(n)
		}
		return ast.WalkContinue, nil
	})
	b.settle()
	return b
}

// flatten blanks lines that nest absurdly deep or define links without end, keeping every position: a
// parser's time grows with the square of both, and nobody means anything by them.
func flatten(body string) string {
	var out []byte
	at, brackets := 0, 0
	for line := range strings.Lines(body) {
		depth, first := nesting(line)
		if first == '[' {
			brackets++
		}
		if depth > maxDepth || first == '[' && brackets > maxBrackets {
			if out == nil {
				out = []byte(body)
			}
			for i := at; i < at+len(strings.TrimSuffix(line, "\n")); i++ {
				out[i] = '.'
			}
		}
		at += len(line)
	}
	if out == nil {
		return body
	}
	return string(out)
}

// nesting counts the signs of quotes and lists at the start of a line, and returns what follows them.
func nesting(line string) (depth int, first byte) {
	for _, c := range []byte(line) {
		switch c {
		case ' ', '\t':
		case '>', '-', '*', '+':
			depth++
		default:
			return depth, c
		}
	}
	return depth, 0
}

// addLines notes the lines of a block that begin at the margin.
func (b *blocks) addLines(n ast.Node, src []byte) {
	for i := range n.Lines().Len() {
		start := n.Lines().At(i).Start
		for start < len(src) && src[start] == ' ' {
			start++
		}
		if margin(src, start) {
			b.lines = append(b.lines, start)
		}
	}
}

// margin reports whether nothing but spaces stands before at on its line.
func margin(src []byte, at int) bool {
	for i := at - 1; i >= 0 && src[i] != '\n'; i-- {
		if src[i] != ' ' && src[i] != '\t' {
			return false
		}
	}
	return true
}

// hideWithin notes what is quoted, code or HTML somewhere in a list.
func (b *blocks) hideWithin(list ast.Node) {
	_ = ast.Walk(list, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Blockquote, *ast.CodeBlock, *ast.FencedCodeBlock, *ast.HTMLBlock, *ast.LinkReferenceDefinition:
			b.hide(n)
			return ast.WalkSkipChildren, nil
		case *ast.CodeSpan, *ast.RawHTML:
			b.hideInline(n)
		}
		return ast.WalkContinue, nil
	})
}

// hide notes a block and all that is in it, a fence's line with what stands on it too.
func (b *blocks) hide(n ast.Node) {
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering && n.Type() == ast.TypeBlock {
			for i := range n.Lines().Len() {
				seg := n.Lines().At(i)
				b.hidden = append(b.hidden, extent{seg.Start, seg.Stop})
			}
			switch n := n.(type) {
			case *ast.HTMLBlock:
				if n.HasClosure() {
					b.hidden = append(b.hidden, extent{n.ClosureLine.Start, n.ClosureLine.Stop})
				}
			case *ast.FencedCodeBlock:
				if n.Info != nil {
					b.hidden = append(b.hidden, extent{n.Info.Segment.Start, n.Info.Segment.Stop})
				}
			}
		}
		return ast.WalkContinue, nil
	})
}

// hideInline notes a code span or an inline HTML tag or comment.
func (b *blocks) hideInline(n ast.Node) {
	if raw, ok := n.(*ast.RawHTML); ok {
		for i := range raw.Segments.Len() {
			seg := raw.Segments.At(i)
			b.hidden = append(b.hidden, extent{seg.Start, seg.Stop})
		}
		return
	}
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			b.hidden = append(b.hidden, extent{t.Segment.Start, t.Segment.Stop})
		}
	}
}

// settle sorts, and drops the lines that begin inside something hidden.
func (b *blocks) settle() {
	sort.Slice(b.hidden, func(i, j int) bool { return b.hidden[i].from < b.hidden[j].from })
	sort.Ints(b.lines)
	kept, h, reach := b.lines[:0], 0, 0
	for _, at := range b.lines {
		for h < len(b.hidden) && b.hidden[h].from <= at {
			reach = max(reach, b.hidden[h].to)
			h++
		}
		if at >= reach {
			kept = append(kept, at)
		}
	}
	b.lines = kept
}

// visible returns the text with all that is hidden, quoted or code as spaces.
func (b blocks) visible(body string) string {
	out := []byte(body)
	for _, s := range b.hidden {
		for i := s.from; i < min(s.to, len(out)); i++ {
			if out[i] != '\n' {
				out[i] = ' '
			}
		}
	}
	return string(out)
}

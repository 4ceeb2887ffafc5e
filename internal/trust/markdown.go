package trust

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

// Patterns for parts of the source that goldmark does not report.
var (
	fenceLanguage = regexp.MustCompile(`^[A-Za-z0-9_+#.-]{1,20}`)
	blankLines    = regexp.MustCompile(`\n{3,}`)
)

// edit replaces a byte range of the source.
type edit struct {
	start, end int
	with       string
	kind       Kind
	sample     string
}

// span is a byte range.
type span struct{ start, end int }

// page is one pass over a Markdown text: goldmark reports code, markup and links, and edits are made in the source, so
// that the rest stays unchanged.
type page struct {
	source string
	code   []span
	tags   []tag
	edits  []edit
	ends   *linkEnds
	used   map[string]bool // labels that links refer to
	defs   []*ast.LinkReferenceDefinition
}

func stripMarkdown(source string, report *report) string {
	p := &page{source: source, ends: &linkEnds{inner: parser.NewLinkParser(), end: map[ast.Node]int{}}, used: map[string]bool{}}
	p.walk(p.parse())
	slices.SortFunc(p.code, func(a, b span) int { return cmp.Compare(a.start, b.start) })
	p.definitions()
	p.footnotes()
	p.markup()
	p.comments()
	p.formulas()
	p.entities()
	p.blanks()
	return p.apply(report)
}

// parse supports tables in addition to CommonMark, because they can hide cells.
func (p *page) parse() ast.Node {
	inline := parser.DefaultInlineParsers()
	for i, v := range inline {
		if v.Value == parser.NewLinkParser() {
			inline[i] = util.Prioritized(p.ends, v.Priority)
		}
	}
	transformers := append(parser.DefaultParagraphTransformers(), util.Prioritized(extension.NewTableParagraphTransformer(), 200))
	md := parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(inline...),
		parser.WithParagraphTransformers(transformers...),
	)
	return md.Parse(text.NewReader([]byte(p.source)))
}

// linkEnds is goldmark's link parser that also records where each link ends in the source.
type linkEnds struct {
	inner parser.InlineParser
	end   map[ast.Node]int
}

func (l *linkEnds) Trigger() []byte { return l.inner.Trigger() }

func (l *linkEnds) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	node := l.inner.Parse(parent, block, pc)
	switch node.(type) {
	case *ast.Link, *ast.Image:
		_, at := block.Position()
		l.end[node] = at.Start
	}
	return node
}

func (l *linkEnds) CloseBlock(parent ast.Node, block text.Reader, pc parser.Context) {
	if closer, ok := l.inner.(parser.CloseBlocker); ok {
		closer.CloseBlock(parent, block, pc)
	}
}

func (p *page) walk(root ast.Node) {
	// The visitor returns no error, so Walk returns none.
	_ = ast.Walk(root, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := node.(type) {
		case *ast.FencedCodeBlock:
			p.protect(n.Lines())
			p.fence(n)
			p.stripDrawing(n)
		case *ast.CodeBlock:
			p.protect(n.Lines())
		case *ast.CodeSpan:
			for c := n.FirstChild(); c != nil; c = c.NextSibling() {
				if t, ok := c.(*ast.Text); ok {
					p.code = append(p.code, span{t.Segment.Start, t.Segment.Stop})
				}
			}
			if first, ok := n.FirstChild().(*ast.Text); ok {
				p.codeFormula(first.Segment.Start, n.LastChild().(*ast.Text).Segment.Stop)
			}
		case *ast.HTMLBlock:
			p.blockTags(n)
		case *ast.RawHTML:
			p.inlineTag(n)
		case *ast.Link:
			p.link(n)
		case *ast.Image:
			p.image(n)
		case *ast.LinkReferenceDefinition:
			p.defs = append(p.defs, n)
		case *extast.TableRow:
			p.row(n)
		}
		return ast.WalkContinue, nil
	})
}

func (p *page) protect(lines *text.Segments) {
	for i := range lines.Len() {
		line := lines.At(i)
		p.code = append(p.code, span{line.Start, line.Stop})
		p.wide(line.Start, line.Stop)
	}
}

func (p *page) remove(start, end int, kind Kind) {
	p.replace(start, end, "", kind, p.source[start:end])
}

func (p *page) replace(start, end int, with string, kind Kind, sample string) {
	if start < end {
		p.edits = append(p.edits, edit{start, end, with, kind, sample})
	}
}

// inCode reports whether the range overlaps code. The code spans are ordered and do not overlap.
func (p *page) inCode(start, end int) bool {
	i, _ := slices.BinarySearchFunc(p.code, start, func(c span, at int) int { return cmp.Compare(c.end, at+1) })
	return i < len(p.code) && p.code[i].start < end
}

// fence keeps only the language after the opening fence, because GitHub does not show the rest.
func (p *page) fence(n *ast.FencedCodeBlock) {
	if n.Info == nil {
		return
	}
	at := n.Info.Segment
	info := p.source[at.Start:at.Stop]
	language := fenceLanguage.FindString(info)
	if rest := info[len(language):]; rest != "" && rest[0] != ' ' && rest[0] != '\t' && rest[0] != ',' && rest[0] != '{' {
		language = ""
	}
	if strings.TrimSpace(info[len(language):]) != "" {
		p.remove(at.Start+len(language), at.Stop, KindInfo)
	}
}

// row removes cells beyond the header's columns, which GitHub omits.
func (p *page) row(n *extast.TableRow) {
	last, ok := n.LastChild().(*extast.TableCell)
	if !ok || last.Lines().Len() == 0 {
		return
	}
	stop := last.Lines().At(0).Stop
	line := p.source[stop:]
	if end := strings.IndexByte(line, '\n'); end >= 0 {
		line = line[:end]
	}
	bar := strings.IndexByte(line, '|')
	if bar < 0 || strings.Trim(line[bar:], "| \t") == "" {
		return
	}
	p.remove(stop+bar+1, stop+len(line), KindCell)
}

// blanks closes the gaps left by removed blocks.
func (p *page) blanks() {
	for _, at := range blankLines.FindAllStringIndex(p.source, -1) {
		if !p.inCode(at[0]+2, at[1]) {
			p.replace(at[0]+2, at[1], "", kindRoutine, "")
		}
	}
}

// apply makes the edits from front to back. An edit that overlaps an earlier one is left for the next pass.
func (p *page) apply(report *report) string {
	slices.SortStableFunc(p.edits, func(a, b edit) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	var out strings.Builder
	at := 0
	for _, e := range p.edits {
		if e.start < at {
			continue
		}
		out.WriteString(p.source[at:e.start])
		out.WriteString(e.with)
		at = e.end
		if e.kind != kindRoutine {
			report.add(e.kind, 1, e.sample)
		}
	}
	out.WriteString(p.source[at:])
	return out.String()
}

// Package markdown makes untrusted text safe for errand's comments, and finds the lines of other people's comments
// that can contain a command.
//
// Embedded text can only be read: it has no open fences, HTML, check boxes or markers of errand, and it causes no
// notifications and closes no issue.
//
// Start with [Embed] for text in comments that errand writes, and with [Parse] for comments that it reads.
package markdown

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Embed makes untrusted Markdown safe to be part of a comment: it cannot affect the text after it, and it can only be
// read. HTML is shown as text, boxes cannot be ticked, mentions become code and cause no notifications, links show their
// addresses, images become links, headings are two levels deeper, and issue numbers after a closing keyword become code.
// Text that a Markdown parser still finds dangerous is shown verbatim in a code block. The result has no trailing
// space.
func Embed(s string) string {
	s = Clean(s)
	if s == "" {
		return ""
	}
	if TooComplex(s) {
		return CodeBlock(s)
	}
	safe := closeFences(disarm(s))
	if why := Danger(safe); why != "" {
		return CodeBlock(s)
	}
	return safe
}

// Clean normalizes line ends and spaces, and removes invisible characters.
func Clean(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.Is(unicode.Z, r):
			return ' '
		case unicode.IsControl(r) || unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point):
			return -1
		}
		return r
	}, Normalize(s))
	return strings.Trim(strings.TrimRight(s, " \t\n"), "\n")
}

// CodeBlock returns text verbatim in a fenced block, whose fence is longer than any in the text.
func CodeBlock(s string) string {
	fence := strings.Repeat("`", max(3, longestRun(s, '`')+1))
	return fence + "text\n" + breakMarkers(strings.TrimRight(Normalize(s), "\n")) + "\n" + fence
}

// longestRun returns the length of the longest run of c in s.
func longestRun(s string, c byte) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != c {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

var (
	ourMarker  = regexp.MustCompile(`(?i)<!--(\s*errand:)`)
	plainLink  = regexp.MustCompile(`^!?\[([^\[\]\n` + "`" + `<@\\]*)\]\((https?://[^\s()<>` + "`" + `\\]+)\)`)
	boxMark    = regexp.MustCompile(`^\[[ \txX]\]`)
	atEntity   = regexp.MustCompile(`(?i)^&(?:#0{0,9}64|#x0{0,9}40|commat);`)
	handle     = regexp.MustCompile(`^@[A-Za-z0-9](?:[A-Za-z0-9/_-]*[A-Za-z0-9])?(?:\[bot\])?`)
	closes     = regexp.MustCompile(`(?i)(?:^|[^A-Za-z0-9])(?:close[sd]?|fix(?:es|ed)?|resolve[sd]?)$`)
	reference  = regexp.MustCompile(`^(?:(?:[\w.-]+/[\w.-]+)?#\d+|[gG][hH]-\d+|https?://[^\s()<>` + "`" + `]+/(?:issues|pull)/\d+)`)
	atxHeading = regexp.MustCompile(`^( {0,3}(?:(?:>|[-*+]|\d{1,9}[.)])[ \t]+)*)(#{1,6})(?:[ \t]|$)`)
	underline  = regexp.MustCompile(`^[ \t>]*(=+|-+)[ \t]*$`)
	detailsTag = regexp.MustCompile(`(?i)^</?(?:details|summary|br|p|b|i|em|strong|sub|sup|kbd)[ \t]*/?>`)
)

// breakMarkers changes texts that look like errand's hidden markers, even in code.
func breakMarkers(s string) string { return ourMarker.ReplaceAllString(s, "<! --$1") }

// untrustedParser parses text whose HTML was disarmed: it knows no HTML and no links. It is made once.
var untrustedParser = sync.OnceValue(func() parser.Parser {
	md := goldmark.New(goldmark.WithParser(parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewSetextHeadingParser(), 100),
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(parser.NewListParser(), 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(parser.NewBlockquoteParser(), 800),
			util.Prioritized(parser.NewParagraphParser(), 1000),
		),
		parser.WithInlineParsers(util.Prioritized(parser.NewCodeSpanParser(), 100)),
	)), goldmark.WithExtensions(extension.Table))
	return md.Parser()
})

// gitHubParser parses text as GitHub does. It is made once.
var gitHubParser = sync.OnceValue(func() parser.Parser {
	return goldmark.New(goldmark.WithExtensions(extension.Table, extension.TaskList)).Parser()
})

// codeRanges returns the code in a text: spans with their backticks, blocks with their fences.
func codeRanges(src []byte) []extent {
	var list []extent
	_ = ast.Walk(untrustedParser().Parse(text.NewReader(src)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.CodeSpan:
			list = append(list, spanExtent(n, src))
			return ast.WalkSkipChildren, nil
		case *ast.FencedCodeBlock:
			list = append(list, fenceExtent(n, src))
		case *ast.CodeBlock:
			for i := range n.Lines().Len() {
				list = append(list, extent{n.Lines().At(i).Start, n.Lines().At(i).Stop})
			}
		}
		return ast.WalkContinue, nil
	})
	slices.SortFunc(list, func(a, b extent) int { return a.from - b.from })
	return list
}

// spanExtent returns the range of a code span with its backticks.
func spanExtent(n *ast.CodeSpan, src []byte) extent {
	first, ok1 := n.FirstChild().(*ast.Text)
	last, ok2 := n.LastChild().(*ast.Text)
	if !ok1 || !ok2 {
		return extent{}
	}
	e := extent{first.Segment.Start, last.Segment.Stop}
	for e.from > 0 && src[e.from-1] != '`' {
		e.from--
	}
	for e.from > 0 && src[e.from-1] == '`' {
		e.from--
	}
	for e.to < len(src) && src[e.to] != '`' {
		e.to++
	}
	for e.to < len(src) && src[e.to] == '`' {
		e.to++
	}
	return e
}

// fenceExtent returns the range of a fenced block, from its opening line to its closing one, if any.
func fenceExtent(n *ast.FencedCodeBlock, src []byte) extent {
	at := n.Pos()
	if n.Info != nil {
		at = n.Info.Segment.Start
	}
	e := extent{from: lineStart(src, at), to: lineEnd(src, at)}
	if l := n.Lines().Len(); l > 0 {
		e.to = max(e.to, n.Lines().At(l-1).Stop)
	}
	if e.to > 0 && e.to < len(src) && src[e.to-1] != '\n' {
		e.to = lineEnd(src, e.to)
	}
	next := src[e.to:lineEnd(src, e.to)]
	if trimmed := strings.Trim(string(next), " \t>\n"); len(trimmed) >= 3 && strings.Trim(trimmed, "`~") == "" {
		e.to += len(next)
	}
	return e
}

func lineStart(src []byte, at int) int {
	for at > 0 && src[at-1] != '\n' {
		at--
	}
	return at
}

// lineEnd returns the offset after the line's newline.
func lineEnd(src []byte, at int) int {
	for at < len(src) && src[at] != '\n' {
		at++
	}
	return min(at+1, len(src))
}

// closeFences closes an unterminated code block.
func closeFences(s string) string {
	const probe = "\n\nprobe\n"
	for _, end := range []string{"", "\n```", "\n~~~", "\n````", "\n~~~~", "\n``````"} {
		if endsPlain(s+end+probe, len(s+end)+2) {
			return s + end
		}
	}
	return s
}

// endsPlain reports whether the last block is a paragraph at the top level that begins at this offset.
func endsPlain(s string, at int) bool {
	doc := untrustedParser().Parse(text.NewReader([]byte(s)))
	last, ok := doc.LastChild().(*ast.Paragraph)
	return ok && last.Lines().Len() == 1 && last.Lines().At(0).Start == at
}

// Danger parses finished text as GitHub does and returns the kind of dangerous content, or "" if the text is safe.
func Danger(s string) string {
	const probe = "\n\nprobe\n"
	if !endsPlain(s+probe, len(s)+2) {
		return "an open block"
	}
	if ourMarker.MatchString(s) {
		return "a marker of errand"
	}
	src := []byte(s)
	doc := gitHubParser().Parse(text.NewReader(src))
	found := ""
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.HTMLBlock, *ast.RawHTML, *ast.Image, *ast.Link, *ast.LinkReferenceDefinition, *extast.TaskCheckBox:
			found = fmt.Sprintf("a %s", n.Kind())
		case *ast.CodeSpan, *ast.CodeBlock, *ast.FencedCodeBlock:
			return ast.WalkSkipChildren, nil
		default:
			if n.Type() != ast.TypeInline {
				found = cmp.Or(sideEffect(n, src), found)
			}
		}
		return ast.WalkContinue, nil
	})
	return found
}

var (
	anyMention = regexp.MustCompile(`(?:^|[^A-Za-z0-9])@[A-Za-z0-9]`)
	anyClosing = regexp.MustCompile(`(?i)(?:^|[^A-Za-z0-9])(?:close[sd]?|fix(?:es|ed)?|resolve[sd]?)[^\pL\pN#\x00]+(?:(?:[\w.-]+/[\w.-]+)?#|gh-|https?://[^\s\x00]+/(?:issues|pull)/)\d`)
)

// sideEffect returns the effect of a block's text on GitHub: a mention or a closing keyword. It is empty for text without
// effects; code has none.
func sideEffect(block ast.Node, src []byte) string {
	text := shownText(block, src)
	switch {
	case anyMention.MatchString(text):
		return "a mention"
	case anyClosing.MatchString(text):
		return "a closing keyword"
	}
	return ""
}

// shownText returns the text of a block without nested blocks, and with a zero byte in place of code.
func shownText(block ast.Node, src []byte) string {
	var b strings.Builder
	_ = ast.Walk(block, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.CodeSpan:
			if entering {
				b.WriteByte(0)
			}
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			if entering {
				b.Write(util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(n.Segment.Value(src)))))
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte('\n')
				}
			}
		default:
			if n != block && n.Type() == ast.TypeBlock {
				return ast.WalkSkipChildren, nil
			}
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// Cut truncates text to a number of characters, at the end of a line if possible, and returns the number of characters
// that it removed.
func Cut(s string, limit int) (string, int) {
	n := utf8.RuneCountInString(s)
	if n <= limit {
		return s, 0
	}
	r := []rune(s)[:max(limit, 0)]
	cut := string(r)
	if i := strings.LastIndexByte(cut, '\n'); i > len(cut)/2 {
		cut = cut[:i]
	}
	return cut, n - utf8.RuneCountInString(cut)
}

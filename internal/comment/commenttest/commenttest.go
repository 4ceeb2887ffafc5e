// Package commenttest reads comments as GitHub shows them, independently of the code that writes them.
//
// Tests of package comment and its sub-packages share it. Start with [Parse] and [ShownText].
package commenttest

import (
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Parse parses a comment as GitHub does.
func Parse(s string) ast.Node {
	md := goldmark.New(goldmark.WithExtensions(extension.Table, extension.TaskList, extension.Strikethrough, extension.Footnote))
	return md.Parser().Parse(text.NewReader([]byte(s)))
}

// closing matches the words by which GitHub closes an issue with a pull request's text.
var closing = regexp.MustCompile(`(?i)\b(?:close[sd]?|fix(?:es|ed)?|resolve[sd]?)[\s\pZ:]+(?:[\w.-]+/[\w.-]+)?#\d+`)

// ClosingReferences returns the closing keywords with their issues in the visible text of a comment.
func ClosingReferences(s string) []string {
	return closing.FindAllString(ShownText(Parse(s), []byte(s)), -1)
}

// ShownText returns the text that a reader sees, one block per line, with a zero byte in place of code.
func ShownText(doc ast.Node, src []byte) string {
	var b strings.Builder
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		switch n := n.(type) {
		case *ast.CodeSpan, *ast.CodeBlock, *ast.FencedCodeBlock, *ast.RawHTML:
			b.WriteByte(0)
			return ast.WalkSkipChildren, nil
		case *ast.String:
			if entering {
				b.Write(n.Value)
			}
		case *ast.Text:
			if entering {
				b.Write(util.ResolveEntityNames(util.ResolveNumericReferences(util.UnescapePunctuations(n.Segment.Value(src)))))
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte('\n')
				}
			}
		default:
			if n.Type() != ast.TypeInline {
				b.WriteByte('\n')
			}
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

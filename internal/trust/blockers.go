package trust

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// An IssueRef names an issue or pull request.
type IssueRef struct {
	Owner, Name string
	Number      int
}

// maxBlockers limits the references in one text.
const maxBlockers = 50

var (
	blockingWords = regexp.MustCompile(`(?i)(?:\b(not|never|no longer|isn't|aren't|was|were|previously|longer|don't|doesn't)[ \t]+)?\b(?:blocked[ \t]*[ \t\n][ \t]*(?:by|on)|depends?[ \t]*[ \t\n][ \t]*(?:up)?on|waits?[ \t]*[ \t\n][ \t]*for)\b[ \t]*(:?)`)
	blockerRef    = regexp.MustCompile(`^(?:https?://[A-Za-z0-9.-]+(?::\d+)?/([A-Za-z0-9-]{1,39})/([A-Za-z0-9._-]{1,100})/(?:issues|pull)/|(?:([A-Za-z0-9-]{1,39})/([A-Za-z0-9._-]{1,100}))?#)([1-9][0-9]{0,8})\b`)
	betweenRefs   = regexp.MustCompile(`^(?:[ \t]*(?:,|;|&|\band\b|\bor\b|\+)[ \t]*)+|^[ \t]+`)
	nextItem      = regexp.MustCompile(`^[^\n\x02]*(?:\n+\x02|\n)[ \t]*`)
)

// Blockers returns the issues that a text names as blocking its issue, in order of appearance, without duplicates and
// at most 50. It reads "blocked by #1, #2 and owner/repo#3" and a list under "Depends on:", outside code, quotes, HTML
// and struck-through text. home is the text's own issue: bare numbers refer to its repository, and it cannot block
// itself.
//
// Pass only text by trusted people, as returned by [Decide].
func Blockers(markdown string, home IssueRef) []IssueRef {
	var refs []IssueRef
	words := readable(markdown)
	for _, at := range blockingWords.FindAllStringSubmatchIndex(words, -1) {
		if at[2] >= 0 {
			continue // "not blocked by"
		}
		for _, ref := range refsAt(words[at[1]:], home, at[4] < at[5]) {
			if !slices.Contains(refs, ref) && !sameIssue(ref, home) && len(refs) < maxBlockers {
				refs = append(refs, ref)
			}
		}
	}
	return refs
}

func sameIssue(a, b IssueRef) bool {
	return strings.EqualFold(a.Owner, b.Owner) && strings.EqualFold(a.Name, b.Name) && a.Number == b.Number
}

// refsAt reads references from the start of rest up to the first other word. After a colon it also reads those at the
// start of following lines or list items.
func refsAt(rest string, home IssueRef, colon bool) []IssueRef {
	var refs []IssueRef
	if strings.HasPrefix(rest, "\n") && !strings.HasPrefix(rest, "\n\n") {
		rest = rest[1:] // the sentence continues after a line break
	}
	fresh := false // at the start of a following line
	for len(refs) < maxBlockers {
		rest = rest[len(betweenRefs.FindString(rest)):]
		m := blockerRef.FindStringSubmatch(rest)
		if m == nil {
			next := nextItem.FindString(rest)
			if !colon || fresh || next == "" {
				return refs
			}
			rest, fresh = rest[len(next):], true
			continue
		}
		fresh = false
		rest = rest[len(m[0]):]
		number, err := strconv.Atoi(m[5])
		if err != nil {
			return refs
		}
		ref := IssueRef{Owner: m[1] + m[3], Name: m[2] + m[4], Number: number}
		if ref.Owner == "" {
			ref.Owner, ref.Name = home.Owner, home.Name
		}
		refs = append(refs, ref)
	}
	return refs
}

// readable returns a text's paragraphs, headings and list items without markup and without code, quotes, HTML and
// struck-through text. Each is followed by an empty line, and list items are preceded by \x02.
func readable(markdown string) string {
	source := []byte(markdown)
	inline := append(parser.DefaultInlineParsers(), util.Prioritized(extension.NewStrikethroughParser(), 500))
	md := parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(inline...),
		parser.WithParagraphTransformers(parser.DefaultParagraphTransformers()...),
	)
	var out strings.Builder
	// The visitor returns no error, so Walk returns none.
	_ = ast.Walk(md.Parse(text.NewReader(source)), func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		return readNode(&out, node, source, entering), nil
	})
	return out.String()
}

func readNode(out *strings.Builder, node ast.Node, source []byte, entering bool) ast.WalkStatus {
	switch n := node.(type) {
	case *ast.Blockquote, *ast.CodeBlock, *ast.FencedCodeBlock, *ast.HTMLBlock, *ast.CodeSpan, *ast.RawHTML, *ast.Image:
		if entering {
			out.WriteString("\x00") // the omitted text is not a reference and ends a list of references
		}
		return ast.WalkSkipChildren
	case *ast.Paragraph, *ast.TextBlock, *ast.Heading:
		if !entering {
			out.WriteString("\n\n")
		}
	case *ast.ListItem:
		if entering {
			out.WriteString("\x02")
		}
	case *ast.AutoLink:
		if entering {
			out.Write(n.URL(source))
		}
	case *ast.Text:
		if entering {
			out.Write(n.Segment.Value(source))
			if n.SoftLineBreak() || n.HardLineBreak() {
				out.WriteByte('\n')
			}
		}
	default:
		if node.Kind().String() == "Strikethrough" {
			if entering {
				out.WriteString("\x00")
			}
			return ast.WalkSkipChildren
		}
	}
	return ast.WalkContinue
}

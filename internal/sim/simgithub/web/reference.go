package web

import (
	"bytes"
	"regexp"
	"strconv"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// scope has the targets of references in a text.
type scope struct {
	full   string          // the repository
	issues map[int]bool    // numbers; true for pull requests
	people map[string]bool // logins
	commit func(name string) (sha string)
}

var scopeKey = parser.NewContextKey()

// referenceParser makes links of #N and @login if the issue or account exists.
type referenceParser struct{}

var referenceText = regexp.MustCompile(`^(?:#(\d{1,9})|@([A-Za-z0-9][A-Za-z0-9-]*))`)

// Trigger implements parser.InlineParser.
func (referenceParser) Trigger() []byte { return []byte{'#', '@'} }

// Parse implements parser.InlineParser.
func (referenceParser) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	in, ok := pc.Get(scopeKey).(scope)
	before := block.PrecendingCharacter()
	if !ok || before == '_' || before == '/' || before == '&' || isWordRune(before) || pc.IsInLinkLabel() {
		return nil
	}
	line, _ := block.PeekLine()
	m := referenceText.FindSubmatch(line)
	if m == nil || len(m[0]) < len(line) && isWordRune(rune(line[len(m[0])])) {
		return nil
	}
	to := ""
	if n, err := strconv.Atoi(string(m[1])); err == nil {
		if pull, known := in.issues[n]; known {
			to = "/" + in.full + map[bool]string{true: "/pull/", false: "/issues/"}[pull] + strconv.Itoa(n)
		}
	} else if login := string(m[2]); in.people[login] {
		to = "/" + login
	}
	if to == "" {
		return nil
	}
	link := ast.NewLink()
	link.Destination = []byte(to)
	link.AppendChild(link, ast.NewString(bytes.Clone(m[0])))
	block.Advance(len(m[0]))
	return link
}

func isWordRune(r rune) bool {
	return r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
}

// commitLinker makes links of commit ids in running text, if there is such a commit.
type commitLinker struct{}

var commitText = regexp.MustCompile(`\b[0-9a-f]{7,40}\b`)

// Transform implements parser.ASTTransformer.
func (commitLinker) Transform(doc *ast.Document, reader text.Reader, pc parser.Context) {
	in, ok := pc.Get(scopeKey).(scope)
	if !ok || in.commit == nil {
		return
	}
	var found []*ast.Text
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the walker returns no error
		switch t := n.(type) {
		case *ast.Link, *ast.AutoLink, *ast.CodeSpan:
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			if entering && commitText.Match(t.Value(reader.Source())) {
				found = append(found, t)
			}
		}
		return ast.WalkContinue, nil
	})
	for _, t := range found[:min(len(found), 50)] {
		linkCommits(t, reader.Source(), in)
	}
}

// linkCommits splits a text node at its commit ids and makes links of them.
func linkCommits(t *ast.Text, source []byte, in scope) {
	for _, at := range commitText.FindAllIndex(t.Value(source), 20) {
		start := t.Segment.Start
		name := string(t.Value(source)[at[0]:at[1]])
		sha := in.commit(name)
		if sha == "" {
			continue
		}
		link := ast.NewLink()
		link.Destination = []byte("/" + in.full + "/commit/" + sha)
		code := ast.NewCodeSpan()
		code.AppendChild(code, ast.NewTextSegment(text.NewSegment(start+at[0], start+at[0]+min(7, at[1]-at[0]))))
		link.AppendChild(link, code)
		rest := ast.NewTextSegment(text.NewSegment(start+at[1], t.Segment.Stop))
		rest.SetSoftLineBreak(t.SoftLineBreak())
		rest.SetHardLineBreak(t.HardLineBreak())
		t.Segment = text.NewSegment(start, start+at[0])
		t.SetSoftLineBreak(false)
		t.SetHardLineBreak(false)
		parent := t.Parent()
		parent.InsertAfter(parent, t, link)
		parent.InsertAfter(parent, link, rest)
		linkCommits(rest, source, in)
		return
	}
}

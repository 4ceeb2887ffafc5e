package web

import (
	"bytes"
	"fmt"
	"html/template"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/microcosm-cc/bluemonday"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
	nethtml "golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// markdown renders texts like GitHub: tables, task lists, harmless HTML, line breaks as typed, and links
// for #N and @login. It removes HTML comments and everything active.
type markdown struct {
	md     goldmark.Markdown
	policy *bluemonday.Policy
	secret string // marks the place of a task's box until the text is sanitized
	place  *regexp.Regexp
}

// boxes returns the HTML of a task's box. The boxes of a text are counted from 0; label is the text of the task.
type boxes func(n int, checked bool, label string) string

// sharedMarkdown is created once per process, because that takes long. It never changes.
var sharedMarkdown = sync.OnceValue(newMarkdown)

func newMarkdown() *markdown {
	m := &markdown{secret: randomToken(), policy: bluemonday.UGCPolicy()}
	m.place = regexp.MustCompile(m.secret + `:(\d+):(true|false):`)
	m.policy.AllowAttrs("class").Matching(regexp.MustCompile(`^(language-[\w+#-]+|d-(add|del|hunk))$`)).OnElements("code", "span")
	m.policy.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|right|center)$`)).OnElements("p", "div", "td", "th", "h1", "h2", "h3")
	m.policy.AllowAttrs("open").OnElements("details")
	m.md = goldmark.New(
		goldmark.WithExtensions(
			extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
			extension.Strikethrough, extension.Linkify, extension.TaskList,
		),
		goldmark.WithParserOptions(
			parser.WithInlineParsers(util.Prioritized(referenceParser{}, 900)),
			parser.WithASTTransformers(util.Prioritized(commitLinker{}, 900)),
		),
		goldmark.WithRendererOptions(
			html.WithUnsafe(), html.WithHardWraps(),
			renderer.WithNodeRenderers(util.Prioritized(m, 100)),
		),
	)
	return m
}

// render returns a text as HTML that is safe in a page.
func (m *markdown) render(src string, in scope, box boxes) template.HTML {
	pc := parser.NewContext()
	pc.Set(scopeKey, in)
	source := []byte(src)
	root := m.md.Parser().Parse(text.NewReader(source), parser.WithContext(pc))
	var labels []string
	for n, b := range taskBoxes(root) {
		b.SetAttributeString("n", n)
		labels = append(labels, plainText(b.Parent(), source))
	}
	var b bytes.Buffer
	if err := m.md.Renderer().Render(&b, source, root); err != nil {
		return asTyped(src)
	}
	safe, err := balanced(m.policy.Sanitize(b.String()))
	if err != nil {
		return asTyped(src)
	}
	safe = m.place.ReplaceAllStringFunc(safe, func(s string) string {
		f := m.place.FindStringSubmatch(s)
		n, _ := strconv.Atoi(f[1]) // the pattern has only digits here
		return box(n, f[2] == "true", template.HTMLEscapeString(labels[n]))
	})
	return template.HTML(safe) // sanitized above
}

// balanced closes open elements, drops closing tags without an element, and removes ids, because labels and forms of
// the page refer to its own ids.
func balanced(fragment string) (string, error) {
	nodes, err := nethtml.ParseFragment(strings.NewReader(fragment), &nethtml.Node{Type: nethtml.ElementNode, Data: "div", DataAtom: atom.Div})
	if err != nil {
		return "", fmt.Errorf("parse rendered text: %w", err)
	}
	var b strings.Builder
	for _, root := range nodes {
		root.Attr = slices.DeleteFunc(root.Attr, isID)
		for n := range root.Descendants() {
			n.Attr = slices.DeleteFunc(n.Attr, isID)
		}
		if err := nethtml.Render(&b, root); err != nil {
			return "", fmt.Errorf("write rendered text: %w", err)
		}
	}
	return b.String(), nil
}

func isID(a nethtml.Attribute) bool { return a.Key == "id" }

// asTyped returns a text that cannot be rendered.
func asTyped(src string) template.HTML {
	return template.HTML("<pre>" + template.HTMLEscapeString(src) + "</pre>")
}

// plainText returns the text of a node and its children without markup.
func plainText(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the walker returns no error
		switch t := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(t.Value(source))
			}
		case *ast.String:
			if entering {
				b.Write(t.Value)
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

// fixedBoxes returns boxes that cannot be changed.
func fixedBoxes(_ int, checked bool, label string) string {
	mark := ""
	if checked {
		mark = " checked"
	}
	return `<input type="checkbox" class="task" disabled` + mark + ` aria-label="` + label + `">`
}

// tickBoxes returns boxes that are buttons of a form and post their numbers.
func tickBoxes(form string) boxes {
	return func(n int, checked bool, label string) string {
		return fmt.Sprintf(`<button class="task" role="checkbox" aria-checked="%t" form="%s" name="box" value="%d" aria-label="%s">%s</button>`,
			checked, template.HTMLEscapeString(form), n, label, map[bool]string{true: "✓", false: ""}[checked])
	}
}

// tick changes the n-th box of a text. It returns false if there is no such box.
func (m *markdown) tick(src string, n int) (string, bool) {
	source := []byte(src)
	list := taskBoxes(m.md.Parser().Parse(text.NewReader(source)))
	if n < 0 || n >= len(list) {
		return "", false
	}
	lines := list[n].Parent().Lines()
	if lines == nil || lines.Len() == 0 {
		return "", false
	}
	seg := lines.At(0)
	at := bytes.IndexByte(source[seg.Start:seg.Stop], '[')
	if at < 0 || seg.Start+at+2 >= len(source) {
		return "", false
	}
	mark := byte('x')
	if list[n].IsChecked {
		mark = ' '
	}
	source[seg.Start+at+1] = mark
	return string(source), true
}

func taskBoxes(root ast.Node) (list []*east.TaskCheckBox) {
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the walker returns no error
		if b, ok := n.(*east.TaskCheckBox); ok && entering {
			list = append(list, b)
		}
		return ast.WalkContinue, nil
	})
	return list
}

// RegisterFuncs implements renderer.NodeRenderer for boxes and code.
func (m *markdown) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(east.KindTaskCheckBox, m.renderBox)
	reg.Register(ast.KindFencedCodeBlock, m.renderCode)
}

func (m *markdown) renderBox(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		num, _ := n.AttributeString("n")
		fmt.Fprintf(w, "%s:%d:%t: ", m.secret, num, n.(*east.TaskCheckBox).IsChecked)
	}
	return ast.WalkContinue, nil
}

// renderCode colors the lines of a diff, as GitHub does.
func (m *markdown) renderCode(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	block := node.(*ast.FencedCodeBlock)
	lang := string(block.Language(source))
	_, _ = fmt.Fprintf(w, `<pre><code class="language-%s">`, template.HTMLEscapeString(lang))
	for n := range block.Lines().Len() {
		seg := block.Lines().At(n)
		line := string(seg.Value(source))
		class := ""
		if lang == "diff" && line != "" {
			class = map[byte]string{'+': "d-add", '-': "d-del", '@': "d-hunk"}[line[0]]
		}
		if class == "" {
			_, _ = w.WriteString(template.HTMLEscapeString(line))
			continue
		}
		_, _ = fmt.Fprintf(w, `<span class="%s">%s</span>`, class, template.HTMLEscapeString(strings.TrimSuffix(line, "\n")))
	}
	_, _ = w.WriteString("</code></pre>\n")
	return ast.WalkSkipChildren, nil
}

package markdown

import (
	"slices"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	"golang.org/x/net/html"
)

// openElements tracks the open HTML elements of a comment, so that text within them does not count as plain text. Tags
// that are not nested correctly make the rest of the comment count as within an element.
type openElements struct {
	names  []string
	floor  int // elements below it were opened outside of the current block
	broken bool
}

// none reports whether no element is open.
func (o *openElements) none() bool { return len(o.names) == 0 && !o.broken }

// enter begins a Markdown block, which cannot close elements from outside of it. Pass its result to leave.
func (o *openElements) enter() int {
	before := o.floor
	o.floor = len(o.names)
	return before
}

// leave ends a Markdown block, which must not leave elements open.
func (o *openElements) leave(before int) {
	o.broken = o.broken || len(o.names) != o.floor
	o.floor = before
}

// readInline reads a tag, comment or declaration within a line. Versions of CommonMark differ in which texts are comments,
// so a comment must not contain a possible tag.
func (o *openElements) readInline(raw string) {
	if strings.HasPrefix(raw, "<!--") && strings.Contains(raw[1:], "<") {
		o.broken = true
	}
	o.read(raw)
}

// read reads raw HTML as a browser does.
func (o *openElements) read(raw string) {
	z := html.NewTokenizer(strings.NewReader(raw))
	for at := 0; !o.broken; {
		kind := z.Next()
		token := string(z.Raw())
		if kind == html.ErrorToken {
			o.broken = o.broken || at < len(raw) // the rest is an unterminated tag
			return
		}
		at += len(token)
		switch kind {
		case html.CommentToken, html.DoctypeToken:
			o.broken = o.broken || !strings.HasSuffix(token, ">")
		case html.StartTagToken, html.SelfClosingTagToken:
			z.NextIsNotRawText()
			o.start(tagName(z), token)
		case html.EndTagToken:
			o.end(tagName(z), token)
		}
	}
}

func tagName(z *html.Tokenizer) string {
	name, _ := z.TagName()
	return string(name)
}

func (o *openElements) start(name, token string) {
	switch elementKinds()[name] {
	case elementShownAsText:
		o.broken = o.broken || strings.Contains(token[1:], "<") // it may be a tag
	case elementPlain, elementImplied:
		o.names = append(o.names, name)
	}
}

// end closes the innermost element of this name, and the elements within it whose end tags are optional. Without open
// elements, an end tag has no effect.
func (o *openElements) end(name, token string) {
	kinds := elementKinds()
	switch kinds[name] {
	case elementShownAsText:
		o.broken = o.broken || strings.Contains(token[1:], "<")
		return
	case elementPlain, elementImplied:
	default:
		return
	}
	at := len(o.names) - 1
	for at >= o.floor && o.names[at] != name && kinds[o.names[at]] == elementImplied {
		at--
	}
	switch {
	case at >= o.floor && o.names[at] == name:
		o.names = o.names[:at]
	case len(o.names) > 0:
		o.broken = true
	}
}

// elementKind classifies elements by the effect of their tags.
type elementKind int

const (
	elementUnknown     elementKind = iota // not an HTML element: GitHub drops the tags and shows their content
	elementPlain                          // open from its start tag to its end tag
	elementImplied                        // like elementPlain, but the end of the surrounding element closes it
	elementShownAsText                    // GitHub shows the tag itself
)

// elementKinds returns the kinds of HTML elements by name. The map is made once. It omits void elements and p, which
// cannot contain later blocks.
var elementKinds = sync.OnceValue(func() map[string]elementKind {
	kinds := map[string]elementKind{}
	for kind, names := range map[elementKind]string{
		elementPlain: `a abbr acronym address applet article aside audio b bdi bdo big blink blockquote body button canvas
			caption center cite code colgroup content data datalist del details dfn dialog dir div dl em fieldset figcaption
			figure font footer form frameset h1 h2 h3 h4 h5 h6 head header hgroup html i ins kbd label legend listing main map
			mark marquee math menu menuitem meter multicol nav nobr noscript object ol output picture portal pre progress q
			rb rtc ruby s samp search section select shadow slot small spacer span strike strong sub summary sup svg table
			template time tt u ul var video`,
		elementImplied:     `dd dt li optgroup option rp rt tbody td tfoot th thead tr`,
		elementShownAsText: `iframe noembed noframes plaintext script style textarea title xmp`,
	} {
		for name := range strings.FieldsSeq(names) {
			kinds[name] = kind
		}
	}
	return kinds
})

// blockHTML returns the raw text of a block of HTML, without the markers of a quote around it.
func blockHTML(n *ast.HTMLBlock, src []byte) string {
	raw := slices.Clone(n.Lines().Value(src))
	if n.HasClosure() {
		raw = append(raw, n.ClosureLine.Value(src)...)
	}
	return string(raw)
}

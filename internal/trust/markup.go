package trust

import (
	"html"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	xhtml "golang.org/x/net/html"
)

// Patterns for raw HTML. Styles are matched in lower case and without spaces.
var (
	hidingStyle = regexp.MustCompile(`display:none|visibility:(?:hidden|collapse)|opacity:0?\.?0*(?:;|%|!|$)|` +
		`(?:font-size|max-height|max-width|height|width):0*\.?0+(?:[a-z%]+)?(?:;|!|$)|` +
		`(?:^|;)color:(?:transparent|white|#fff(?:fff)?\b|rgba\([^)]*,0?\.?0*\))|` +
		`text-indent:-|(?:left|top|right|bottom):-\d{3,}|clip(?:-path)?:|font:0`)
	wholeComment      = regexp.MustCompile(`(?s)<!--.*?-->`)
	entity            = regexp.MustCompile(`&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});`)
	alphanumericStart = regexp.MustCompile(`^[0-9A-Za-z]`)
)

// tag is one start or end tag of raw HTML in the source.
type tag struct {
	span
	name  string
	end   bool
	attrs []xhtml.Attribute
}

// inlineTag records a tag in running text; anything else in angle brackets is removed.
func (p *page) inlineTag(n *ast.RawHTML) {
	if n.Segments.Len() == 0 {
		return
	}
	start, end := n.Segments.At(0).Start, n.Segments.At(n.Segments.Len()-1).Stop
	raw := p.source[start:end]
	if strings.HasPrefix(raw, "<!") || strings.HasPrefix(raw, "<?") {
		p.remove(start, end, KindComment)
		return
	}
	p.tokenize(raw, func(int) int { return start }, func(int) int { return end })
}

// blockTags records the tags of an HTML block, whose lines may not be contiguous in the source (in a quote).
func (p *page) blockTags(n *ast.HTMLBlock) {
	var raw strings.Builder
	var starts, offsets []int
	take := func(from, to int) {
		starts, offsets = append(starts, raw.Len()), append(offsets, from)
		raw.WriteString(p.source[from:to])
	}
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		take(line.Start, line.Stop)
	}
	if n.HasClosure() {
		take(n.ClosureLine.Start, n.ClosureLine.Stop)
	}
	if len(starts) == 0 {
		return
	}
	at := func(offset int) int {
		i, found := slices.BinarySearch(starts, offset)
		if !found {
			i--
		}
		return offsets[i] + offset - starts[i]
	}
	p.tokenize(raw.String(), at, func(offset int) int { return at(offset-1) + 1 })
}

// tokenize parses raw HTML as a browser does. An unclosed construct hides the rest of the page, so all of it is
// removed.
func (p *page) tokenize(raw string, first, last func(int) int) {
	z := xhtml.NewTokenizer(strings.NewReader(raw))
	for offset := 0; ; {
		kind := z.Next()
		text := string(z.Raw())
		if kind == xhtml.ErrorToken {
			if offset < len(raw) {
				p.remove(first(offset), len(p.source), KindElement)
			}
			return
		}
		if text == "" {
			continue
		}
		start, end := first(offset), last(offset+len(text))
		offset += len(text)
		switch kind {
		case xhtml.CommentToken, xhtml.DoctypeToken:
			if strings.HasPrefix(text, "<!--") && !strings.HasSuffix(text, ">") {
				end = len(p.source)
			}
			p.remove(start, end, KindComment)
		case xhtml.StartTagToken, xhtml.SelfClosingTagToken, xhtml.EndTagToken:
			token := z.Token()
			p.tags = append(p.tags, tag{span: span{start, end}, name: token.Data, end: kind == xhtml.EndTagToken, attrs: token.Attr})
		}
	}
}

// markup removes hidden elements with their content, unknown tags without it (GitHub shows their content), and
// invisible attributes of other tags.
func (p *page) markup() {
	shown, literal, kept := shownTags(), literalTags(), keptAttributes()
	slices.SortStableFunc(p.tags, func(a, b tag) int { return a.start - b.start })
	small, preEnd := 0, 0
	for i, t := range p.tags {
		small = smaller(small, t)
		switch {
		case literal[t.name]:
			p.replace(t.start, t.start+1, "&lt;", kindRoutine, "")
		case !t.end && isHidden(t.attrs):
			p.remove(t.start, p.closing(i), KindElement)
		case !t.end && t.name == "pre" && isDrawn(t.attrs):
			p.remove(t.start, p.closing(i), KindDrawing)
		case small == maxSmall && !t.end && isSmall(t.name):
			p.remove(t.start, p.closing(i), KindTiny)
		case !t.end && t.name == "img" && !slices.ContainsFunc(t.attrs, isUpload):
			p.otherImage(t)
		case !shown[t.name]:
			p.remove(t.start, t.span.end, KindMarkup)
		case !t.end:
			p.attributes(t, kept)
		}
		if !t.end && t.name == "pre" && t.start >= preEnd {
			preEnd = p.closing(i)
			p.widePre(t.span.end, preEnd)
		}
	}
}

// maxSmall is the number of nested small elements from which text is unreadable.
const maxSmall = 5

func isSmall(name string) bool { return name == "sub" || name == "sup" || name == "small" }

// smaller updates the number of enclosing elements that reduce the text size.
func smaller(depth int, t tag) int {
	switch {
	case !isSmall(t.name):
		return depth
	case t.end:
		return max(depth-1, 0)
	}
	return depth + 1
}

// isDrawn reports whether GitHub draws the code in an element with these attributes.
func isDrawn(attrs []xhtml.Attribute) bool {
	return slices.ContainsFunc(attrs, func(a xhtml.Attribute) bool {
		return a.Key == "lang" && (drawnData.MatchString(a.Val) || strings.EqualFold(a.Val, "mermaid") || strings.EqualFold(a.Val, "math"))
	})
}

// otherImage removes an image, except the ID of an upload.
func (p *page) otherImage(t tag) {
	note, kind, alt := imageNote, KindImageAddress, ""
	for _, a := range t.attrs {
		switch a.Key {
		case "src":
			if upload := uploadOf(a.Val); upload != "" {
				note, kind = "![]("+upload+")", KindImageText
			}
		case "alt":
			alt = strings.TrimSpace(a.Val)
		}
	}
	if kind == KindImageText && routineAlt.MatchString(alt) {
		kind = kindRoutine
	}
	p.replace(t.start, t.span.end, note, kind, p.source[t.start:t.span.end])
}

func isUpload(a xhtml.Attribute) bool { return a.Key == "src" && uploadedImage.MatchString(a.Val) }

// widePre finds text far to the right in an element that keeps spaces.
func (p *page) widePre(start, end int) {
	for at := start; at < end; {
		next := end
		if length := strings.IndexByte(p.source[at:end], '\n'); length >= 0 {
			next = at + length + 1
		}
		p.wide(at, next)
		at = next
	}
}

// closing returns the end of the element opened by the i-th tag: after its end tag, immediately for a void element,
// otherwise the end of the text.
func (p *page) closing(i int) int {
	opened := p.tags[i]
	switch opened.name {
	case "br", "hr", "img", "wbr", "embed", "input":
		return opened.span.end
	}
	depth := 0
	for _, t := range p.tags[i:] {
		if t.name != opened.name {
			continue
		}
		if !t.end {
			depth++
			continue
		}
		if depth--; depth == 0 {
			return t.span.end
		}
	}
	return len(p.source)
}

func isHidden(attrs []xhtml.Attribute) bool {
	for _, a := range attrs {
		switch a.Key {
		case "hidden":
			return true
		case "style":
			compact := strings.Join(strings.Fields(strings.ToLower(a.Val)), "")
			if hidingStyle.MatchString(compact) {
				return true
			}
		case "width", "height":
			if strings.Trim(a.Val, "0px% ") == "" && strings.Contains(a.Val, "0") {
				return true
			}
		}
	}
	return false
}

// attributes rewrites a start tag with the allowed attributes if any other must be removed.
func (p *page) attributes(t tag, kept map[string]*regexp.Regexp) {
	var out strings.Builder
	var gone []string
	report := false
	out.WriteString("<" + t.name)
	for _, a := range t.attrs {
		value, script := strings.TrimSpace(a.Val), isData([]byte(a.Val))
		form := kept[a.Key]
		if form == nil || !form.MatchString(value) || script {
			gone = append(gone, a.Key+"="+a.Val)
			report = report || a.Key != "alt" || !routineAlt.MatchString(value)
			continue
		}
		out.WriteString(" " + a.Key)
		if a.Val != "" {
			out.WriteString(`="` + html.EscapeString(strings.ReplaceAll(a.Val, "\n", " ")) + `"`)
		}
	}
	out.WriteString(">")
	kind := kindRoutine
	if report {
		kind = KindAttribute
	}
	if len(gone) > 0 {
		p.replace(t.start, t.span.end, out.String(), kind, strings.Join(gone, " "))
	}
}

// comments removes complete comments outside code even if goldmark treats them as text, because other Markdown parsers
// may not.
func (p *page) comments() {
	for _, at := range wholeComment.FindAllStringIndex(p.source, -1) {
		if !p.inCode(at[0], at[1]) {
			p.remove(at[0], at[1], KindComment)
		}
	}
}

// isInTag reports whether a position is within a tag, where quotes must stay encoded.
func (p *page) isInTag(at int) bool {
	return slices.ContainsFunc(p.tags, func(t tag) bool { return t.start <= at && at < t.span.end })
}

// entities decodes HTML entities, so that a text contains the displayed characters. Characters with a meaning in HTML
// and Markdown stay encoded, because decoding would make them markup.
func (p *page) entities() {
	for _, at := range entity.FindAllStringIndex(p.source, -1) {
		raw := p.source[at[0]:at[1]]
		plain := html.UnescapeString(raw)
		if plain == raw || strings.ContainsAny(plain, "<>&[]`~\\|*") || p.inCode(at[0], at[1]) || p.isInTag(at[0]) {
			continue
		}
		plain = cleanRunes(plain, &report{})
		kind := kindRoutine
		if plain == "" || alphanumericStart.MatchString(plain) {
			kind = KindEncoded
		}
		p.replace(at[0], at[1], strings.ReplaceAll(plain, "\n", " "), kind, raw)
	}
}

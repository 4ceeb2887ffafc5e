package trust

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	xhtml "golang.org/x/net/html"
)

// addGoldenInputs adds the inputs of the golden tests.
func addGoldenInputs(f *testing.F, add func(string)) {
	files, err := filepath.Glob("testdata/strip/*.md")
	if err != nil || len(files) == 0 {
		f.Fatalf("inputs: %v, %v", files, err)
	}
	for _, file := range files {
		in, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		add(string(in))
	}
}

// FuzzStrip checks the invariants of every text: the result is stable and has no invisible characters and, in texts
// without code, no complete comment and no attribute that contains text.
func FuzzStrip(f *testing.F) {
	addGoldenInputs(f, func(s string) { f.Add(s) })
	f.Add("[a](b \"c\n> d\") ![x](<y z>) <a href='x\"y' alt=z>")
	f.Add("<div hidden><p title=\"a\">x</div>&#60;&#x3c;!--")
	comment := regexp.MustCompile(`(?s)<!--.*?-->`)
	attribute := regexp.MustCompile(`(?i)<(?:a|img|span|p|div)(?:\s[^<>]*)?\s(?:alt|title|aria-label|placeholder|data-[a-z]+)="[^"<>]*"[^<>]*>`)
	f.Fuzz(func(t *testing.T, text string) {
		out, _ := Strip(text)
		if again, more := Strip(out); again != out {
			t.Fatalf("not stable: %q, then %q (%v)", out, again, more)
		}
		if i := strings.IndexFunc(out, func(r rune) bool { return isInvisible(r) && r != '\n' && r != '\t' }); i >= 0 {
			t.Fatalf("unseen character in %q", out)
		}
		if strings.ContainsAny(out, "`~\t\\") || strings.Contains(out, "   ") {
			return
		}
		if found := comment.FindString(out); found != "" {
			t.Fatalf("comment %q left in %q", found, out)
		}
		if found := attribute.FindString(out); found != "" && !strings.ContainsAny(found, "<>\"'=") {
			t.Fatalf("attribute %q left in %q", found, out)
		}
	})
}

// waysToHide returns markup that hides a word from readers.
func waysToHide() []string {
	return []string{
		"<!-- CANARY -->", "<!--\n\nCANARY\n-->", "<div hidden>CANARY</div>", "<span style=\"display:none\">CANARY</span>", "<p title=\"CANARY\">x</p>",
		"[x](https://x.org \"CANARY\")", "![CANARY](https://x.org/p.png)", "![x](https://x.org/p.png 'CANARY')", "<img src=\"p.png\" alt=\"CANARY\">", "\n\n[unused]: https://x.org/CANARY\n\n",
		"\n\n[y]: https://x.org \"CANARY\"\n\n[y]", "\n\n[^9]: CANARY\n\n", "\n\n| a |\n|---|\n| b | CANARY |\n\n", "\n\n```go CANARY\nx\n```\n\n", "[](https://x.org/CANARY)", "<a href=\"data:text/plain,CANARY\">x</a>",
		"<custom data-x=\"CANARY\">x</custom>", "<![CDATA[CANARY]]>", "<?php CANARY ?>", "<!DOCTYPE CANARY>", "<details CANARY>x</details>", "[x](javascript:CANARY)", "<svg><desc>CANARY", "<div\nhidden\n>CANARY",
		"\n\n```mermaid\ngraph TD\n%% CANARY\nA-->B\n```\n\n", "\n\n~~~ mermaid\n%%{init: {\"x\":\n\"CANARY\"}}%%\n~~~\n\n", "\n\n```Mermaid\nclick A \"https://x.org\" \"CANARY\"\n```\n\n",
		"\n\n```mermaid\nclassDef x fill:#fff,color:#fff\nA[CANARY]:::x\n```\n\n", "\n\n```geojson\n{\"a\": \"CANARY\"}\n```\n\n", "\n\n```topojson\n\nCANARY\n```\n\n", "\n\n```stl\nsolid CANARY\n```\n\n",
		"$x \\phantom{CANARY}$", "$$\\color{white} CANARY$$", "$\\textcolor{#fff}{CANARY}$", "$`\\tiny CANARY`$", "\n\n```math\nx % CANARY\n```\n\n",
		"![](https://x.org/CANARY.png)", "![x][z]\n\n[z]: https://x.org/CANARY.png\n\n", "<img src=\"https://x.org/CANARY.png\">", "\n\n```\nx" + strings.Repeat(" ", 300) + "CANARY\n```\n\n",
		"<pre>\nx" + strings.Repeat("\t", 40) + "CANARY\n</pre>", strings.Repeat("<sub>", 8) + "CANARY" + strings.Repeat("</sub>", 8),
	}
}

// FuzzStripHidden hides a word inside any text. If it remains after stripping, readers can see it: in code, or as text
// because of the surrounding markup.
func FuzzStripHidden(f *testing.F) {
	for i := range waysToHide() {
		f.Add(uint8(i), "Hello", "world")
		f.Add(uint8(i), "`a", "b`")
		f.Add(uint8(i), "> * x <b>", "\n\n```\n")
		f.Add(uint8(i), "<details>\n\n[a](<", ">)\n-->\n</div>")
	}
	addGoldenInputs(f, func(s string) { f.Add(uint8(0), s, s) })
	f.Fuzz(func(t *testing.T, how uint8, before, after string) {
		if len(before)+len(after) > 3000 || strings.Contains(strings.ToUpper(before+after), "CANARY") {
			return
		}
		list := waysToHide()
		out, _ := Strip(before + list[int(how)%len(list)] + after)
		if again, more := Strip(out); again != out {
			t.Fatalf("not stable: %q, then %q (%v)", out, again, more)
		}
		if !strings.Contains(out, "CANARY") {
			return
		}
		if seen := visibleText(t, out); !strings.Contains(seen, "CANARY") {
			t.Errorf("the word is left, and not seen, in\n%q\nof which is seen\n%q", out, seen)
		}
	})
}

// visibleText renders Markdown and returns the visible text of the page and the targets of its links.
func visibleText(t *testing.T, markdown string) string {
	t.Helper()
	var page bytes.Buffer
	md := goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList, extension.Footnote), goldmark.WithRendererOptions(html.WithUnsafe()))
	if err := md.Convert([]byte(markdown), &page); err != nil {
		t.Fatal(err)
	}
	root, err := xhtml.Parse(&page)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	var walk func(n *xhtml.Node)
	walk = func(n *xhtml.Node) {
		if n.Type == xhtml.TextNode {
			b.WriteString(shownOf(n))
		}
		for _, a := range n.Attr {
			switch a.Key {
			case "hidden":
				return
			case "style":
				if strings.Contains(a.Val, "none") {
					return
				}
			case "href":
				if !strings.HasPrefix(a.Val, "data:") && !strings.HasPrefix(a.Val, "javascript:") {
					b.WriteString(" " + a.Val + " ")
				}
			}
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c)
		}
	}
	walk(root)
	return b.String()
}

// Markup whose text is not visible.
var (
	undrawn   = regexp.MustCompile(`(?m)%%.*$|(?s:%%\{.*?\}%%)|^\s*click .*$`)
	styled    = regexp.MustCompile(`(?m)^\s*classDef \w+ fill:#fff,color:#fff$`)
	invisible = regexp.MustCompile(`\$[^$]*(?:\\phantom\{|\\color\{white\}|\\textcolor\{#fff\}|\\tiny )[^$]*\$`)
	offscreen = regexp.MustCompile(`(?m)(?: {200,}|\t{30,}).*$`)
)

// shownOf returns the visible text of a node.
func shownOf(n *xhtml.Node) string {
	text, small, code := n.Data, 0, false
	for around := n.Parent; around != nil; around = around.Parent {
		switch around.Data {
		case "sub", "sup", "small":
			small++
		case "pre":
			text = offscreen.ReplaceAllString(text, "")
		case "code":
			code = true
			for _, a := range around.Attr {
				switch language := strings.ToLower(a.Val); {
				case language == "language-geojson" || language == "language-topojson" || language == "language-stl", language == "language-mermaid" && styled.MatchString(text):
					return ""
				case language == "language-mermaid":
					text = undrawn.ReplaceAllString(text, "")
				case language == "language-math":
					text, _, _ = strings.Cut(text, "%")
				}
			}
		}
	}
	if small > 7 {
		return ""
	}
	if code {
		return text
	}
	return invisible.ReplaceAllString(text, "")
}

// FuzzStripLine: every title becomes one line of visible characters, and stripping it again does not change it.
func FuzzStripLine(f *testing.F) {
	f.Add("Cr\u200bash\u202e\r\non <!-- start -->")
	f.Add("\U000E0041\u2028 \xff\t")
	f.Fuzz(func(t *testing.T, text string) {
		out, _ := StripLine(text)
		if again, more := StripLine(out); again != out || more != nil {
			t.Errorf("not stable: %q, then %q (%v)", out, again, more)
		}
		if strings.ContainsFunc(out, func(r rune) bool { return isInvisible(r) || r != ' ' && unicode.IsSpace(r) }) {
			t.Errorf("unseen, or no line: %q", out)
		}
		for _, r := range text { // and visible characters are kept
			if r > ' ' && r < 0x7F && strings.Count(out, string(r)) != strings.Count(text, string(r)) {
				t.Errorf("%q is lost of %q: %q", r, text, out)
			}
		}
	})
}

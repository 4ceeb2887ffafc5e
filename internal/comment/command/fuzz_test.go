package command

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	render "github.com/yuin/goldmark/renderer/html"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/errand-bot/errand/internal/comment/markdown"
	"github.com/errand-bot/errand/internal/naming"
	"github.com/errand-bot/errand/state"
	"github.com/errand-bot/errand/state/machine"
)

// FuzzParse: for any comment, the orders are valid and within the limits, each is parsed again from its formatted form, and
// the same comment as a quote, as code or hidden contains no commands.
func FuzzParse(f *testing.F) {
	for _, wrap := range wrappers() {
		f.Add(fmt.Sprintf(wrap, "@errand approve"), false)
	}
	for _, s := range []string{"@errand approve a1b2c3d4 2 with: x\ny", "@errand retry fresh turns=3", "@errand after: x\n@errand y", "@errand after:\n\n@errand after: @errand stop", "x\n@errand After : \u202ey\n```", "> @errand x", "@errand budget +12h", "@errand budget +1.5\n@errand model a",
		"x\n\n@errand create pr A-1", "@errand plan base: a/b", "@errand\n```\n@errand stop\n```", "@errand aprove", "`@errand\n@errand go`", "[a]:\n@errand stop", "1. @errand x\n@errand y"} {
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, body string, onPR bool) {
		p := Parse(body, "errand", onPR)
		if p.Mention != (len(p.Orders) > 0) || p.Mention && p.Quoted || len(p.Orders) > machine.MaxOrders || len(p.Left) > maxLeft {
			t.Fatalf("mention %v, quoted %v with %d orders", p.Mention, p.Quoted, len(p.Orders))
		}
		if p.Base != "" && !naming.ValidBranch(p.Base) {
			t.Errorf("base %q", p.Base)
		}
		for _, o := range p.Orders {
			checkOrder(t, o, onPR)
			checkPrinted(t, o, onPR)
		}
		checkSeen(t, body)
		for how, hidden := range disguises(body) {
			if q := Parse(hidden, "errand", onPR); q.Mention || len(q.Orders) > 0 || q.Base != "" {
				t.Errorf("%s: it contains the commands %+v, base %q:\n%s", how, q.Orders, q.Base, hidden)
			}
		}
	})
}

// disguises returns a text in all forms in which it is not plain text of a comment.
func disguises(body string) map[string]string {
	body = markdown.Normalize(body)
	if len(body) > 2000 {
		return nil
	}
	lines := strings.Split(body, "\n")
	indented := slices.Clone(lines)
	for i := range lines {
		lines[i], indented[i] = "> "+lines[i], "    "+lines[i]
	}
	fence := strings.Repeat("`", max(3, strings.Count(body, "`")+1))
	listed := "- " + fence + "\n  " + strings.ReplaceAll(body, "\n", "\n  ") + "\n  " + fence
	inline := inlineOnly(body)
	element := strings.Split("blockquote del q code pre details td", " ")[len(body)%7]
	return map[string]string{
		"in an element, blank lines around it": "<" + element + ">\n\n" + strings.ReplaceAll(body, "</", "< /") + "\n\n</" + element + ">",
		"in an element that never ends":        "x <" + element + ">\n\n" + strings.ReplaceAll(body, "</", "< /"),
		"in an image's text":                   "![x\n" + inline + "](https://x.org/p.png)",
		"in a link's text":                     "[x\n" + inline + "](https://x.org)",
		"struck through":                       "~~x\n" + inline + "y~~",
		"emphasised":                           "**x\n" + inline + "y**",
		"in a table":                           "| a |\n|---|\n" + inline + "y",

		"quoted":      strings.Join(lines, "\n"),
		"fenced":      fence + "\n" + body + "\n" + fence,
		"not closed":  "~~~~~~~~ text\n" + strings.ReplaceAll(body, "~", "-"),
		"in a list":   listed,
		"on a fence":  "~~~ " + strings.ReplaceAll(body, "\n", " ") + "\n~~~",
		"indented":    strings.Join(indented, "\n"),
		"commented":   "<!--\n" + strings.ReplaceAll(body, "--", "- ") + "\n-->",
		"in a script": "<script>\n" + strings.ReplaceAll(body, "</", "< /") + "\n</script>",
	}
}

// inlineOnly returns the lines of a text that are words, without signs of Markdown.
func inlineOnly(body string) string {
	var b strings.Builder
	for line := range strings.Lines(body) {
		line = strings.Map(func(r rune) rune {
			if r == '@' || r == ' ' || r == '+' || r == '.' || unicode.IsLetter(r) || r < 0x80 && unicode.IsDigit(r) {
				return r
			}
			return -1
		}, line)
		if line = strings.TrimSpace(line); line != "" && (line[0] == '@' || unicode.IsLetter(rune(line[0]))) {
			b.WriteString(line + "\n")
		}
	}
	if b.Len() == 0 {
		return "@errand approve\n"
	}
	return strings.ReplaceAll(b.String(), "base", "b")
}

// checkSeen renders a comment as HTML and checks that each of its commands begins a line of a paragraph or an underlined
// heading outside of other elements.
func checkSeen(t *testing.T, body string) {
	t.Helper()
	body = markdown.Normalize(body)
	const name, canary = "@errand", "@qzxwvk"
	lines := markdown.Parse(body).CommandLines
	for _, at := range lines[:min(len(lines), 20)] {
		if _, ok := mentionAt(body[at:], "errand"); !ok || len(body) > 4000 {
			continue
		}
		if marked := body[:at] + canary + body[at+len(name):]; !shownPlainly(t, marked, canary) {
			t.Errorf("the command at %d is not visible as plain text in\n%q", at, body)
		}
	}
}

var filteredTags = regexp.MustCompile(`(?i)<(/?(?:title|textarea|style|xmp|iframe|noembed|noframes|script|plaintext)[\s/>])`)

// htmlElements are the elements of HTML that a text can stand in.
const htmlElements = `a abbr acronym address applet article aside audio b bdi bdo big blink blockquote body button canvas caption center cite code
	colgroup content data datalist dd del details dfn dialog dir div dl dt em fieldset figcaption figure font footer form
	frameset h1 h2 h3 h4 h5 h6 head header hgroup html i iframe ins kbd label legend li listing main map mark marquee math menu
	menuitem meter multicol nav nobr noembed noframes noscript object ol optgroup option output p picture plaintext portal pre
	progress q rb rp rt rtc ruby s samp script search section select shadow slot small spacer span strike strong style sub
	summary sup svg table tbody td template textarea tfoot th thead time title tr tt u ul var video xmp`

func shownPlainly(t *testing.T, source, word string) bool {
	t.Helper()
	var page strings.Builder
	md := goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList, extension.Footnote), goldmark.WithRendererOptions(render.WithUnsafe()))
	if err := md.Convert([]byte(source), &page); err != nil {
		t.Fatal(err)
	}
	context := &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div}
	nodes, err := html.ParseFragment(strings.NewReader(filteredTags.ReplaceAllString(page.String(), "&lt;$1")), context)
	if err != nil {
		t.Fatal(err)
	}
	found, elements := false, strings.Fields(htmlElements)
	var walk func(n *html.Node, around []string)
	walk = func(n *html.Node, around []string) {
		if n.Type == html.TextNode && len(around) == 1 && slices.Contains([]string{"p", "h1", "h2"}, around[0]) {
			for line := range strings.Lines(n.Data) {
				found = found || strings.HasPrefix(strings.TrimLeft(line, " \t"), word)
			}
		}
		if n.Type == html.ElementNode && slices.Contains(elements, n.Data) {
			around = append(slices.Clone(around), n.Data)
		}
		for c := n.FirstChild; c != nil; c = c.NextSibling {
			walk(c, around)
		}
	}
	for _, n := range nodes {
		walk(n, nil)
	}
	return found
}

// checkOrder checks an order against the limits of the table.
func checkOrder(t *testing.T, o state.Order, onPR bool) {
	t.Helper()
	if o.Verb == state.VerbMessage || o.Verb == state.VerbUnknown || o.Verb == state.VerbHelp {
		return
	}
	known := slices.ContainsFunc(Table(), func(c Entry) bool {
		return c.Verb == o.Verb && (c.Where == Both || onPR == (c.Where == OnPR))
	})
	hash := o.Hash == "" || len(o.Hash) >= 7 && len(o.Hash) <= 64 && strings.Trim(o.Hash, "0123456789abcdef") == ""
	money := (o.Verb == state.VerbBudget) == (o.MicroUSD > 0 || o.Tokens > 0 || o.VMHours > 0) && (o.MicroUSD == 0 || o.Tokens == 0) && o.Tokens <= maxBudgetTokens && o.VMHours <= maxBudgetHours && o.MicroUSD <= maxBudgetUSD*1_000_000
	if !known || !hash || !money || o.Choice < 0 || o.Choice > MaxChoice || o.Turns < 0 || o.Turns > maxTurns || len(o.Arg) > maxName+200 {
		t.Errorf("order %+v", o)
	}
	if o.Verb != state.VerbApprove && (o.Hash != "" || o.Choice != 0 || o.With != "") || o.Verb != state.VerbRetry && (o.Fresh || o.Turns != 0) {
		t.Errorf("order %+v has arguments of another command", o)
	}
}

// delimiterRow matches a text whose second line makes the first one the head of a table.
var delimiterRow = regexp.MustCompile(`^[^\n]*\n[ \t|:-]+(?:\n|$)`)

// checkPrinted parses the formatted form of an order.
func checkPrinted(t *testing.T, o state.Order, onPR bool) {
	t.Helper()
	if strings.Contains(o.Text+o.With, "@") || strings.ContainsAny(o.Text+o.With, "\u00a0\u2003\u2028\u0085") {
		return // mentions in the text would be read again
	}
	if markdown.TooComplex(Format(o)) || delimiterRow.MatchString(Format(o)) {
		return // it would not be read, or as the head of a table
	}
	again := Parse("@errand "+Format(o), "errand", onPR)
	if len(again.Orders) != 1 || !cmp.Equal(again.Orders[0], o) {
		t.Errorf("order %+v is formatted as %q, which is parsed as %+v", o, Format(o), again.Orders)
	}
}

// FuzzFormat: every order that the syntax allows is parsed again from its formatted form.
func FuzzFormat(f *testing.F) {
	for i := range Table() {
		f.Add(uint8(i), uint32(0xa1b2c3d), uint8(3), int64(1_500_000), "keep the flag", "ABC-1", true)
	}
	f.Fuzz(func(t *testing.T, verb uint8, hash uint32, n uint8, micro int64, words, arg string, flag bool) {
		words = plainWords(words)
		c := Table()[int(verb)%len(Table())]
		o := state.Order{Verb: c.Verb}
		switch c.Verb {
		case state.VerbApprove:
			o.Choice, o.With = int(n)%(MaxChoice+1), words
			if flag {
				o.Hash = fmt.Sprintf("%08x", hash)
			}
		case state.VerbRetry:
			o.Fresh, o.Turns = flag, int(n)*2%(maxTurns+1)
		case state.VerbBudget:
			if flag {
				o.Tokens = 1 + int64(uint64(micro)%maxBudgetTokens)
			} else {
				o.MicroUSD = 1 + int64(uint64(micro)%(maxBudgetUSD*1_000_000))
			}
		case state.VerbIssue:
			o.Choice = 1 + int(n)%state.MaxProposals
		case state.VerbReplan:
			o.Text = words
		case state.VerbMessage:
			o.Text, o.After = "x"+words, true
		case state.VerbPlan, state.VerbModel, state.VerbCreatePR:
			o = anArgument(c, arg)
		}
		checkPrinted(t, o, c.Where == OnPR)
	})
}

// plainWords reduces a text to letters, digits and single spaces.
func plainWords(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == ' ' || unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

// anArgument returns an order with a valid form of the argument.
func anArgument(c Entry, arg string) state.Order {
	var b strings.Builder
	for _, r := range arg {
		if r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r)) && b.Len() < 20 {
			b.WriteRune(r)
		}
	}
	o := state.Order{Verb: c.Verb, Arg: "x" + b.String()}
	if c.Verb == state.VerbCreatePR {
		o.Arg += "-7"
	}
	return o
}

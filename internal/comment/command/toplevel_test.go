package command

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/errand-bot/errand/state"
)

// wrappers returns texts in which a paragraph, the %s, is not plain text of its author.
func wrappers() map[string]string {
	m := map[string]string{
		"self-closed tag":       "<blockquote/>\n\n%s",
		"tag never closed":      "<q>see\n\n%s",
		"closed in a cell":      "<blockquote>\n\n| a |\n|---|\n| </blockquote> |\n\n%s",
		"closed in a list":      "- <s>a\n\n  | a |\n  |---|\n  | </s> |\n\n%s",
		"closed out of order":   "<del><blockquote></del>\n\n%s\n\n</blockquote>",
		"inner table":           "<blockquote><table><td></blockquote></td></table>\n\n%s",
		"opened in a paragraph": "see <del>this\n\n%s\n\n</del>",
		"opened in a quote":     "> <s>\n\n%s",
		"opened in a heading":   "# <samp>\n\n%s",
		"opened in a footnote":  "[^a b]: x <del>\n\n%s",
		"attribute":             "<div title=\"\n\n%s\n\n\">",
		"attribute, unquoted":   "<p title=x\n\n%s\n\n>",
		"comment in a quote":    "> <!--\n\n%s\n\n-->",
		"comment in a list":     "- x\n\n  <!--\n\n%s\n\n-->",
		"early end of comment":  "<!-- a --!> <blockquote> -->\n\n%s",
		"processing":            "<?x > <blockquote> ?>\n\n%s",
		"declaration":           "<!X\n%s\n>",
		"CDATA":                 "<![CDATA[ > <del> ]]>\n\n%s",
		"raw text":              "<script><blockquote></script>\n\n%s",
		"tag in a literal one":  "<title x=\"<blockquote>\">\n\n%s",
		"form feed in a tag":    "<blockquote\f>\n\n%s\n",
		"image":                 "![x\n%s\ny](https://x.org/p.png)",
		"image by reference":    "![x\n%s\ny][z]\n\n[z]: https://x.org/p.png",
		"link":                  "[x\n%s\ny](https://x.org)",
		"link title":            "[x](https://x.org 'y\n%s\n')",
		"definition":            "[x]: https://x.org 'y\n%s\n'",
		"image after many":      strings.Repeat("[x]: y\n", 400) + "\n[\n%s\n][x]",
		"strikethrough":         "~~x\n%s\ny~~",
		"one tilde":             "~x\n%s\ny~",
		"emphasis":              "*x\n%s\ny*",
		"strong":                "__x\n%s\ny__",
		"table row":             "| a |\n|---|\n%s",
		"table head":            "%s\n|-|\n| a |",
		"table under a line":    "x\na | b\n-|-\n%s\n",
		"footnote":              "x[^1]\n\n[^1]: y\n%s",
		"footnote, later":       "x[^1]\n\n[^1]: y\n\n    %s",
		"ordered list":          "3) x\n%s",
		"task":                  "- [ ] x\n%s",
		"alert":                 "> [!NOTE]\n%s",
		"deep quote":            strings.Repeat("> ", 80) + "x\n%s",
		"deep and quoted":       strings.Repeat(">", 2000) + "x\n%s",
		"quote, odd space":      "> x\n\u00a0\n%s",
		"quote, ideographic":    "> x\n\u3000\n%s",
		"quote, vertical tab":   "> x\n\v\n%s",
		"quote, next line":      "> x\n\u0085\n%s",
		"quote, separator":      "> x\n\u2028\n%s",
		"math":                  "$$\n%s\n$$",
		"math in a line":        "so $x\n%s\ny$ it is",
		"math block":            "```math\n%s\n```",
		"diagram":               "```mermaid\n%s\n```",
		"code span":             "``x\n%s\ny``",
		"tab and fence":         "~~~\t\n%s\n\n~~",
		"entities":              "%.0s&#64;errand approve",
		"escaped":               "%.0s\\@errand approve",
		"emphasised itself":     "%.0s*@errand* approve",
		"struck itself":         "%.0s~~@errand approve~~",
		"link itself":           "%.0s[@errand approve](https://x.org)",
		"tag before":            "%.0s<b></b>@errand approve",
	}
	for name := range strings.FieldsSeq("blockquote code q del s strike ins pre samp kbd sub sup details summary table td ul li dl div span section figure small var cite a svg math template select button form object center font") {
		m["element "+name] = "<" + name + ">\n\n%s\n\n</" + name + ">"
		m["element "+name+", same line"] = "x <" + strings.ToUpper(name) + " class=a>\n%s\n</" + name + "> y"
	}
	return m
}

// TestCommandsInMarkupAreIgnored: a command only counts if GitHub shows its line as part of a paragraph at the top
// level.
func TestCommandsInMarkupAreIgnored(t *testing.T) {
	t.Parallel()
	// Here a base counts, though a command does not: the text is the writer's own.
	shown := map[string]bool{"ordered list": true, "task": true, "emphasis": true, "strong": true}
	for name, wrap := range wrappers() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, command := range []string{"@errand approve", "@errand plan base: develop"} {
				body := fmt.Sprintf(wrap, command)
				for _, body := range []string{body, strings.ReplaceAll(body, "\n", "\r\n"), "Hello.\n\n" + body + "\n\nBye."} {
					if p := Parse(body, "errand", false); p.Mention || len(p.Orders) > 0 || p.Base != "" && !shown[name] {
						t.Errorf("%q contains the commands %+v, base %q", body, p.Orders, p.Base)
					}
				}
			}
		})
	}
}

// Text around a command that hides nothing leaves it as it is.
func TestCommandsNextToMarkupAreRead(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"after a closed element":      "<details><summary>Log</summary>\n\n```\nx\n```\n\n</details>\n\n@errand approve",
		"after nested elements":       "<table><tr><td><p>a<td>b</table>\n<ul><li>x<li>y</ul>\n\n@errand approve",
		"after a void element":        "x<br>y <img src=a.png>\n<hr>\n\n@errand approve",
		"after a tag of no element":   "A List<String> of <name>, Vec<u8>.\n\n@errand approve",
		"after a tag shown as text":   "Change the <title> please.\n\n@errand approve",
		"after a paragraph's tag":     "<p align=center>x\n\n@errand approve",
		"after a stray end":           "x </details>\n\n@errand approve",
		"after a comment":             "<!-- Thanks! -->\n@errand status\n\n@errand approve",
		"after a closed quote":        "> x\n\n@errand approve",
		"after a list":                "- x\n- y\n\n@errand approve",
		"after a table":               "| a |\n|---|\n| b |\n\n@errand approve",
		"after a rule":                strings.Repeat("-", 100) + "\n@errand approve",
		"after a long rule of stars":  strings.Repeat("* ", 70) + "\n@errand approve",
		"after a log":                 strings.Repeat("[INFO] x\n", 500) + "\n@errand approve",
		"after code":                  "`x`\n@errand approve",
		"after emphasis":              "*x* **y** ~~z~~ [l](https://x.org) ![i](https://x.org)\n@errand approve",
		"after a footnote's sign":     "x[^1]\n@errand approve\n\n[^1]: y",
		"after money":                 "It costs $5 so\n@errand approve\nfor $7 or US$ 9.",
		"after a shell's variable":    "Set $HOME and $$\n@errand approve",
		"after an open bracket":       "see [this\n@errand approve",
		"after a hard break":          "x  \n@errand approve\n",
		"after a backslash":           "x\\\n@errand approve",
		"indented in a paragraph":     "x\n      @errand approve",
		"tab in a paragraph":          "x\n\t@errand approve",
		"under a signature's line":    "@errand approve\n-- \nAda",
		"before an element":           "@errand approve\n\n<details>\n\nx\n\n</details>",
		"before an element not ended": "@errand approve\n\n<blockquote>",
		"form":                        "### Steps\n\n1. x\n\n### What now\n\n@errand approve",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, body := range []string{body, strings.ReplaceAll(body, "\n", "\r\n")} {
				p := Parse(body, "errand", false)
				if !p.Mention || !slices.ContainsFunc(p.Orders, func(o state.Order) bool { return o.Verb == state.VerbApprove }) {
					t.Errorf("%q contains the commands %+v", body, p.Orders)
				}
			}
		})
	}
}

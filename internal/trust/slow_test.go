package trust

import (
	"strings"
	"testing"
)

// TestStripEndsOnRepetition uses inputs that make naive parsers slow; the test's timeout detects them. Each is an
// eighth of GitHub's limit.
func TestStripEndsOnRepetition(t *testing.T) {
	t.Parallel()
	for name, unit := range map[string]string{
		"hidden elements": "<b hidden>", "footnotes": "[^a]:\n", "paragraph footnotes": "[^a]: x\n\n",
		"entities": "&#73;", "code spans": "`<!-- -->` ", "comment starts": "<!", "open comments": "<!-",
		"brackets": "[", "images": "![a](b) ", "tags": "<a ", "definitions": "[a]: b\n", "bars": "|a",
		"tables": "a|b\n-|-\n", "empty links": "[](a)", "blank lines": "\n\n\n\na", "blocks": "<div>\n\n",
		"encoded encodings": "&&#35;", "formulas": "$\\phantom{a}$ ", "half formulas": "\\phantom ", "dollars": "$", "small": "<sub>", "pre": "<pre>\n", "pre and code": "<pre>\n```\n", "percent": "$%",
		"diagrams": "```mermaid\n%% a\n```\n", "gaps": "    a" + strings.Repeat(" ", 200) + "b\n", "code formulas": "$`\\tiny`$", "math": "```math\n%\n```\n", "uploads": "<img src=a>", "stars": "*a ",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, _ := Strip(strings.Repeat(unit, 8192/len(unit)))
			if again, _ := Strip(out); again != out {
				t.Error("not stable")
			}
		})
	}
}

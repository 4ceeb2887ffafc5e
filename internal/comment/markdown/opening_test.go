package markdown

import (
	"testing"

	"github.com/errand-bot/errand/internal/comment/commenttest"
)

func TestLineOpensNoBlock(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"plain": "plain", "~~~ x": `\~~~ x`, "# x": `\# x`, "#1 x": "#1 x", "####### x": "####### x", "> x": `\> x`, ">": `\>`, "- x": `\- x`, "-x": "-x", "*": `\*`, "+ x": `\+ x`,
		"*a* b": "*a* b", "***": `\***`, "- - -": `\- - -`, "___": `\___`, "==": `\==`, "1. x": `1\. x`, "12) x": `12\) x`, "1.5 x": "1.5 x", "```x": "&#96;&#96;&#96;x", "`a` b": "`a` b",
	} {
		if got := Line(in, 100); got != want {
			t.Errorf("Line(%q) = %q, want %q", in, got, want)
		}
		if src := []byte(Line(in, 100) + "\n\nprobe"); commenttest.Parse(string(src)).FirstChild().Kind().String() != "Paragraph" {
			t.Errorf("%q opens a block", src)
		}
	}
}

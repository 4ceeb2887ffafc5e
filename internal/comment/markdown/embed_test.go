package markdown

import (
	"strings"
	"testing"
	"time"

	"github.com/errand-bot/errand/internal/comment/commenttest"
	"github.com/errand-bot/errand/internal/cputest"
)

func TestEmbed(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ in, want string }{
		"plain":             {"Change `a.go` and *b*.", "Change `a.go` and *b*."},
		"HTML":              {"a <b>x</b> <img src=x> c < d", "a x &lt;img src=x> c &lt; d"},
		"comment":           {"a <!-- errand:x --> b", "a &lt;!-- errand:x --> b"},
		"marker in code":    {"`<!-- errand:x -->`", "`<! -- errand:x -->`"},
		"details":           {"</details>\n\nx", "x"},
		"box":               {"- [ ] Approve\n- [x] y", "- \\[ ] Approve\n- \\[x] y"},
		"person":            {"ask @bob, or @a/team", "ask `@bob`, or `@a/team`"},
		"escaped person":    {`\@bob`, "`@bob`"},
		"entity person":     {"&#64;bob &commat;bob", "`@bob` `@bob`"},
		"half a person":     {"@&#98;ob", "`@`&#98;ob"},
		"mail":              {"a@b.c", "a@b.c"},
		"person by a tick":  {"it`s @bob", "it&#96;s `@bob`"},
		"person by code":    {"``a``@bob", "``a`` `@bob`"},
		"person then code":  {"@bob`code`", "`@bob` `code`"},
		"person in code":    {"`@bob`", "`@bob`"},
		"headings":          {"# A\n\n##### B\n\nx\n===\n", "### A\n\n###### B\n\nx\n\\==="},
		"heading in quote":  {"> # A", "> ### A"},
		"rule":              {"a\n\n---\n\nb", "a\n\n---\n\nb"},
		"link":              {"see [the *docs*](https://x.org/a)", "see the *docs* (https://x.org/a)"},
		"link to a trap":    {"[a](javascript:x)", `[a]\(javascript:x)`},
		"reference":         {"[a]: https://x.org", `[a]\: https://x.org`},
		"image":             {"![a](https://x.org/p.png)", "a (https://x.org/p.png)"},
		"open fence":        {"x\n```go\ny := 1", "x\n```go\ny := 1\n```"},
		"open long fence":   {"~~~~\ny", "~~~~\ny\n~~~~"},
		"fence in list":     {"- a\n  ```\n  @bob", "- a\n  ```\n  @bob"},
		"headings in fence": {"```sh\n# x\n- [ ] y\n```\n# z", "```sh\n# x\n- [ ] y\n```\n### z"},
		"empty fence":       {"```\n```\n@bob", "```\n```\n`@bob`"},
		"indented code":     {"a\n\n    # <b>\n\nc", "a\n\n    # <b>\n\nc"},
		"closing word":      {"Fixes #12, closes: a/b#3, see #4", "Fixes `#12`, closes: `a/b#3`, see #4"},
		"closing, no-break": {"fixes\u00a0#12 and closes\u2003a/b#3", "fixes `#12` and closes `a/b#3`"},
		"closing, markup":   {"_fixes_ #12, **closes** (#3), fixed - GH-4", "_fixes_ `#12`, **closes** (`#3`), fixed - `GH-4`"},
		"closing, lines":    {"Resolves\n#12", "Resolves\n`#12`"},
		"closing, a link":   {"fixes [#12](https://x.org/12)", "fixes `#12` (https://x.org/12)"},
		"closing, address":  {"fixes [](https://github.com/a/b/issues/12)", "fixes (`https://github.com/a/b/issues/12`)"},
		"closing, entity":   {"fixes&nbsp;#12", "```text\nfixes&nbsp;#12\n```"},
		"closing, number":   {"fixes &#35;12", "fixes &`#35`;12"},
		"closing, escaped":  {`fixes \#12`, "```text\nfixes \\#12\n```"},
		"not closing":       {"prefixes #12, the fix for #3", "prefixes #12, the fix for #3"},
		"after a dot":       {".@ada /@ada (@ada é@ada", ".`@ada` /`@ada` (`@ada` é`@ada`"},
		"zero width within": {"fi\u200bxes\u00a0#\u200b12", "fixes `#12`"},
		"table":             {"| a | b |\n|---|---|\n| `x` | @y |", "| a | b |\n|---|---|\n| `x` | `@y` |"},
		"tick in a table":   {"| a | b |\n|---|---|\n| `x | @y` |", "| a | b |\n|---|---|\n| &#96;x | `@y` &#96; |"},
		"pre hides a fence": {"<pre>\n```\n</pre>\n@bob", "&lt;pre>\n```\n</pre>\n@bob\n```"},
		"zero width":        {"@\u200bbob\u202e", "`@bob`"},
		"carriage returns":  {"a\r\n# b\r", "a\n### b"},
		"empty":             {" \n", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Embed(tt.in); got != tt.want {
				t.Errorf("Embed(%q)\n got %q\nwant %q", tt.in, got, tt.want)
			}
		})
	}
}

func TestDangerousMarkupIsReported(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]string{
		"fence": "```\nx", "HTML": "<b>x</b>", "comment": "x\n\n<!-- y", "box": "- [ ] x", "person": "hi @bob",
		"escaped person": `\@bob`, "entity": "&#64;bob", "marker": "`<!-- errand:x -->`", "link": "[a](b)", "image": "![a](b)",
		"reference": "x\n\n[a]: b", "person in a cell": "| a |\n|---|\n| @bob |", "emphasised": "*@bob*",
		"after code": "`x`@bob", "closing": "fixes #1", "closing, no-break": "fixes\u00a0#1", "closing, entity": "fixes&#32;a/b#1", "closing, emphasis": "*fix*: **#1**",
		"closing, address": "closes https://github.com/a/b/issues/1", "closing, short": "Resolved\n: gh-1",
	} {
		if Danger(s) == "" {
			t.Errorf("%s: Danger(%q) is empty", name, s)
		}
	}
	if why := Danger("a `@bob` x@y.z\n\n```\n<b> @bob\n```"); why != "" {
		t.Errorf("Danger of safe text is %q", why)
	}
}

func TestEmbedTimeIsBounded(t *testing.T) {
	t.Parallel()
	for name, unit := range map[string]string{"ticks": "`a``b", "brackets": "[", "links": "[a](", "closing": "fixes a/", "quotes": "> ", "at": "@a", "refs": "fixes https://a", "stars": "*a _b"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if took := cputest.Time(t, func() { Embed(strings.Repeat(unit, 60_000/len(unit))) }); took > time.Minute {
				t.Errorf("parsing took %v of processor time, want at most a minute", took)
			}
		})
	}
}

func FuzzEmbed(f *testing.F) {
	for _, s := range []string{"a <b>`@x`</b> @y", "- [ ] x\n  ```\n  <!-- errand:a -->", "[a](https://x `b`) c`", "``a``@b \\`@c", "| a |\n|-|\n| `x | @y` |", "x\n---\n\n    @a\n> # `\n> @b`",
		"~~~\n```\n", "![[a]](https://b)@c", "fixes #1 `x\n# y`", "fixes\u00a0#1, closes [#2](https://x.org) `fix`: *gh-3*", ".@a `@b` é@c"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if len(s) > 4000 {
			return
		}
		got := Embed(s)
		if why := Danger(got); got != "" && why != "" {
			t.Errorf("Embed(%q) = %q has %s", s, got, why)
		}
		if found := commenttest.ClosingReferences(got); len(found) > 0 {
			t.Errorf("Embed(%q) = %q closes: %q", s, got, found)
		}
		if len(got) > 8*len(s)+40 {
			t.Errorf("Embed(%q) grew to %d bytes", s, len(got))
		}
	})
}

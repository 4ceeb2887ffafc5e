package web

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// Texts are rendered as on GitHub.
func TestMarkdownIsRenderedAsOnGitHub(t *testing.T) {
	t.Parallel()
	m := newMarkdown()
	in := scope{
		full: "octo/calc", issues: map[int]bool{1: false, 2: true}, people: map[string]bool{"alice": true},
		commit: func(name string) string {
			if strings.HasPrefix("abcdef0123456789abcdef0123456789abcdef01", name) {
				return "abcdef0123456789abcdef0123456789abcdef01"
			}
			return ""
		},
	}
	for name, tc := range map[string]struct{ src, want string }{
		"table":             {"|a|b|\n|:-|-:|\n|1|2|", "<table>\n<thead>\n<tr>\n<th align=\"left\">a</th>\n<th align=\"right\">b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td align=\"left\">1</td>\n<td align=\"right\">2</td>\n</tr>\n</tbody>\n</table>"},
		"a break as typed":  {"one\ntwo", "<p>one<br/>\ntwo</p>"},
		"comment of HTML":   {"a <!-- b --> c\n\n<!-- d -->", "<p>a  c</p>"},
		"details":           {"<details><summary>More</summary>\n\n- x\n\n</details>", "<details><summary>More</summary>\n<ul>\n<li>x</li>\n</ul>\n</details>"},
		"open details":      {"<details open><summary>More</summary></details>", `<details open=""><summary>More</summary></details>`},
		"sub":               {"<sub>small</sub>", "<p><sub>small</sub></p>"},
		"issue":             {"see #1, #2 and #3", `<p>see <a href="/octo/calc/issues/1" rel="nofollow">#1</a>, <a href="/octo/calc/pull/2" rel="nofollow">#2</a> and #3</p>`},
		"no issue":          {"a#1 &#35;1 `#1` #1a", `<p>a#1 #1 <code>#1</code> #1a</p>`},
		"person":            {"@alice @nobody x@alice `@alice`", `<p><a href="/alice" rel="nofollow">@alice</a> @nobody x@alice <code>@alice</code></p>`},
		"commit":            {"see abcdef0123456789.\nand abcdef0", `<p>see <a href="/octo/calc/commit/abcdef0123456789abcdef0123456789abcdef01" rel="nofollow"><code>abcdef0</code></a>.<br/>` + "\n" + `and <a href="/octo/calc/commit/abcdef0123456789abcdef0123456789abcdef01" rel="nofollow"><code>abcdef0</code></a></p>`},
		"no commit":         {"`abcdef01` fedcba9 abcdef", `<p><code>abcdef01</code> fedcba9 abcdef</p>`},
		"link in a link":    {"[fix #1](https://example.org)", `<p><a href="https://example.org" rel="nofollow">fix #1</a></p>`},
		"diff":              {"```diff\n-a\n+b\n c\n```", `<pre><code class="language-diff"><span class="d-del">-a</span><span class="d-add">+b</span> c` + "\n</code></pre>"},
		"markup in code":    {"```\n<b>&\n```", "<pre><code>&lt;b&gt;&amp;\n</code></pre>"},
		"script":            {"<script>x</script>y", "y"},
		"ids":               {`<p id="main" class="x" style="color:red">y</p>`, `<p>y</p>`},
		"an address":        {"https://example.org/a", `<p><a href="https://example.org/a" rel="nofollow">https://example.org/a</a></p>`},
		"closing the page":  {"</div></article></main>x<b>y", "x<b>y</b>"},
		"javascript":        {"[x](javascript:alert(1))", "<p>x</p>"},
		"raw boxes":         {`<input type="checkbox" checked> <button>x</button>`, "<p> x</p>"},
		"a box":             {"- [x] **do** `it`", `<ul>` + "\n" + `<li><input type="checkbox" class="task" disabled checked aria-label="do it"> <strong>do</strong> <code>it</code></li>` + "\n</ul>"},
		"struck out":        {"~~no~~", "<p><del>no</del></p>"},
		"a hostile label":   {`- [ ] ">`, `<ul>` + "\n" + `<li><input type="checkbox" class="task" disabled aria-label="&#34;&gt;"> &#34;&gt;</li>` + "\n</ul>"},
		"a forged box mark": {m.secret[:8] + ":0:true:", "<p>" + m.secret[:8] + ":0:true:</p>"},
	} {
		if got := strings.TrimSpace(string(m.render(tc.src, in, fixedBoxes))); got != tc.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, tc.want)
		}
	}
}

// A tick changes one box and nothing else.
func TestTickChangesOneBox(t *testing.T) {
	t.Parallel()
	m := newMarkdown()
	for name, tc := range map[string]struct {
		src  string
		n    int
		want string // empty: refused
	}{
		"first":            {"- [ ] a\n- [ ] b\n", 0, "- [x] a\n- [ ] b\n"},
		"second":           {"- [ ] a\n- [ ] b\n", 1, "- [ ] a\n- [x] b\n"},
		"untick":           {"* [X] a", 0, "* [ ] a"},
		"numbered":         {"1. [ ] a\n2. [x] b", 1, "1. [ ] a\n2. [ ] b"},
		"nested":           {"- [ ] a\n  - [ ] b\n", 1, "- [ ] a\n  - [x] b\n"},
		"loose":            {"- [ ] a\n\n- [ ] b\n", 1, "- [ ] a\n\n- [x] b\n"},
		"not in code":      {"```\n- [ ] a\n```\n- [ ] b", 0, "```\n- [ ] a\n```\n- [x] b"},
		"not in comments":  {"<!--\n- [ ] a\n-->\n\n- [ ] b", 0, "<!--\n- [ ] a\n-->\n\n- [x] b"},
		"in quotes":        {"> - [ ] a", 0, "> - [x] a"},
		"in details":       {"<details>\n\n- [ ] a\n\n</details>", 0, "<details>\n\n- [x] a\n\n</details>"},
		"too many":         {"- [ ] a", 1, ""},
		"negative":         {"- [ ] a", -1, ""},
		"none":             {"a [ ] b", 0, ""},
		"with letters ü é": {"ü\n\n- [ ] é [ ]", 0, "ü\n\n- [x] é [ ]"},
	} {
		got, ok := m.tick(tc.src, tc.n)
		if ok != (tc.want != "") || ok && got != tc.want {
			t.Errorf("%s: got %q, %v; want %q", name, got, ok, tc.want)
		}
	}
}

// For every text: the rendered HTML has nothing active, a tick changes exactly
// one byte, and the page has one box for each box that can be ticked.
func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{"- [ ] a", "<b onclick=x>", "| a |\n|-|\n| [ ] |", "@alice #1 abcdef0", "<!-- - [ ] x -->", "- [x] `a`\n\t- [ ] b"} {
		f.Add(s, 0)
	}
	m := newMarkdown()
	in := scope{full: "o/r", issues: map[int]bool{1: true}, people: map[string]bool{"alice": true}, commit: func(string) string { return "abc" }}
	f.Fuzz(func(t *testing.T, src string, n int) {
		if !utf8.ValidString(src) {
			t.Skip("skipped: texts are always UTF-8")
		}
		shown := 0
		html := string(m.render(src, in, func(int, bool, string) string { shown++; return "" }))
		for _, bad := range []string{"<script", "<form", "<button", "<iframe", "<style", " id=", m.secret} {
			if strings.Contains(strings.ToLower(html), bad) {
				t.Fatalf("got %q for %q", src, html)
			}
		}
		got, ok := m.tick(src, n)
		if !ok {
			return
		}
		changed := 0
		for k := range got {
			if got[k] != src[k] {
				changed++
			}
		}
		if len(got) != len(src) || changed != 1 || n >= shown {
			t.Fatalf("ticking %d of %q gave %q with %d boxes shown", n, src, got, shown)
		}
	})
}

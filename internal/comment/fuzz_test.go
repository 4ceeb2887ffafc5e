package comment

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/text"

	"github.com/errand-bot/errand/state"
)

// topHeadings lists the headings of a comment that stand in nothing else.
func topHeadings(s string) []string {
	src := []byte(s)
	doc := goldmark.New(goldmark.WithExtensions(extension.Table, extension.TaskList)).Parser().Parse(text.NewReader(src))
	var list []string
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok && h.Lines().Len() > 0 {
			seg := h.Lines().At(0)
			list = append(list, string(seg.Value(src)))
		}
	}
	return list
}

// FuzzRenderPlan: for every text by an agent, the plan's comment has errand's boxes and no others, errand's heading at
// the top level, and errand's marker at the end.
func FuzzRenderPlan(f *testing.F) {
	for _, s := range []string{"# x\n```\n", "<details>\n<!--", "- [ ] a <!-- errand:box a1b2c3d4 1 -->", "> - ```\n> @octocat", "    code\n\n\tmore", "| a |\n|---|\n| `b", strings.Repeat("long `line`\n\n", 1200)} {
		f.Add(s, s)
	}
	f.Fuzz(func(t *testing.T, words, title string) {
		task := planned()
		p := task.NewestPlan()
		p.Text, p.Changes, p.Summary, p.Estimate = words, title, words, title
		p.Approaches, p.Files = []string{title, words}, []string{title, words}
		p.Hash = state.PlanHash(*p)
		got := Render(task, state.Post{Kind: state.PostPlan, Hash: p.Hash}, view("k"))
		if utf8.RuneCountInString(got) > MaxLength {
			t.Errorf("%d characters", utf8.RuneCountInString(got))
		}
		want := map[Box]bool{{p.Short(), 1}: false, {p.Short(), 2}: false}
		if diff := cmp.Diff(want, boxes(got)); diff != "" {
			t.Errorf("boxes differ:\n%s\n%s", diff, got)
		}
		if key, ok := FindMarker(got); !ok || key != "k" || strings.Count(got, "<!-- errand:k -->") != 1 {
			t.Errorf("marker:\n%s", got)
		}
		heads := topHeadings(got)
		if len(heads) < 2 || heads[len(heads)-1] != "Approve revision 2?" {
			t.Errorf("headings %q in:\n%s", heads, got)
		}
		if onlyBox, ticked, box := BoxTicked(got, strings.Replace(got, "- [ ] **Approve with approach 2**", "- [x] **Approve with approach 2**", 1)); !onlyBox || !ticked || box != (Box{p.Short(), 2}) {
			t.Errorf("BoxTicked = %v, %v, %v in:\n%s", onlyBox, ticked, box, got)
		}
	})
}
